"""Several processes of torch.distributed that run one function, each with its own rank."""

import multiprocessing
import pickle
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from coarse2fine import RunError

# What the processes are forked with, so that each takes a moment to start.
PRELOAD = [
    "coarse2fine.linear_loss",
    "torch._dynamo",  # which optimisers import when they are first used
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.tensor",
]
SECONDS = 120  # after which it is said to hang


def run_together(processes, function, *args):
    """Return what `function(mesh, *args)` returns in each process."""
    found = outcomes(processes, function, *args)
    errors = [outcome for outcome in found if isinstance(outcome, Exception)]
    if errors:  # the others only say that one is gone
        raise min(errors, key=lambda error: isinstance(error, RunError))
    return found


def outcomes(processes, function, *args, peer_seconds=60.0):
    """The same, or the error that it raises; None of a process that has died."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(rank) for rank in range(processes)]
        started = []
        for rank, path in enumerate(paths):
            given = rank, processes, path, peer_seconds, function, args
            started.append(context.Process(target=_take_part, args=given))
            started[-1].start()
        ends = time.monotonic() + SECONDS
        try:
            for process in started:
                process.join(max(0, ends - time.monotonic()))
            assert not any(process.is_alive() for process in started), "it hangs"
        finally:
            for process in started:
                process.kill()
                process.join()
        return [pickle.loads(path.read_bytes()) if path.exists() else None for path in paths]


def _take_part(rank, processes, path, peer_seconds, function, args):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{path.parent / 'store'}",
        rank=rank,
        world_size=processes,
        timeout=timedelta(seconds=peer_seconds),
    )
    try:
        found = function(init_device_mesh("cpu", (processes,)), *args)
    except Exception as error:  # for the test to look at
        error.add_note(traceback.format_exc())
        found = error
    path.with_suffix(".part").write_bytes(pickle.dumps(found))
    path.with_suffix(".part").rename(path)
