"""Labels that are integers: which classes they stand for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from reprlib import repr as short

import numpy as np

from ..._util.arrays import IntArray


def numbered_classes(train: IntArray, others: Iterable[IntArray], title: str) -> IntArray:
    """Return the integers that are classes, in their order.

    Labels such as 0, 5 and 10 are three classes, and a warning says so. A class that only other
    samples have counts too where its number lies between those to train on.

    Args:
        train: The labels to train on.
        others: Those to test and to validate on.
        title: What to call the labels.

    Raises:
        ValueError: A label is negative, which usually means that it is missing.
    """
    for row in np.flatnonzero(train < 0)[:1]:
        raise ValueError(
            f"{title}: integer labels must be 0 or more. Got {train[row]} for sample {row}; "
            f"correct it or leave it out."
        )
    between = [labels[(labels >= 0) & (labels <= train.max())] for labels in others]
    classes: IntArray = np.unique(np.concatenate([train, *between]))
    warn_of_gaps(classes.tolist(), title)
    return classes


def warn_of_gaps(classes: Sequence[int], title: str) -> None:
    """Say so where integer labels are not 0, 1 and so on, but name as many classes.

    Args:
        classes: The labels that there are, in order.
        title: What to call them.
    """
    if not are_indices(classes):
        named = ", ".join(map(str, classes[:5])) + (", …" if len(classes) > 5 else "")
        warnings.warn(
            f"{title}: the integer labels are not 0 to {len(classes) - 1}, so each of them is the "
            f"name of a class, {len(classes)} in all: {named}.",
            stacklevel=2,
        )


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of classes in their order: integers as such, others as texts.

    Examples:
        >>> sorted_names(["10", "9"]), sorted_names(["dog", "cat", "9"])
        (('9', '10'), ('9', 'cat', 'dog'))
    """
    found = sorted(names)
    are_whole = all(re.fullmatch(r"[+-]?[0-9]+", name) for name in found)
    return tuple(sorted(found, key=int) if are_whole else found)


def are_indices(classes: Sequence[int] | IntArray) -> bool:
    """Return whether classes are numbered 0, 1, 2 and so on.

    Examples:
        >>> are_indices([0, 1, 2]), are_indices([0, 5, 10])
        (True, False)
    """
    return len(classes) == 0 or (classes[0] == 0 and classes[-1] == len(classes) - 1)


def numbers_named(names: Sequence[str], labels: Iterable[IntArray]) -> IntArray | None:
    """Return the integers that classes are called by, where these are what the labels are.

    A run that was trained on the labels 0, 5 and 10 gives its classes these names, and other
    files with the same labels mean the same by them.

    Args:
        names: Of the classes, in the order of their targets.
        labels: Of every part.

    Returns:
        None where labels are indices of the classes.

    Examples:
        >>> numbers_named(["0", "5", "10"], [np.array([10, 0])])
        array([ 0,  5, 10])
        >>> numbers_named(["cat", "dog"], [np.array([1, 0])])
    """
    if not names or not all(name.isdecimal() and len(name) < 19 for name in names):
        return None
    numbers: IntArray = np.array(list(map(int, names)))
    is_rising = bool((np.diff(numbers) > 0).all())
    is_theirs = all(np.isin(part, numbers).all() for part in labels)
    return numbers if is_rising and is_theirs and not are_indices(numbers) else None


def places_of(labels: IntArray, classes: IntArray, title: str) -> IntArray:
    """Return the place of each label among the classes.

    Args:
        labels: Integers.
        classes: See `numbered_classes`.
        title: What to call the labels in an error.

    Raises:
        ValueError: A label is none of the classes.

    Examples:
        >>> places_of(np.array([10, 0]), np.array([0, 5, 10]), "train").tolist()
        [2, 0]
    """
    places: IntArray = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    wrong = np.flatnonzero(classes[places] != labels)
    if len(wrong):
        raise ValueError(
            f"{title}: the label {labels[wrong[0]]} of sample {wrong[0]} is none of the "
            f"{len(classes)} classes, {short(classes.tolist())}; correct it, or train on samples "
            f"of that class too."
        )
    return places
