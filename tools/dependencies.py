"""What the package needs at run time: by itself, by each extra, and all that these need in turn."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NAME = "coarse2fine"
CORE = ""
ALL = "all"  # the extra that stands for the others


def direct() -> dict[str, list[Requirement]]:
    """Return what the package asks for, by extra; `CORE` is what is always needed."""
    project = _pyproject()["project"]
    extras = project["optional-dependencies"]
    lists = {CORE: project["dependencies"], **extras}
    return {extra: _parsed(lines) for extra, lines in lists.items() if extra != ALL}


def groups() -> dict[str, list[Requirement]]:
    """Return the tools of those who work on the package itself, by dependency group."""
    return {group: _parsed(lines) for group, lines in _pyproject()["dependency-groups"].items()}


def needed(requirements: Iterable[Requirement]) -> dict[str, Distribution]:
    """Return what requirements lead to in this environment, by its canonical name, sorted.

    Args:
        requirements: Of this package, or of any.

    Raises:
        SystemExit: Something of it is not installed.
    """
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(requirement, CORE) for requirement in requirements]
    while left:
        requirement, extra = left.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        found[name] = _installed(requirement.name)
        for wanted in {CORE, *requirement.extras}:
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                left += [(Requirement(line), wanted) for line in found[name].requires or ()]
    found.pop(NAME, None)  # an extra may name others of this package
    return dict(sorted(found.items()))


def at_run_time() -> dict[str, Distribution]:
    """Return all that is needed at run time with every extra."""
    return needed(requirement for lines in direct().values() for requirement in lines)


def version_of(found: Distribution) -> str:
    """Return a version without what only names the build, such as ``+cpu``."""
    return found.version.partition("+")[0]


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _parsed(lines: Iterable[str]) -> list[Requirement]:
    return [Requirement(line) for line in lines]


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        sys.exit(f"{name} is not installed here; install all extras and the group audit.")
