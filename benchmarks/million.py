"""Cluster a million classes once, exactly or approximately, and say first what it will take.

    python benchmarks/million.py [--approximate | --executor processes:2] [--classes N] [--size E]

Nothing else should run at the same time. It prints the estimate, then a line of JSON with the
time, that of the processors in this process, the most memory that it added, and the levels.
"""

from __future__ import annotations

import argparse
import json
import time

import clustering
import numpy as np
from measure import memory, reset_peak, seconds

from coarse2fine import cluster_embeddings
from coarse2fine._affinity import tiles
from coarse2fine._affinity.maxima import block_maxima
from coarse2fine._util.memory import free_bytes

SAMPLE_TILES = 8  # a side of what the estimate is made from


def estimate(rows: np.ndarray) -> dict[str, float]:
    """Return how long a pass over all tiles takes, and what the maxima of all blocks take."""
    unit = rows[: SAMPLE_TILES * tiles.TILE]
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    block_maxima((unit, None), None)
    sampled = SAMPLE_TILES * (SAMPLE_TILES + 1) / 2
    blocks = len(rows) / tiles.TILE
    a_pass = seconds(lambda: block_maxima((unit, None), None)) / sampled * blocks**2 / 2
    maxima = len(rows) * blocks * (rows.itemsize + 2)
    return {"seconds a pass": a_pass, "GB": (maxima + 2 * rows.nbytes) / 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=128, help="numbers of an embedding")
    parser.add_argument("--approximate", action="store_true")
    parser.add_argument("--executor", help="see cluster_embeddings")
    parser.add_argument("--estimate", action="store_true", help="say what it takes, and stop")
    asked = parser.parse_args()
    rows = clustering.mixture(asked.classes, size=asked.size)
    free = free_bytes()
    print("exact clustering, estimated:", estimate(rows), "free GB:", free and free / 1e9)
    if asked.estimate:
        return
    before = memory("VmRSS")
    reset_peak()
    start, busy = time.perf_counter(), time.process_time()
    found = cluster_embeddings(rows, approximate=asked.approximate, executor=asked.executor)
    taken = {"seconds": time.perf_counter() - start, "CPU seconds": time.process_time() - busy}
    levels = [int(level.max()) + 1 for level in found.levels]
    peak = (memory("VmHWM") - before) / 1e9
    print(json.dumps({**vars(asked), **taken, "GB": peak, "levels": levels}))


if __name__ == "__main__":
    main()
