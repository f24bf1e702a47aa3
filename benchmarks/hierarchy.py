"""A hierarchy of a million classes: files, checks, the tree, comparing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, in_a_fresh_process

from coarse2fine import Hierarchy

CLASSES = 1_000_000
BRANCHES = 4  # children a cluster, on average

ALL = """
import sys
sys.path.insert(0, sys.argv[1])
import hierarchy
hierarchy.measure_all(int(sys.argv[2]))
"""


def tree_of(classes: int, seed: int = 0) -> tuple[list[np.ndarray], list[str], list[list[str]]]:
    """Levels of a random tree, the coarsest first, and names of all classes and clusters."""
    rng = np.random.default_rng(seed)
    levels = [np.arange(classes)]
    while (count := int(levels[0].max()) + 1) > 2 * BRANCHES:
        clusters = count // BRANCHES
        above = np.concatenate([np.arange(clusters), rng.integers(0, clusters, count - clusters)])
        levels.insert(0, rng.permutation(above)[levels[0]])
    counts = [int(level.max()) + 1 for level in levels[:-1]]
    groups = [[f"cluster {at} of {level}" for at in range(n)] for level, n in enumerate(counts)]
    return levels, [f"class {at}" for at in range(classes)], groups


def measure_all(classes: int) -> None:
    """Print how long everything takes, and the most memory of all of it, as JSON."""
    import tempfile

    from measure import memory

    from coarse2fine.agreement import level_agreements

    parts = tree_of(classes)
    taken: dict[str, float] = {}

    def timed(what: str, function: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = function()
        taken[what] = time.perf_counter() - start
        return result

    hierarchy = timed("make and check it", lambda: Hierarchy(*parts))
    labels = np.random.default_rng(1).integers(0, classes, 1_000_000)
    size = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("json", "safetensors"):
            path = Path(folder, f"hierarchy.{suffix}")
            timed(f"save it as {suffix}", lambda path=path: hierarchy.save(path))
            loaded = timed(f"load it from {suffix}", lambda path=path: Hierarchy.load(path))
            size[suffix] = path.stat().st_size
            if not timed(
                f"compare it with the one from {suffix}", lambda it=loaded: it == hierarchy
            ):
                raise RuntimeError(f"{path} holds another hierarchy")
    timed("print its top", lambda: str(hierarchy))
    timed("coarsen 1,000,000 labels", lambda: hierarchy.coarsen(labels, 0))
    timed("number and name its nodes", lambda: hierarchy.nodes)
    timed("thin it to 4 levels", lambda: hierarchy.max_levels(4))
    timed(
        "compare all levels by the adjusted Rand index", lambda: level_agreements(hierarchy, loaded)
    )
    print(json.dumps({"seconds": taken, "size": size, "memory": memory("VmHWM")}))


def rows() -> list[Row]:
    found = in_a_fresh_process(ALL, str(Path(__file__).parent), str(CLASSES))
    name = f"hierarchy of {CLASSES:,} classes"
    size = found["size"]
    detail = f"{size['safetensors'] / 2**20:.0f} MB against {size['json'] / 2**20:.0f} MB"
    smaller = size["json"] / size["safetensors"]
    return [
        *(Row.plain(f"{name}: {what}", taken, " s") for what, taken in found["seconds"].items()),
        Row.at_least(f"{name}: JSON's size to that of safetensors", smaller, 1.5, "×", detail),
        Row.at_most(f"{name}: peak memory of all this", found["memory"] / 2**30, 2, " GB"),
    ]
