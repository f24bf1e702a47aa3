"""Approximate clustering beside the exact one: how much faster, and how far the two agree."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import clustering
import numpy as np
from measure import Row, in_a_fresh_process

BOTH = """
import sys
sys.path.insert(0, sys.argv[1])
import approximate
approximate.measure_both(sys.argv[2], int(sys.argv[3]))
"""


def embeddings(kind: str, classes: int) -> np.ndarray:
    """Return embeddings of a kind of `clustering`, or those of a trained head's file."""
    if kind in ("mixture", "unstructured"):
        return np.asarray(getattr(clustering, kind)(classes))
    with np.load(kind, allow_pickle=False) as content:
        return np.asarray(content["W"], np.float32)


def measure_both(kind: str, classes: int) -> None:
    """Print how long both take, the memory that each adds, and how far they agree, as JSON."""
    import json

    from measure import memory, reset_peak

    from coarse2fine import Hierarchy
    from coarse2fine.agreement import level_agreements

    rows = embeddings(kind, classes)
    Hierarchy.from_embeddings(rows[:300], approximate=True)  # faiss is imported
    made, taken, peak = [], [], []
    for approximate in (True, False):
        before = memory("VmRSS")
        reset_peak()
        start = time.perf_counter()
        made.append(Hierarchy.from_embeddings(rows, approximate=approximate))
        taken.append(time.perf_counter() - start)
        peak.append(memory("VmHWM") - before)
    agreements = level_agreements(*made)
    print(json.dumps({"seconds": taken, "memory": peak, "agreements": agreements}))


def sources() -> Iterator[tuple[str, str, int]]:
    """Yield what to call each, its kind, and how many classes."""
    for classes in (10_000, 100_000):
        yield f"mixture, K = {classes:,}", "mixture", classes
    yield "unstructured, K = 10,000", "unstructured", 10_000
    folder = os.environ.get("COARSE2FINE_DATA")
    for path in sorted(Path(folder, "heads").glob("*.npz")) if folder else []:
        yield f"the head {path.stem}", str(path), 0


def rows() -> list[Row]:
    result = []
    for name, kind, classes in sources():
        found = in_a_fresh_process(BOTH, str(Path(__file__).parent), kind, str(classes))
        fast, exact = found["seconds"]
        detail = f"{fast:.2f} s against {exact:.2f} s"
        result.append(
            Row.plain(f"approximate clustering, {name}, against exact", exact / fast, "×", detail)
        )
        levels = ", ".join(f"{value:.3f}" for value in found["agreements"])
        what = f"its adjusted Rand index with the exact one, {name}"
        result.append(Row.plain(what, min(found["agreements"]), " at least", f"{levels}"))
        peaks = [value / 2**30 for value in found["memory"]]
        detail = f"exact {peaks[1]:.2f} GB"
        result.append(Row.plain(f"its peak memory, {name}", peaks[0], " GB", detail))
    return result
