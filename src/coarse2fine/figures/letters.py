"""Names as they can be drawn: in one line, as long as there is room, in fonts that have them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from typing import TypedDict
from unicodedata import category

from ..errors import require

LETTERS = 8  # in points, of class names
HINTING = 1.04  # letters fitted to pixels are wider than their outlines
UNKNOWN = "�"  # for what no font has
# Made for formulas, or with a picture of "no such letter" for every letter.
UNFIT = ("Last Resort", "STIX", "cm", "DejaVu Math")


def drawable(text: str) -> str:
    r"""Return a text in one line, with a mark for what cannot be drawn.

    Examples:
        >>> drawable(" a\n name\x00")
        'a name�'
    """
    line = " ".join(text.split())
    return "".join(letter if _is_drawn(letter) else UNKNOWN for letter in line)


class Lettering(TypedDict, total=False):
    """How matplotlib is to draw a text, as arguments of its functions."""

    parse_math: bool
    fontfamily: list[str]


def lettering(text: str) -> Lettering:
    """Return how matplotlib is to draw a text: nothing is a formula, and which fonts it needs."""
    further = dict.fromkeys(_font_with(letter) for letter in dict.fromkeys(text))
    fonts = [font for font in further if font]
    families = require("matplotlib", "report").rcParams["font.family"]
    style: Lettering = {"parse_math": False}
    return {**style, "fontfamily": [*families, *fonts]} if fonts else style


def cut(text: str, width: float, size: float = LETTERS) -> str:
    """Return a drawable text, shortened to so many inches if it is wider.

    Args:
        text: Any.
        width: In inches.
        size: Of the letters, in points. Defaults to 8.
    """
    text = drawable(text)
    if inches(text, size) <= width:
        return text
    fitting = bisect_right(range(len(text)), width, key=lambda end: inches(f"{text[:end]}…", size))
    return f"{text[: max(0, fitting - 1)].rstrip()}…"


def wrapped(names: Iterable[str], width: float) -> list[str]:
    """Return names with commas between them, in lines that are not wider than so many inches.

    A name that is too long for a line is cut.
    """
    return _filled(names, width, LETTERS, ",")


def fitted(text: str, width: float, size: float = LETTERS) -> str:
    """Return a drawable text in as few lines as are not wider than so many inches.

    A word that is too long for a line is cut.

    Args:
        text: Any.
        width: In inches.
        size: Of the letters, in points. Defaults to 8.
    """
    return "\n".join(_filled(text.split(), width, size, ""))


def _filled(parts: Iterable[str], width: float, size: float, comma: str) -> list[str]:
    """Return as few lines as hold all parts, with a comma, if any, after each but the last."""
    lines: list[str] = []
    for part in (cut(part, width - inches(comma, size), size) for part in parts):
        longer = f"{lines[-1]}{comma} {part}" if lines else part
        if lines and inches(f"{longer}{comma}", size) > width:
            lines[-1] += comma
            lines.append(part)
        else:
            lines[-1:] = [longer]
    return lines


def inches(text: str, size: float = LETTERS) -> float:
    """Return how wide a drawable text is.

    Args:
        text: See `drawable`.
        size: Of the letters, in points. Defaults to 8.
    """
    families = lettering(text).get("fontfamily")
    font = require("matplotlib.font_manager", "report").FontProperties(family=families, size=size)
    measure = require("matplotlib.textpath", "report").text_to_path
    width: float = measure.get_text_width_height_descent(text, font, ismath=False)[0]
    return HINTING * width / 72


@cache
def _is_drawn(letter: str) -> bool:
    # Controls and halves of letters, as in names of files that are not UTF-8, end in no file.
    return category(letter) not in {"Cc", "Cs"} and _font_with(letter) is not None


@cache
def _font_with(letter: str) -> str | None:
    """Return the family that has a letter, "" for that of all figures, None where none has."""
    manager = require("matplotlib.font_manager", "report")
    own = manager.findfont(manager.FontProperties())
    if category(letter) == "Cs" or _has(own, letter):
        return ""
    installed = {
        font.name: font.fname
        for font in manager.fontManager.ttflist
        if font.style == "normal" and font.weight in (400, "normal")
    }
    fit = (name for name in sorted(installed) if not name.startswith(UNFIT))
    return next((name for name in fit if _has(installed[name], letter)), None)


@cache
def _has(path: str, letter: str) -> bool:
    font = require("matplotlib.font_manager", "report").get_font(path)
    return bool(font.get_char_index(ord(letter)))
