"""What texts mean as values of settings, as on the command line."""

from __future__ import annotations

from collections.abc import Sequence


def seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of ``--seeds``.

    Args:
        text: A number, for so many seeds from 0 on, or a list with commas.

    Examples:
        >>> seeds("3"), seeds("4,7"), seeds("7,")
        ((0, 1, 2), (4, 7), (7,))
    """
    parts = [part.strip() for part in text.split(",")]
    if not parts[-1]:
        parts = parts[:-1]
    if not parts or not all(part.isdecimal() for part in parts):
        raise ValueError(f"seeds must be a number, or a list such as 0,1,2. Got {text!r}.")
    if "," not in text:
        return tuple(range(int(text)))
    return tuple(map(int, parts))


def size(text: str) -> int | float:
    """Return the number of samples, or their share, of ``--train-size``.

    Examples:
        >>> size("4500"), size("0.05"), size("5%")
        (4500, 0.05, 0.05)
    """
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise ValueError(
            f"train_size must be a number of samples, or a share such as 0.05 or 5%. Got {text!r}."
        ) from None


def shares(text: str) -> tuple[float, ...]:
    """Return the shares of ``--milestones``.

    Examples:
        >>> shares("0.4,0.7"), shares("")
        ((0.4, 0.7), ())
    """
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError(
            f"milestones must be a list of shares such as 0.4,0.7. Got {text!r}."
        ) from None


def number_or_word(text: str) -> int | str:
    """Return a number as such, and any other text as it is.

    Examples:
        >>> number_or_word("20"), number_or_word("reach-90")
        (20, 'reach-90')
    """
    return int(text) if text.isdecimal() else text


def one_or_several(texts: Sequence[str]) -> str | tuple[str, ...] | None:
    """Return the column, or the columns, of ``--target``; None where it is not given.

    Examples:
        >>> one_or_several(["kind"]), one_or_several(["group", "kind"])
        ('kind', ('group', 'kind'))
    """
    return texts[0] if len(texts) == 1 else tuple(texts) or None


def method_settings(texts: Sequence[str]) -> dict[str, float]:
    """Return the methods' settings of ``--set``.

    Examples:
        >>> method_settings(["nbdt.weight=10", "spl.growth=1.5"])
        {'nbdt.weight': 10, 'spl.growth': 1.5}
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            if "." not in name:
                raise ValueError(name)
            found[name] = int(value) if value.isdecimal() else float(value)
        except ValueError:
            raise ValueError(
                f"--set must have the form METHOD.NAME=NUMBER, as nbdt.weight=10. Got {text!r}."
            ) from None
    return found
