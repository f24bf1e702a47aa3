"""Print what the core's tests need, with the package's own needs at the lowest versions allowed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import dependencies
from packaging.requirements import Requirement

# What the core's tests need beside the core, to compare with or to take models from.
OTHERS = {"dev": "pandas", "sklearn": "scikit-learn", "transformers": "transformers"}
# As constraints.txt pins them: users do not need them.
TEST_TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")


def lowest(requirement: Requirement) -> str:
    """Return the version that a requirement such as ``numpy>=1.26`` begins with."""
    return next(part.version for part in requirement.specifier if part.operator == ">=")


def pins() -> Iterator[str]:
    """Yield the requirements, as pip takes them."""
    for extra, requirements in dependencies.direct(OTHERS).items():
        for each in requirements:
            if extra == dependencies.CORE or each.name == OTHERS[extra]:
                yield f"{each.name}=={lowest(each)}"
    for line in (dependencies.ROOT / "constraints.txt").read_text().splitlines():
        if line.partition("==")[0] in TEST_TOOLS:
            yield line


if __name__ == "__main__":
    sys.stdout.writelines(f"{pin}\n" for pin in pins())
