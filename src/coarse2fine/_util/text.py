"""Untrusted text made safe to show: control characters are escaped."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable

# Invisible, yet part of words in Persian and of emoji of families.
JOINERS = "\u200c\u200d"
# Only these need a closer look; most text is ASCII throughout.
_NOT_ASCII = re.compile(r"[^ -~]")


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with everything that is not printable escaped as Python does.

    That is control characters, among them those that control terminals and those that reverse
    the direction of writing, and lone surrogates.

    Args:
        text: Any text.
        keep: Characters that are kept nevertheless. Defaults to none.

    Examples:
        >>> print(printable("a\nb\x1b[31m"))
        a\nb\x1b[31m
        >>> printable("größer\n", keep="\n")
        'größer\n'
    """

    def shown(match: re.Match[str]) -> str:
        letter = match[0]
        if letter.isprintable() or letter in keep:
            return letter
        return letter.encode("unicode_escape").decode()

    return _NOT_ASCII.sub(shown, text)


def brief(value: object, most: int = 400) -> str:
    r"""Return a text as one printable line, shortened if it is long, for use in a sentence.

    Args:
        value: The text, or an error; what it quotes from a file may be of any length.
        most: The largest number of characters. Defaults to 400.

    Examples:
        >>> brief("two\nlines, \x1b[31mred"), brief("long", 3)
        ('two lines, \\x1b[31mred', 'lon…')
    """
    # Cut before anything else is done with it, with room for runs of spaces.
    shown = printable(" ".join(str(value)[: 4 * most].split()))
    return shown if len(shown) <= most else f"{shown[:most]}…"


def first_line(error: BaseException) -> str:
    r"""Return the first line of a library's message, without its final stop, or the error's type.

    Args:
        error: What was raised.

    Examples:
        >>> first_line(ValueError("it is broken.\nSee the manual.")), first_line(EOFError())
        ('it is broken', 'EOFError')
    """
    text = str(error).strip() or type(error).__name__
    return brief(text.split("\n", 1)[0].rstrip("."))


def duration(seconds: float) -> str:
    """Return how long something takes, rounded up to seconds or, from a minute on, to minutes.

    Examples:
        >>> duration(41.2), duration(754), duration(7_500)
        ('42 s', '13 min', '2 h 5 min')
    """
    whole = math.ceil(seconds)
    return f"{whole} s" if whole < 60 else whole_minutes(seconds)


def whole_minutes(seconds: float) -> str:
    """Return a time rounded up to minutes.

    Examples:
        >>> whole_minutes(50), whole_minutes(754), whole_minutes(7_500)
        ('1 min', '13 min', '2 h 5 min')
    """
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the most similar of some names, to be added to a sentence.

    Args:
        name: What was given.
        known: What there is; where none of it is similar, the question is ``""``.

    Examples:
        >>> did_you_mean("hammster", ["cat", "hamster"]), did_you_mean("car", ["tulip"])
        (" Did you mean 'hamster'?", '')
    """
    near = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""
