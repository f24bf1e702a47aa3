"""What the package needs at run time: by itself, by each extra, and all that these need in turn."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NAME = "coarse2fine"
CORE = ""
# Extras for those who work on the package itself.
NOT_AT_RUN_TIME = ("all", "audit", "dev", "docs", "torture")


def direct(include: Iterable[str] | None = None) -> dict[str, list[Requirement]]:
    """Return what pyproject.toml asks for, by extra; `CORE` is what is always needed.

    Args:
        include: The extras. Defaults to None: all that are of use at run time.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    if include is None:
        include = [name for name in extras if name not in NOT_AT_RUN_TIME]
    lists = {CORE: project["dependencies"]} | {name: extras[name] for name in include}
    return {extra: [Requirement(line) for line in lines] for extra, lines in lists.items()}


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


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        sys.exit(f"{name} is not installed here; install the extras dev and audit.")
