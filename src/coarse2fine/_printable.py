"""Text of others as it can be shown: what would steer a terminal or a page is spelt out."""

from __future__ import annotations

import re

# Letters of Persian and families of emoji are written with them.
JOINERS = "\u200c\u200d"
_PERHAPS_NOT = re.compile(r"[^ -~]")


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with all that cannot be printed as Python would escape it.

    That is control characters, among them those by which terminals are steered and those that
    turn the direction of writing, and halves of characters.

    Args:
        text: Any.
        keep: What stays as it is nevertheless. Defaults to nothing.

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

    return _PERHAPS_NOT.sub(shown, text)


def brief(value: object, most: int = 400) -> str:
    r"""Return a text as one printable line, cut where it is long, to be part of a sentence.

    Args:
        value: The text, or an error that has one; what a file holds may be of any length.
        most: How many characters it may have. Defaults to 400.

    Examples:
        >>> brief("two\nlines, \x1b[31mred"), brief("long", 3)
        ('two lines, \\x1b[31mred', 'lon…')
    """
    shown = printable(" ".join(str(value)[: 4 * most].split()))
    return shown if len(shown) <= most else f"{shown[:most]}…"
