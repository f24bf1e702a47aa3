"""Training methods, one file each, behind one protocol: `coarse2fine.methods.base.Method`."""

from __future__ import annotations

from reprlib import repr as short
from typing import TYPE_CHECKING

from .._imports import imported

if TYPE_CHECKING:
    from .base import Method

# What can be compared with plain training, imported when used.
METHODS = {
    "continuous": "coarse2fine.methods.continuous:Continuous",
    "staged": "coarse2fine.methods.staged:Staged",
    "spl": "coarse2fine.methods.self_paced:SelfPaced",
    "dp-l": "coarse2fine.methods.data_parameters:ClassParameters",
    "dp-li": "coarse2fine.methods.data_parameters:InstanceParameters",
    "multitask": "coarse2fine.methods.multitask:Multitask",
    "nbdt": "coarse2fine.methods.nbdt:NBDT",
}
PLAIN = "plain"


def find_method(name: str) -> type[Method]:
    """Return the class of a method.

    Args:
        name: ``"plain"``, one of `METHODS`, or one of your own as ``package.module:Class``.

    Examples:
        >>> find_method("staged").__name__
        'Staged'
    """
    from .base import Method

    location = "coarse2fine.methods.plain:Plain" if name == PLAIN else METHODS.get(name, name)
    if ":" not in location:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, or one of your own as "
            f"package.module:Class. Got {short(name)}."
        )
    found = imported(location, "method")
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise TypeError(f"method {short(name)} must be a subclass of {Method.__module__}.Method.")
    return found
