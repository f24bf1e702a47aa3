"""A small comparison in a process of its own that can be killed at a chosen moment.

The processes are forked from a server that has torch loaded, so that each costs little.
"""

import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import torch
from safetensors.torch import load_file

from coarse2fine import fit
from coarse2fine.methods import METHODS as LOCATIONS
from coarse2fine.training import checkpoint, run
from coarse2fine.training.loop import Trainer

METHODS = tuple(LOCATIONS)
# So that temperatures of samples move, and ever more samples count, within a few epochs.
METHOD_SETTINGS = {
    "dp-li.instance_init": 1.0,
    "dp-li.instance_learning_rate": 10.0,
    "spl.growth": 1.1,
}


class Net(torch.nn.Module):
    """With dropout and batch norm, so that every kind of state matters."""

    def __init__(self, num_classes):
        super().__init__()
        self.body = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.drop = torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(16, num_classes)

    def forward(self, inputs):
        return self.head(self.drop(self.norm(self.body(inputs)).relu()))


def samples():
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(240, 8, generator=generator)
    mixing = torch.randn(8, 6, generator=generator)
    return inputs, (inputs @ mixing).argmax(1)


def compare(out, model=Net):
    return fit(
        samples(),
        model=model,
        methods=METHODS,
        method_settings=METHOD_SETTINGS,
        out=out,
        accelerator="cpu",
        checkpoint_seconds=0.0,
        epochs=3,
        curriculum_epochs=2,
        batch_size=34,  # of an odd last batch
        learning_rate=0.01,
        max_levels=2,
        patience=0,
    )


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(holders, name, call, *, after=False):
    """Have the process kill itself before, or just after, the n-th call of a function."""
    calls = 0
    original = getattr(holders[0], name)

    def counting(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == call and not after:
            die()
        result = original(*args, **kwargs)
        if calls == call:
            die()
        return result

    for holder in holders:
        setattr(holder, name, counting)


# Every place at which something on the disk, the level or the model changes.
PLACES = {
    "sync": ([os], "fsync"),
    "replace": ([os], "replace"),
    "rename": ([Path], "rename"),
    "remove": ([shutil], "rmtree"),
    "tensors": ([checkpoint, run], "save_tensors"),
    "checkpoint": ([run], "save_checkpoint"),
    "line": ([run.Run], "log"),
    "stage": ([Trainer], "_begin_stage"),
    "epoch": ([Trainer], "_train_epoch"),
}


def hurry():
    """Have the process wait for nothing; a kill, unlike a power cut, needs no syncs."""
    torch.set_num_threads(1)
    os.fsync = lambda _: None


def work(out, place=None, call=0, after=False):
    hurry()
    if place is not None:
        holders, name = PLACES[place]
        die_at(holders, name, call, after=after)
    compare(out)


def start(*args):
    context = multiprocessing.get_context("forkserver")
    methods = [location.partition(":")[0] for location in LOCATIONS.values()]
    context.set_forkserver_preload(
        ["coarse2fine.training.fit", "coarse2fine.data.objects", "filelock", *methods]
    )
    process = context.Process(target=work, args=args)
    process.start()
    return process


def outcome(out):
    """All that must be the same to the bit: weights, predictions, metrics, results."""
    found = {}
    for path in sorted(Path(out).rglob("*.safetensors")):
        found[str(path.relative_to(out))] = {k: v.tolist() for k, v in load_file(path).items()}
    for path in sorted(Path(out).rglob(run.METRICS)):
        lines = run.Run(path.parent, is_writer=False).metrics()
        timings = ("seconds", "images_per_second")
        kept = [{k: v for k, v in line.items() if k not in timings} for line in lines]
        found[str(path.relative_to(out))] = kept
    for path in sorted(Path(out).rglob(run.RESULT)):
        if path.parent != Path(out):
            result = run.parse_json(path)["result"]
            found[str(path.relative_to(out))] = {k: v for k, v in result.items() if k != "seconds"}
    return found
