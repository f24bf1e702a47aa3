"""The names of ImageNet's classes, whose folders are called by numbers of WordNet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def parse_synsets(text: str) -> dict[str, str]:
    """Return the synonyms of each class, from lines of its number and its synonyms.

    Args:
        text: What ``words.txt`` or ``LOC_synset_mapping.txt`` holds.

    Examples:
        >>> parse_synsets("n01440764 tench, Tinca tinca")
        {'n01440764': 'tench, Tinca tinca'}
    """
    lines = (line.split(maxsplit=1) for line in text.splitlines())
    return {parts[0]: parts[1].strip() for parts in lines if len(parts) == 2}


def short_names(synonyms: Sequence[str], numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the first synonym of each class, with its number where two have the same.

    Args:
        synonyms: Each class's synonyms, with commas between.
        numbers: What tells each class from all others.

    Examples:
        >>> short_names(["tench, Tinca tinca", "crane", "crane"], ["n01", "n02", "n03"])
        ('tench', 'crane (n02)', 'crane (n03)')
    """
    names = [text.split(",")[0].strip() for text in synonyms]
    counts = Counter(names)
    return tuple(
        name if counts[name] == 1 else f"{name} ({number})"
        for name, number in zip(names, numbers, strict=True)
    )
