"""Print what the core's tests need, with the package's own needs at the lowest versions allowed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain

import dependencies
from packaging.requirements import Requirement

# What the core's tests need beside the core, to compare with or to take models from.
OTHERS = ("pandas", "scikit-learn", "transformers")
# As constraints.txt pins them: users do not need them.
TEST_TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")


def lowest(requirement: Requirement) -> str:
    """Return the version that a requirement such as ``numpy>=1.26`` begins with."""
    return next(part.version for part in requirement.specifier if part.operator == ">=")


def pins() -> Iterator[str]:
    """Yield the requirements, as pip takes them."""
    asked = dependencies.direct()
    core = asked.pop(dependencies.CORE)
    for each in chain(core, *asked.values(), *dependencies.groups().values()):
        if each in core or each.name in OTHERS:
            yield f"{each.name}=={lowest(each)}"
    for line in (dependencies.ROOT / "constraints.txt").read_text().splitlines():
        if line.partition("==")[0] in TEST_TOOLS:
            yield line


if __name__ == "__main__":
    sys.stdout.writelines(f"{pin}\n" for pin in pins())
