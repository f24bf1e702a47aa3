"""Make a method from its plan and from the settings that are its own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

from . import find_method
from .base import Method, Plan

Settings = Mapping[str, float]


def make_method(name: str, plan: Plan, settings: Settings | None = None) -> Method:
    """Return a method for a plan.

    Args:
        name: See `find_method`.
        plan: What every method is given.
        settings: Of any methods, such as ``{"nbdt.weight": 10}``; those of other methods are
            left alone. Defaults to None.
    """
    kind: Any = find_method(name)
    made: Method = kind(plan, **settings_of(name, settings or {}))
    return made


def settings_of(name: str, settings: Settings) -> dict[str, float]:
    """Return the settings that are a method's own, by the names it calls them, checked.

    Examples:
        >>> settings_of("nbdt", {"nbdt.weight": 10, "spl.growth": 1.5})
        {'weight': 10}
    """
    split = [(*key.rpartition("."), value) for key, value in settings.items()]
    own = {setting: value for method, _, setting, value in split if method == name}
    kind = find_method(name)
    defaults = _defaults(kind)
    for setting, value in own.items():
        if setting not in defaults:
            known = f"but {', '.join(defaults)}" if defaults else "nor any other"
            raise ValueError(f"the method {name} has no setting {short(setting)}, {known}.")
        is_whole = isinstance(defaults[setting], int)
        _check_value(setting, value, kind.least.get(setting, -math.inf), is_whole)
    return own


def _check_value(setting: str, value: float, least: float, is_whole: bool) -> None:
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < math.inf:
        what = "an integer" if is_whole else "a number"
        bound = "" if math.isinf(least) else f" of at least {least:g}"
        raise ValueError(f"{setting} must be {what}{bound}. Got {short(value)}.")


def _defaults(kind: type[Method]) -> dict[str, float]:
    """Return the keyword arguments of a method, and of those it is made from, with defaults."""
    found: dict[str, float] = {}
    for base in kind.__mro__:
        if issubclass(base, Method) and base is not Method and "__init__" in vars(base):
            parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
            own = {p.name: p.default for p in parameters if p.default is not p.empty}
            found = {**own, **found}
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return found
