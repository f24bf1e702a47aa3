"""What files hold, as part of a sentence."""

from __future__ import annotations

_MOST = 400


def brief(value: object) -> str:
    r"""Return a text as one line of printable characters, cut where it is long.

    What a file holds may be of any length, and its control characters would act on a terminal.

    Args:
        value: The text, or an error that has one.

    Examples:
        >>> brief("two\nlines, \x1b[31mred")
        'two lines, \\x1b[31mred'
    """
    text = " ".join(str(value)[: 4 * _MOST].split())
    shown = "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)
    return shown if len(shown) <= _MOST else f"{shown[:_MOST]}…"
