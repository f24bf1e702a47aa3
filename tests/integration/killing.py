"""A small comparison in a process of its own that can be killed at a chosen moment.

The processes are forked from a server that has torch loaded, so that each costs little.
"""

import multiprocessing
import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file

from coarse2fine import Hierarchy, fit
from coarse2fine.methods import METHODS as LOCATIONS
from coarse2fine.methods.continuous import Continuous
from coarse2fine.runs import checkpoint
from coarse2fine.runs import writer as run
from coarse2fine.runs.directory import BEST
from coarse2fine.training.trainer import Trainer

# How long to wait for what takes a second or two: more means that it hangs, however busy the
# machine is. Less than the time that pytest gives a test, so that this is what is told.
PATIENCE = 200

METHODS = tuple(LOCATIONS)
LOADED = (
    "coarse2fine.training.fit",
    "coarse2fine.data.sources.objects",
    "coarse2fine.data.sources.tables",
    "coarse2fine.editor",
    "coarse2fine.experiments.reproduce",
    "filelock",
    "pyarrow.csv",
)
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


class Smaller(torch.nn.Linear):
    """What another model's hierarchy comes from."""

    def __init__(self, num_classes):
        super().__init__(8, num_classes)


def samples():
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(240, 8, generator=generator)
    mixing = torch.randn(8, 6, generator=generator)
    return inputs, (inputs @ mixing).argmax(1)


SETTINGS = {
    "accelerator": "cpu",
    "checkpoint_seconds": 0.0,
    "batch_size": 34,  # of an odd last batch
    "learning_rate": 0.01,
    "patience": 0,
}
# Of six classes; with as many epochs, every epoch but the first begins with a level change.
LEVELS = [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2], [0, 1, 2, 2, 3, 3]]


def compare(out, model=Net):
    """Train by every method."""
    return fit(
        samples(),
        model=model,
        methods=METHODS,
        method_settings=METHOD_SETTINGS,
        out=out,
        epochs=3,
        curriculum_epochs=2,
        max_levels=2,
        **SETTINGS,
    )


def change_levels(out):
    """Train by the curriculum alone, at another level in every epoch."""
    return fit(
        samples(),
        model=Net,
        methods=("continuous",),
        hierarchy=Hierarchy.from_levels(LEVELS, [str(number) for number in range(6)]),
        baseline=False,
        out=out,
        epochs=5,
        curriculum_epochs=3,
        **SETTINGS,
    )


def search(out):
    """Search for T, with a hierarchy of a short training of another model: six trainings."""
    return fit(
        samples(),
        model=Net,
        methods=("continuous",),
        hierarchy_model="killing:Smaller",
        hierarchy_epochs=3,
        out=out,
        epochs=6,
        curriculum_epochs="search",
        **SETTINGS,
    )


def compare_for(epochs, out):
    """Train by a curriculum that can go on with more epochs and one that begins anew with them."""
    return fit(
        samples(),
        model=Net,
        methods=("continuous", "staged"),
        hierarchy=Hierarchy.from_levels(LEVELS[:1], [str(number) for number in range(6)]),
        out=out,
        epochs=epochs,
        curriculum_epochs=2,
        **SETTINGS,
    )


TRAININGS = {
    "methods": compare,
    "levels": change_levels,
    "search": search,
    "shorter": partial(compare_for, 3),
    "longer": partial(compare_for, 5),
}


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
    "line": ([run.RunWriter], "log"),
    "stage": ([Trainer], "_begin_stage"),
    "epoch": ([Trainer], "_begin_epoch"),
    "level": ([Continuous], "begin_epoch"),
}


def hurry():
    """Have the process wait for nothing; a kill, unlike a power cut, needs no syncs."""
    torch.set_num_threads(1)
    os.fsync = lambda _: None


def work(out, place=None, call=0, after=False, training="methods"):
    hurry()
    if place is not None:
        holders, name = PLACES[place]
        die_at(holders, name, call, after=after)
    TRAININGS[training](out)


