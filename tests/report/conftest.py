"""What the tests of the report share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from coarse2fine import Hierarchy

NAMES = ("a", "b", "c", "d")
TARGETS = [0, 0, 1, 1, 2, 2, 3, 3]
BEFORE = [0, 2, 1, 3, 3, 2, 0, 0]  # 3 of 8 are right
AFTER = [0, 0, 1, 1, 2, 0, 3, 0]  # 6 of 8
PREDICTIONS = {"baseline": BEFORE, "continuous": AFTER, "staged": TARGETS}


@pytest.fixture
def tree() -> Hierarchy:
    """Classes a and c are a cluster, and b and d."""
    return Hierarchy.from_levels([[0, 1, 0, 1]], NAMES)


@pytest.fixture
def made(tree: Hierarchy, tmp_path: Path) -> Callable[..., Path]:
    """Write a run of the small comparison above, and return its folder."""

    def made(method: str, seed: int = 0, folder: str = "run", **options: Any) -> Path:
        path = tmp_path / folder / f"seed-{seed}" / method
        given = {
            "method": method,
            "seed": seed,
            "hierarchy": None if method == "baseline" else tree,
            "predictions": PREDICTIONS.get(method, AFTER),
            "targets": TARGETS,
            "class_names": NAMES,
        }
        make_run(path, **given | options)
        return path

    return made
