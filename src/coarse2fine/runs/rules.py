"""Rules for the values of settings: each raises a ValueError that names the setting.

A rule is given the setting's name and a value of the right type, never None.
"""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as short
from typing import Any, get_args

from .._util.imports import imported
from ..methods import METHODS, find_method

Rule = Callable[[str, Any], None]
_MOST = 3e38  # what torch still takes for a number of single precision


def at_least(least: int) -> Rule:
    """Return the rule that a number is finite and at least so much."""

    def check(name: str, value: float) -> None:
        if not least <= value < float("inf"):
            raise ValueError(f"{name} must be at least {least}. Got {short(value)}.")

    return check


def more_than_zero(name: str, value: float) -> None:
    """Raise where a number is not positive, or too large for single precision."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be more than 0. Got {short(value)}.")
    if value > _MOST:
        raise ValueError(f"{name} must be at most {_MOST:g}. Got {short(value)}.")


def share(name: str, value: float) -> None:
    """Raise where a number is not a share that leaves something over."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1. Got {short(value)}.")


def positive_share(name: str, value: float) -> None:
    """Raise where a number is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be more than 0 and less than 1. Got {short(value)}.")


def shares_of_epochs(name: str, value: tuple[float, ...]) -> None:
    """Raise where one of several numbers is not strictly between 0 and 1."""
    if not all(0 < each < 1 for each in value):
        raise ValueError(f"{name} must be shares of the epochs. Got {short(value)}.")


def different_from_zero_on(name: str, value: tuple[int, ...]) -> None:
    """Raise where numbers are none at all, negative or the same."""
    if not value or len(set(value)) < len(value) or min(value) < 0:
        raise ValueError(f"{name} must be different numbers from 0 on. Got {short(value)}.")


def one_of(*names: str, other: str = "") -> Rule:
    """Return the rule that a string is one of some names.

    Args:
        *names: The names.
        other: What else is valid, for the message. Defaults to nothing.
    """

    def check(name: str, value: str) -> None:
        if value not in names:
            raise ValueError(
                f"{name} must be {other}one of {', '.join(names)}. Got {short(value)}."
            )

    return check


def one_of_literal(location: str) -> Rule:
    """Return the rule that a string is one of a Literal's.

    Args:
        location: The Literal, as ``package.module:Name``. It is imported only to check a value,
            as the options of the command line are made without numpy.
    """

    def check(name: str, value: str) -> None:
        one_of(*get_args(imported(location, "Literal")))(name, value)

    return check


def epochs_or_one_of(*names: str) -> Rule:
    """Return the rule that a value is a number of epochs or one of some names."""
    is_number, is_name = at_least(1), one_of(*names, other="a number of epochs, or ")

    def check(name: str, value: int | str) -> None:
        (is_name if isinstance(value, str) else is_number)(name, value)

    return check


def different_columns(name: str, value: str | tuple[str, ...]) -> None:
    """Raise where several columns are none at all, or one of them is there twice."""
    if isinstance(value, tuple) and len(set(value)) < max(len(value), 2):
        raise ValueError(f"{name} must be a column or several different ones. Got {short(value)}.")


def different_methods(name: str, value: tuple[str, ...]) -> None:
    """Raise where one of several is not a method, or is there twice."""
    for method in value:
        if method not in METHODS:  # those need not be imported to know that they are there
            find_method(method)
    if len(set(value)) < len(value):
        raise ValueError(f"{name} must be different. Got {short(value)}.")


def taken_by_methods(name: str, value: dict[str, float]) -> None:
    """Raise where what methods take beside is not named METHOD.NAME, or not taken by it."""
    from ..methods import settings_of

    for key, number in value.items():
        method = str(key).rpartition(".")[0]
        if not method:
            raise ValueError(f"{name} must be named METHOD.NAME. Got {short(key)}.")
        settings_of(method, {key: number})
