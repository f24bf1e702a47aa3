"""Objects named as ``package.module:name``, so that settings can name the user's own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import Any

from .text import brief


def imported(location: str, what: str) -> Any:
    """Return the object at ``package.module:name``, which may be in the current directory.

    Args:
        location: Where it is.
        what: What it is, for error messages.

    Examples:
        >>> imported("math:pi", "number")
        3.141592653589793
    """
    module_name, _, attribute = location.partition(":")
    # Our own modules are never looked for in the current directory, where a file of the same name
    # could take their place.
    is_own = module_name.partition(".")[0] != __package__.partition(".")[0]
    named = f"{what} {brief(repr(location))}"
    if not module_name or module_name.startswith(".") or not attribute or ":" in attribute:
        raise ValueError(f"{named} must have the form package.module:callable.")
    try:
        with _current_directory_importable() if is_own else nullcontext():
            module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:  # ValueError: a name that no file can have
        raise ValueError(f"{named} cannot be imported: {brief(error)}.") from error
    try:
        return attrgetter(attribute)(module)
    except AttributeError as error:
        raise ValueError(
            f"{named} cannot be found: {module_name} has no {brief(attribute)}."
        ) from error


@contextmanager
def _current_directory_importable() -> Iterator[None]:
    """Look for modules in the current directory first, as `python -m` does."""
    directory = str(Path.cwd())
    importlib.invalidate_caches()  # the file may be newer than Python's list of the directory
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        sys.path.remove(directory)
