"""Affinity clustering against scipy's linkage and a loop over clusters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, compare, in_a_fresh_process, seconds
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from coarse2fine import Hierarchy, cluster_embeddings

SIZE = 512


def mixture(classes: int, seed: int = 0, noise: float = 0.6, size: int = SIZE) -> np.ndarray:
    """Embeddings of a hierarchy: about 100 classes a group, 10 a group within it."""
    rng = np.random.default_rng(seed)
    coarse = rng.standard_normal((max(2, classes // 100), size), dtype=np.float32)
    count = max(4, classes // 10)
    fine = coarse[rng.integers(0, len(coarse), count)]
    fine += noise * rng.standard_normal(fine.shape, dtype=np.float32)
    rows = fine[rng.integers(0, count, classes)]
    for part in np.array_split(rows, max(1, classes // 4096)):
        part += noise * rng.standard_normal(part.shape, dtype=np.float32)
    return rows


def unstructured(classes: int, seed: int = 0) -> np.ndarray:
    """Embeddings without any structure, the hardest case."""
    return np.random.default_rng(seed).standard_normal((classes, SIZE), dtype=np.float32)


def cosine_distances(rows: np.ndarray) -> np.ndarray:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    distances = unit @ unit.T
    np.subtract(1, distances, out=distances)
    np.fill_diagonal(distances, 0)
    return distances


def by_scipy(rows: np.ndarray) -> np.ndarray:
    condensed = squareform(cosine_distances(rows), checks=False)
    return linkage(condensed, "single")


def by_loop(rows: np.ndarray) -> list[np.ndarray]:
    """Affinity clustering in the direct way: every round looks at every cluster in turn.

    As in the paper authors' release, in float64, with random noise that breaks ties.
    """
    noise = np.random.default_rng(0).random((len(rows), len(rows)))
    distances = cosine_distances(rows) + 1e-7 * noise
    labels = np.arange(len(rows))
    levels = [labels]
    while labels.max() > 0:
        joined = np.arange(labels.max() + 1)
        for cluster in range(labels.max() + 1):
            inside = labels == cluster
            between = distances[inside][:, ~inside]
            nearest = labels[~inside][np.unravel_index(between.argmin(), between.shape)[1]]
            joined[joined == joined[nearest]] = joined[cluster]
        labels = np.unique(joined, return_inverse=True)[1][labels]
        levels.append(labels)
    return levels


LARGE = """
import json, sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
import clustering
from measure import memory, reset_peak
from coarse2fine import cluster_embeddings

imports = memory("VmRSS")
reset_peak()
rows = getattr(clustering, sys.argv[3])(int(sys.argv[2]))

def sgemm_rate(seconds):
    left, right = rows[:4096], rows[4096:8192]
    out = np.empty((len(left), len(right)), np.float32)
    np.matmul(left, right.T, out=out)
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        np.matmul(left, right.T, out=out)
        done += 2 * left.shape[1] * out.size
    return done / (time.perf_counter() - start)

before = sgemm_rate(4)
start = time.perf_counter()
found = cluster_embeddings(rows)
taken = time.perf_counter() - start
peak = memory("VmHWM") - imports
after = sgemm_rate(4)
print(json.dumps({
    "seconds": taken,
    "memory": peak,
    "sgemm": [before, after],
    "rate": 2 * rows.shape[1] * len(rows) ** 2 / taken,
    "levels": [int(level.max()) + 1 for level in found.levels],
}))
"""


def large(classes: int, kind: str = "mixture") -> dict[str, Any]:
    """Cluster in a fresh process; the rate counts two passes over half of the K×K products."""
    return in_a_fresh_process(LARGE, str(Path(__file__).parent), str(classes), kind)


def rows() -> list[Row]:
    result = []
    for classes, bound, loop_bound, repeats in ((1_000, 1.2, 6, 25), (10_000, 2.5, 14, 5)):
        data = mixture(classes)
        found = compare(
            lambda data=data: cluster_embeddings(data),
            lambda data=data: by_scipy(data),
            repeats=repeats,
        )
        detail = f"{found.ours * 1e3:.3g} ms against {found.peer * 1e3:.3g} ms"
        what = f"clustering, K = {classes:,}, against scipy's single linkage"
        result.append(Row.at_least(what, 1 / found.ratio, bound, "×", detail))
        loop = seconds(lambda data=data: by_loop(data))
        what = f"clustering, K = {classes:,}, against a loop over clusters"
        result.append(Row.at_least(what, loop / found.ours, loop_bound, "×", f"{loop:.3g} s"))
    found = large(10_000)
    result.append(Row.at_most("its peak memory, K = 10,000", found["memory"] / 2**30, 0.5, " GB"))
    for classes in (50_000, 100_000):
        result += large_rows(f"K = {classes:,}", large(classes), promised=True)
    result += large_rows("K = 50,000, unstructured", large(50_000, "unstructured"), promised=False)
    return result + head_rows()


def large_rows(what: str, found: dict[str, Any], *, promised: bool) -> list[Row]:
    share = found["rate"] / (sum(found["sgemm"]) / 2)
    rates = f"sgemm {found['sgemm'][0] / 1e9:.0f} and {found['sgemm'][1] / 1e9:.0f} Gflop/s"
    detail = f"{found['seconds']:.1f} s, {rates}"
    speed = f"clustering, {what}, of sgemm's rate over two passes"
    memory = f"its peak memory, {what}"
    if not promised:
        return [
            Row.plain(speed, share, "", detail),
            Row.plain(memory, found["memory"] / 2**30, " GB"),
        ]
    return [
        Row.at_least(speed, share, 0.75, "", detail),
        Row.at_most(memory, found["memory"] / 2**30, 1, " GB"),
    ]


def head_rows() -> list[Row]:
    """Cluster trained final layers, where a folder of them is given."""
    folder = os.environ.get("COARSE2FINE_DATA")
    result = []
    for path in sorted(Path(folder, "heads").glob("*.npz")) if folder else []:
        with np.load(path, allow_pickle=False) as content:
            weights = content["W"].astype(np.float32)
        hierarchy = Hierarchy.from_embeddings(weights)
        taken = seconds(lambda weights=weights: Hierarchy.from_embeddings(weights))
        levels = " → ".join(map(str, hierarchy.num_clusters))
        what = f"hierarchy of the head {path.stem}, {weights.shape[0]:,}×{weights.shape[1]}"
        result.append(Row.plain(what, taken * 1e3, " ms", levels))
    return result
