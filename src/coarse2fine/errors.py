"""The exceptions of the package beside ValueError and TypeError."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtraError(ImportError):
    """An optional library is missing that this part of the package needs."""


class RunError(RuntimeError):
    """A run directory cannot be used."""


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional dependency, or say how to install it.

    Args:
        module: The module's full name.
        extra: The extra of this package that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        raise MissingExtraError(
            f"{library} is needed here and cannot be imported ({error}); install it by "
            f"pip install 'coarse2fine[{extra}]'."
        ) from error
