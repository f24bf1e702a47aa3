"""Training methods, one file each, behind one protocol: `coarse2fine.methods.base.Method`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from .._util.imports import imported
from .._util.plugins import brought, names

if TYPE_CHECKING:
    from .base import Method, Plan

# What can be compared with plain training. Names of places, not classes: to list the methods,
# as the command line does, need not import torch.
METHODS = {
    "continuous": "coarse2fine.methods.continuous:Continuous",
    "staged": "coarse2fine.methods.staged:Staged",
    "spl": "coarse2fine.methods.self_paced:SelfPaced",
    "dp-l": "coarse2fine.methods.data_parameters:ClassParameters",
    "dp-li": "coarse2fine.methods.data_parameters:InstanceParameters",
    "multitask": "coarse2fine.methods.multitask:Multitask",
    "nbdt": "coarse2fine.methods.nbdt:NBDT",
    "hxe": "coarse2fine.methods.hxe:HXE",
    "soft-labels": "coarse2fine.methods.soft_labels:SoftLabels",
    "hace": "coarse2fine.methods.hace:HACE",
}
PLAIN = "plain"
_FOLDERS = ("baseline", "best", "hierarchy", "seed")  # what else there is beside runs of methods

Settings = Mapping[str, float]


def find_method(name: str) -> type[Method]:
    """Return the class of a method.

    Args:
        name: ``"plain"``, one of `METHODS`, one that an installed package brings, or one of your
            own as ``package.module:Class``.

    Examples:
        >>> find_method("staged").__name__
        'Staged'
    """
    from .base import Method

    location = "coarse2fine.methods.plain:Plain" if name == PLAIN else METHODS.get(name, name)
    found = imported(location, "method") if ":" in location else _brought(name)
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise TypeError(f"method {short(name)} must be a subclass of {Method.__module__}.Method.")
    return found


def _brought(name: str) -> Any:
    """Return what an installed package brings as a method."""
    found = brought(name, "methods", "method")
    if found is None:
        raise ValueError(
            f"method must be one of {names('methods', METHODS)}, or one of your own as "
            f"package.module:Class. Got {short(name)}."
        )
    if name.partition("-")[0] in _FOLDERS:
        raise ValueError(
            f"method {name!r} of an installed package is called like a folder of a run; give it "
            f"as package.module:Class."
        )
    return found


def weighs_classes(name: str) -> bool:
    """Return whether a method's loss counts samples by the weights of their classes.

    Only the class that defines the loss can tell: one that inherits from a method and has a
    ``forward`` of its own says so itself.

    Args:
        name: See `find_method`.

    Examples:
        >>> weighs_classes("staged")
        True
    """
    return _declares(name, "weighs_classes")


def takes_nodes(name: str) -> bool:
    """Return whether a method learns from samples that are labelled with a cluster of classes.

    As with `weighs_classes`, a class with a ``forward`` of its own says so itself.

    Args:
        name: See `find_method`.

    Examples:
        >>> takes_nodes("continuous"), takes_nodes("spl")
        (True, False)
    """
    return _declares(name, "takes_nodes")


def _declares(name: str, what: str) -> bool:
    """Return what the class that defines a method's loss declares of it."""
    own = next(kind for kind in find_method(name).__mro__ if "forward" in vars(kind))
    return bool(vars(own).get(what, False))


def build_method(name: str, plan: Plan, settings: Settings | None = None) -> Method:
    """Return a new method for a plan.

    Args:
        name: See `find_method`.
        plan: What every method is given.
        settings: Settings of any methods, such as ``{"nbdt.weight": 10}``; those of other
            methods are ignored. Defaults to None.
    """
    kind: Any = find_method(name)
    method: Method = kind(plan, **settings_of(name, settings or {}))
    if plan.class_weights is not None and method.class_weights is None:
        raise ValueError(
            f"the method {name} has not been given the weights of the classes; let its "
            f"constructor call super().__init__(plan)."
        )
    if plan.labels is not None and getattr(method, "candidates", None) is None:
        raise ValueError(
            f"the method {name} has not been given what its targets are; let its constructor call "
            f"super().__init__(plan)."
        )
    return method


def settings_of(name: str, settings: Settings) -> dict[str, float]:
    """Return the settings of one method, under its own names for them, checked.

    Examples:
        >>> settings_of("nbdt", {"nbdt.weight": 10, "spl.growth": 1.5})
        {'weight': 10}
    """
    # At the last dot: a method of one's own, package.module:Class, has dots of its own.
    split = [(*key.rpartition("."), value) for key, value in settings.items()]
    own = {setting: value for method, _, setting, value in split if method == name}
    kind = find_method(name)
    defaults = _defaults(kind)
    for setting, value in own.items():
        if setting not in defaults:
            known = f"but {', '.join(defaults)}" if defaults else "nor any other"
            raise ValueError(f"the method {name} has no setting {short(setting)}, {known}.")
        is_whole = isinstance(defaults[setting], int)
        bounds = kind.least.get(setting, -math.inf), kind.below.get(setting, math.inf)
        _check_value(f"{name}.{setting}", value, bounds, is_whole)
    return own


def _check_value(setting: str, value: float, bounds: tuple[float, float], is_whole: bool) -> None:
    least, below = bounds
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < below:
        what = "an integer" if is_whole else "a number"
        from_ = "" if math.isinf(least) else f" of at least {least:g}"
        to = "" if math.isinf(below) else f" and less than {below:g}"
        raise ValueError(f"{setting} must be {what}{from_}{to}. Got {short(value)}.")


def _defaults(kind: type[Method]) -> dict[str, float]:
    """Return the keyword arguments of a method that have defaults, inherited ones included.

    The signature is the only declaration of a setting. A base's settings are the method's too
    as long as its constructor passes them on, by ``**settings``.
    """
    from .base import Method

    found: dict[str, float] = {}
    for base in kind.__mro__:
        if issubclass(base, Method) and base is not Method and "__init__" in vars(base):
            parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
            own = {p.name: p.default for p in parameters if p.default is not p.empty}
            found = {**own, **found}
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return found
