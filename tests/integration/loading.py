"""Much of everything: runs, classes, epochs. Each function checks and returns what it did."""

import hashlib
import json
import os
import resource
import time
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path

import killing
import numpy as np
import tiny
import torch
from made_runs import make_comparison

from coarse2fine import CoarseToFineLoss, Hierarchy, fit
from coarse2fine.executors import workers
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.runner import Observer
from coarse2fine.report import write_report
from coarse2fine.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from coarse2fine.runs.directory import CHECKPOINT, METRICS, Run
from coarse2fine.training.progress import Watcher

MEGABYTE = 1 << 20


@contextmanager
def timed(figures, what):
    """Add how long something took to the figures."""
    started = time.perf_counter()
    yield
    figures[f"seconds_{what}"] = round(time.perf_counter() - started, 2)


def peak():
    """Return the most memory that this process has had, in megabytes."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# --------------------------------------------------------------------------------- many runs


def memory_of(pid):
    """Return how much of a process is in memory, in megabytes."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


class Weighing(Observer):
    """Notes the memory of all processes together after every run."""

    def __init__(self):
        self.megabytes = []

    def done(self, task, result):  # noqa: ARG002
        pids = [os.getpid(), *(child.pid for child in active_children())]
        self.megabytes.append(sum(map(memory_of, pids)))


def many_runs(folder, count=500):
    """Carry out so many trainings over two processes; all are what `fit` makes by itself.

    The current directory must be the folder, and this one importable by the processes.
    """
    tiny.write_data(folder)
    seeds = tuple(range(count // (1 + len(tiny.METHODS))))
    weighing, figures = Weighing(), {}
    with timed(figures, "sweep"):
        errors = Reproduction("tiny:TINY", seeds=seeds, out="runs").run("processes:2", weighing)
    assert errors == {}
    with workers("processes:2") as found:
        alone = tiny.compare(folder, found.threads, seeds=seeds)
    made = killing.outcome(folder / "runs" / tiny.SETTING.folder)
    assert made == killing.outcome(alone)
    megabytes = weighing.megabytes
    settled = len(megabytes) // 10
    return figures | {
        "runs": sum(name.endswith("result.json") for name in made),
        "megabytes_after_a_tenth": round(megabytes[settled]),
        "megabytes_most_after_that": round(max(megabytes[settled:])),
    }


# ------------------------------------------------------------------------------ many classes


def many_classes(folder, count=100_000):
    """Take so many classes through loss, JSON, tree and report."""
    figures = {"classes": count}
    levels = [np.arange(count) // size for size in (1000, 20)]
    hierarchy = Hierarchy.from_levels(levels, [f"class {i}" for i in range(count)])
    with timed(figures, "loss_at_every_level"):
        _check_losses(hierarchy)
    with timed(figures, "json"):
        hierarchy.save(folder / "hierarchy.json")
        assert Hierarchy.load(folder / "hierarchy.json") == hierarchy
    with timed(figures, "tree"):
        lines = str(hierarchy).splitlines()
    assert lines[-1] == "… cut after 80 lines; a larger max_lines shows more"
    assert len(lines) <= 82
    assert max(map(len, lines)) <= 100
    methods = {"baseline": 0.4, "continuous": 0.5}
    page = folder / "report.html"
    runs = make_comparison(folder / "runs", hierarchy, methods=methods, seeds=(0,), samples=1)
    with timed(figures, "report"):
        write_report([runs], page)
    figures["megabytes_report"] = round(page.stat().st_size / MEGABYTE, 1)
    return figures | {"megabytes_peak": peak()}


def _check_losses(hierarchy, samples=16):
    """Hold the loss against one that adds up probabilities cluster by cluster."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(samples, hierarchy.num_classes, generator=generator, requires_grad=True)
    targets = torch.randint(hierarchy.num_classes, (samples,), generator=generator)
    criterion = CoarseToFineLoss(hierarchy)
    shares = logits.detach().double().softmax(1).numpy()
    for number, level in enumerate(hierarchy.levels):
        criterion.level = number
        loss = criterion(logits, targets)
        loss.backward()
        sums = [
            np.bincount(level, weights=row)[level[target]]
            for row, target in zip(shares, targets, strict=True)
        ]
        assert abs(loss.item() + np.log(sums).mean()) < 1e-4
        assert logits.grad.isfinite().all()


# ------------------------------------------------------------------------------- many epochs


def many_epochs(folder, count=1_000_000):
    """Take up a training after so many epochs, and let it train the one that is left."""
    settings = {**tiny.SETTINGS, "data": folder / tiny.DATA, "methods": (), "epochs": count + 1}
    tiny.write_data(folder)
    run, figures = folder / "run", {"epochs": count}
    path = run / "seed-0" / "baseline"
    _stop_after_an_epoch(settings, run)
    figures["megabytes_log"] = round(_lengthen(path, count) / MEGABYTE)
    with timed(figures, "resume_and_finish"):
        result = fit(**settings, out=run)
    assert result.runs[0].epochs == count + 1
    figures["megabytes_peak"] = peak()
    with timed(figures, "read"):
        lines = Run(path).metrics()
    assert [line["epoch"] for line in lines] == list(range(1, count + 2))
    return figures


class _Stop(Watcher):
    def epoch(self, metrics):
        if metrics["epoch"] == 2:
            raise KeyboardInterrupt


def _stop_after_an_epoch(settings, out):
    """Leave a run with the checkpoint of its first epoch."""
    try:
        fit(**settings, out=out, watcher=_Stop(), checkpoint_seconds=0.0)
    except KeyboardInterrupt:
        return
    raise AssertionError("the training was not stopped")


def _lengthen(path, count):
    """Make a run's only epoch into many, and return the size of its log."""
    found = load_checkpoint(path / CHECKPOINT)
    first = json.loads((path / METRICS).read_text().splitlines()[0])
    digest = hashlib.sha256()
    with (path / METRICS).open("wb") as log:
        for epoch in range(1, count + 1):
            line = json.dumps({**first, "epoch": epoch}).encode() + b"\n"
            digest.update(line)
            log.write(line)
    progress = {**found.state["progress"], "epoch": count, "total": count}
    state = {**found.state, "progress": progress, METRICS: digest.hexdigest()}
    save_checkpoint(path / CHECKPOINT, Checkpoint(count, state, found.tensors))
    return (path / METRICS).stat().st_size
