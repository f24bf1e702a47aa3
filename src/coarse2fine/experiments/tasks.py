"""One training of an experiment, as a worker anywhere carries it out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, cast

from .._util.files import writing
from ..data import Source
from ..data.load import load_data
from ..errors import require
from ..methods import PLAIN
from ..runs.config import FEATURES, irrelevant_settings, settings_affecting
from ..runs.directory import Run
from ..runs.find import longer_baseline, seed_folder
from ..runs.guards import check_no_links, check_same
from ..runs.result import BASELINE, RunResult
from ..training.encoders import find_encoder
from ..training.fit import given_hierarchy
from ..training.processes import launch, memory_errors_explained
from ..training.progress import Watcher
from ..training.seed import SeedRuns
from .declaration import Setting, Variant


@dataclass(frozen=True)
class Task:
    """One training.

    Args:
        setting: The row it belongs to.
        variant: How to train; None for the baseline.
        seed: Of everything random.
        store: The directory that holds all runs.
        folder: Where named data sets lie; None for the environment's.
        threads: How many threads to compute with; None to leave that to the worker.
        epochs: For how many epochs a baseline is trained in all that goes on from where it
            stopped by itself. Defaults to None: it stops by itself.
    """

    setting: Setting
    variant: Variant | None
    seed: int
    store: Path
    folder: Path | None = None
    threads: int | None = None
    epochs: int | None = None

    @property
    def name(self) -> str:
        """What its result calls it."""
        return self.variant.name if self.variant else BASELINE

    @cached_property
    def path(self) -> Path:
        """Its run directory."""
        name = self.name if self.epochs is None else longer_baseline(self.epochs)
        return seed_folder(self.store / self.setting.folder, self.seed) / name

    @property
    def baseline(self) -> Task:
        """The training it is made from; for a baseline, itself."""
        return replace(self, variant=None, epochs=None)

    @cached_property
    def compared(self) -> tuple[Task, ...]:
        """The trainings that the baseline of its setting and seed is compared with."""
        return tuple(replace(self, variant=v, epochs=None) for v in self.setting.variants)

    @property
    def result(self) -> RunResult:
        """What came out of it, once it is done."""
        return RunResult.load(self.path)

    @property
    def longer(self) -> Task:
        """Its baseline, once done, for as many epochs as the longest variant that is done."""
        done = [task.result.epochs for task in self.compared if task.is_done]
        is_enough = self.baseline.result.epochs >= max(done, default=0)
        return self.baseline if is_enough else replace(self.baseline, epochs=max(done))

    @property
    def shares_trainings(self) -> bool:
        """Whether further models are trained for it, which other variants may need too."""
        config = self.setting.config(self.variant, (self.seed,))
        is_trained = config.hierarchy_model is not None or config.hierarchy_epochs is not None
        return is_trained and config.is_needed("hierarchy")

    @property
    def is_done(self) -> bool:
        """Whether it has its result."""
        return Run(self.path).is_done

    @property
    def settings(self) -> dict[str, Any]:
        """All that its result depends on."""
        method = self.variant.trains_by if self.variant else PLAIN
        settings = self.setting.config(self.variant, (self.seed,)).to_dict()
        others = (*settings_affecting("machine"), *irrelevant_settings(method))
        return {name: value for name, value in settings.items() if name not in others}

    def check(self) -> None:
        """Raise a `RunError` where the run was made with other settings, or is damaged."""
        every = self.setting.config(self.variant, (self.seed,)).to_dict()
        others = tuple(every.keys() - self.settings.keys())
        check_same(self.path, {"config": self.settings}, but=others)
        _ = self.result

    @property
    def epochs_done(self) -> int:
        """How many epochs it has trained so far."""
        return Run(self.path).epochs_done

    def __hash__(self) -> int:
        return hash(self.path)

    def __str__(self) -> str:
        name = self.name if self.epochs is None else f"longer {self.name}"
        return f"{self.setting.key}, seed {self.seed}, {name}"


def expand(
    settings: tuple[Setting, ...],
    seeds: tuple[int, ...],
    store: Path,
    folder: Path | None = None,
) -> list[Task]:
    """Return every training of an experiment, each baseline before what is compared with it.

    Settings that have a training in common have it once.
    """
    found: dict[Path, Task] = {}
    for setting in settings:
        for seed in seeds:
            baseline = Task(setting, None, seed, store, folder)
            for task in (baseline, *baseline.compared):
                same = found.setdefault(task.path, task)
                if same.setting is not setting and same.settings != task.settings:
                    raise ValueError(
                        f"{same.setting.label!r} and {setting.label!r} would train {task.name!r} "
                        f"in one directory by different settings; give the variants other names."
                    )
    return list(found.values())


def longer_baselines(
    settings: tuple[Setting, ...],
    seeds: tuple[int, ...],
    store: Path,
    folder: Path | None = None,
) -> list[Task]:
    """Return the baselines that must go on, once all trainings of an experiment are done.

    Only then is it known for how long.
    """
    baselines = (Task(setting, None, seed, store, folder) for setting in settings for seed in seeds)
    found = {task.longer.path: task.longer for task in baselines if task.is_done}
    return [task for task in found.values() if not task.is_done]


# Randomness, the number of threads and the like belong to the process, not to a thread of it.
_ONE_AT_A_TIME = threading.Lock()


@memory_errors_explained()
def carry_out(task: Task) -> RunResult:
    """Train, go on where training was, or read what is done."""
    import torch

    with _ONE_AT_A_TIME, _kept(task):
        if task.threads is not None:
            torch.set_num_threads(task.threads)
        runs = _seed_runs(task)
        if task.variant is not None:
            return runs.run(task.variant.trains_by, task.name)
        if task.epochs is not None:
            return runs.longer_baseline(task.epochs)
        return cast(RunResult, runs.baseline)  # without one, there would be no such task


@contextmanager
def _kept(task: Task) -> Iterator[None]:
    """Wait until no other worker is at a training, and keep them from it.

    Such as one of a cluster which has not noticed that nobody waits for it any more.
    """
    filelock = require("filelock", "train")
    folder = task.path.parent
    check_no_links(folder, *folder.glob("*"))
    with ExitStack() as kept:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            kept.enter_context(filelock.FileLock(folder / f".{task.name}.lock"))
            if task.shares_trainings:
                kept.enter_context(filelock.FileLock(folder / ".lock"))
        yield


def _seed_runs(task: Task) -> SeedRuns:
    asked = task.setting.asked(task.variant, (task.seed,))
    config = task.setting.config(task.variant, (task.seed,))
    source = _source(config.data, task.folder, config.image_size, config.target, config.text)
    return SeedRuns(
        fabric=launch(replace(config, devices=1)),  # the workers share the devices
        asked=asked,
        config=config,
        source=source,
        model=str(config.model),
        given=given_hierarchy(config.hierarchy, config, source),
        path=task.path.parents[1],
        watcher=Watcher(),
        search=f"search-{task.name}",
        encoder=find_encoder(str(config.encoder)) if config.hierarchy == FEATURES else None,
    )


@lru_cache(maxsize=1)
def _source(
    data: str,
    folder: Path | None,
    image_size: int | None,
    target: str | tuple[str, ...] | None,
    text: str | None,
) -> Source:
    return load_data(data, folder=folder, image_size=image_size, target=target, text=text)
