"""Clusters embeddings by the processes of torchrun: FOLDER [differ | die | fail]."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from coarse2fine import cluster_embeddings
from coarse2fine._affinity import maxima


def main():
    folder, how = Path(sys.argv[1]), (*sys.argv[2:], "")[0]
    rank = int(os.environ["RANK"])
    rows = np.load(folder / "rows.npy")
    block_maxima = maxima.block_maxima

    def disturbed(left, right):
        if rank == 1 and how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 1 and how == "fail":
            raise MemoryError("no room")
        return block_maxima(left, right)

    maxima.block_maxima = disturbed
    if rank == 1 and how == "differ":
        rows[7] += 1
    try:
        found = cluster_embeddings(rows, executor="torchrun")
    except Exception as error:
        (folder / f"error-{rank}.txt").write_text(f"{type(error).__name__}: {error}")
        os._exit(1)  # gloo's threads may wait for the others
    np.savez(folder / f"{rank}.npz", *found.levels, edges=found.edges, heights=found.heights)


if __name__ == "__main__":
    main()