def work_half(out, training):
    """Train until something is to be stored for good, and die amid it as the library would."""
    hurry()

    def half(path, _):
        path.with_name(".tmpA1b2C3").write_bytes(b"half")  # which it renames once it is whole
        die()

    run.save_tensors = half
    TRAININGS[training](out)


def in_server(target, *args):
    """Start a process that is forked from a server which has everything loaded."""
    context = multiprocessing.get_context("forkserver")
    methods = [location.partition(":")[0] for location in LOCATIONS.values()]
    context.set_forkserver_preload([*LOADED, *methods])
    process = context.Process(target=target, args=args)
    process.start()
    return process


def start(*args):
    return in_server(work, *args)


def kill_somewhen(process, out, moments, epochs=6):
    """Kill a process after some epochs, at any moment of the next; it may be over by then."""
    is_due = wait_for_epochs(process, out, moments, epochs)
    process.kill()
    process.join()
    assert is_due, "it hung"
    return process.exitcode == -signal.SIGKILL


def wait_for_epochs(process, out, moments, epochs, seconds=PATIENCE):
    """Wait for some epochs and a moment more, and return whether they, or the end, came."""
    wanted, ends = epochs_logged(out) + moments.randint(0, epochs), time.monotonic() + seconds
    while process.is_alive() and epochs_logged(out) < wanted:
        if time.monotonic() > ends:
            return False
        time.sleep(0.004)
    time.sleep(moments.uniform(0, 0.03))
    return True


def epochs_logged(out):
    # Folders may vanish meanwhile, which a walk, unlike a glob, takes as it comes.
    found = [Path(folder, run.METRICS) for folder, _, files in os.walk(out) if run.METRICS in files]
    return sum(lines_in(path) for path in found)


def lines_in(path):
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:  # it has vanished since
        return 0


def exit_code(process, seconds=PATIENCE):
    """Wait for a process, and return how it ended, None where it had to be ended from here."""
    process.join(seconds)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    return code


def kills_itself(*args):
    """Start a training that is to die at some place, and return whether it did."""
    return exit_code(start(*args)) == -signal.SIGKILL


def finish(process):
    """Wait for a process that nobody kills; it ends well."""
    assert exit_code(process) == 0


def leftovers(out):
    """What is neither data nor a lock: temporary files, and checkpoints to go on from.

    A finished run keeps its last checkpoint, to go on from if it is allowed more epochs; of a
    sweep, whose epochs are declared, only a baseline does, as a longer method may have it go on.
    """
    is_sweep = not (Path(out) / run.CONFIG).is_file()
    found = []
    for path in sorted(Path(out).rglob("*")):
        is_hidden = path.name.startswith(".") and not path.name.endswith(".lock")
        is_checkpoint = path.parent.name == run.CHECKPOINT and path.is_dir()
        is_last = is_checkpoint and path == max(path.parent.glob("[0-9]*"))
        is_kept = is_last and (not is_sweep or path.parents[1].name.startswith("baseline"))
        if is_hidden or (is_checkpoint and not is_kept):
            found.append(str(path.relative_to(out)))
    return found


def outcome(out):
    """All that must be the same to the bit: weights, predictions, metrics, results.

    Without the copy of the best run and the checkpoints to go on from, which a sweep need not
    keep.
    """
    found = {}
    left_out = [Path(out, BEST), *Path(out).rglob(f"{run.CHECKPOINT}/0*")]
    kept = [path for path in sorted(Path(out).rglob("*")) if not {*left_out} & {*path.parents}]
    for path in (path for path in kept if path.suffix == ".safetensors"):
        found[str(path.relative_to(out))] = {k: v.tolist() for k, v in load_file(path).items()}
    for path in (path for path in kept if path.name == run.METRICS):
        lines = run.Run(path.parent).metrics()
        timings = ("seconds", "images_per_second")
        found[str(path.relative_to(out))] = [
            {k: v for k, v in line.items() if k not in timings} for line in lines
        ]
    for path in (path for path in kept if path.name == run.RESULT):
        if path.parent != Path(out):
            result = run.parse_json(path)["result"]
            times = ("seconds", "hierarchy_seconds")
            found[str(path.relative_to(out))] = {k: v for k, v in result.items() if k not in times}
    return found
