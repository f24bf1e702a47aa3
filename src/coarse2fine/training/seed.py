"""All trainings of one seed: the same samples, the same fresh weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import nn

from .. import heads
from ..clustering import Linkage
from ..curriculum import best_candidate, capped_length, epochs_to_reach, share_of_best_epoch
from ..data import Data, Source, input_shape, sample
from ..data.sampling import warn_of_absent_classes
from ..hierarchy import CONFUSION_METRICS, Hierarchy
from ..methods import PLAIN, find_method
from ..models import build_model
from ..runs.config import CANDIDATES, Config
from ..runs.directory import Run
from ..runs.find import longer_baseline
from ..runs.identity import Factory
from ..runs.result import BASELINE, RunResult
from .job import Job
from .progress import Watcher
from .recipes import recipe_for
from .trainer import Trainer


@dataclass(frozen=True)
class Study:
    """What the trainings of all seeds share.

    Args:
        fabric: Lightning Fabric, launched.
        asked: The settings as they were asked for.
        config: The same, every setting filled in.
        source: The samples before they are divided.
        model: A name, or what makes a model.
        hierarchy: The given one, None for the baseline's.
        path: The directory that holds all.
        watcher: Told what happens.
        checkpoint_seconds: The least time between two checkpoints.
    """

    fabric: Fabric
    asked: Config
    config: Config
    source: Source
    model: Factory
    hierarchy: Hierarchy | None
    path: Path
    watcher: Watcher
    checkpoint_seconds: float

    def data(self, seed: int, val_share: float) -> Data:
        """Return a seed's samples."""
        return sample(
            self.source,
            train_size=self.config.train_size,
            val_share=val_share,
            test_share=self.config.test_share,
            seed=seed,
            stratify=self.config.stratify,
        )


class SeedRuns:
    """The trainings of one seed, in the order in which one needs the other.

    Args:
        study: What all seeds share.
        seed: Of everything random.
        search: The folder of the search for T. Defaults to ``"search"``.

    Attributes:
        remarks: What to bear in mind about the results, by what it is about.
    """

    def __init__(self, study: Study, seed: int, search: str = "search") -> None:
        self.study, self.config, self.seed, self.search = study, study.config, seed, search
        self.path = study.path / f"seed-{seed}"
        self.remarks: dict[str, str] = {}

    def train(self) -> list[RunResult]:
        """Train the baseline and every method, or read what is done, and return the results."""
        _ = self.baseline  # first, as the others may need it
        others = [self.train_method(name) for name in self.config.methods]
        if self.baseline is None:
            return others
        longest = max((run.epochs for run in others), default=0)
        return [self.longer_baseline(longest), *others]

    def train_method(self, method: str, name: str | None = None) -> RunResult:
        """Train by a method, after what it needs, and return the result.

        Args:
            method: See `find_method`.
            name: What the result calls it. Defaults to None: as the method.
        """
        needs = find_method(method).needs
        return self._run(
            name or run_name(method),
            method,
            self.data,
            length=self.length if "length" in needs else None,
            hierarchy=self.hierarchy if "hierarchy" in needs else None,
            class_vectors=self.class_vectors if "class_vectors" in needs else None,
        )

    @cached_property
    def data(self) -> Data:
        """The samples to train, validate and test on."""
        data = self.study.data(self.seed, self.config.val_share or 0.0)
        self._check_validation(data)
        warn_of_absent_classes(data)
        # The search for T has its validation samples; the trainings it is for have none.
        is_searched = self.config.curriculum_epochs == "search"
        return self.study.data(self.seed, 0.0) if is_searched else data

    @cached_property
    def baseline(self) -> RunResult | None:
        """Plain training until it stops by itself; None where it is not wanted.

        The hierarchy and T are made from it.
        """
        return self._run(BASELINE, PLAIN, self.data) if self.config.baseline else None

    def longer_baseline(self, epochs: int) -> RunResult:
        """Return the baseline after at least so many epochs.

        A comparison is fair only if the baseline is trained for as long as what is compared
        with it, as in the paper. It goes on in a directory of its own, so that the first stays
        what the hierarchy was made from, and a kill leaves both whole.
        """
        baseline = self.baseline
        if baseline is None:
            raise ValueError("there is no baseline to go on with.")
        if baseline.epochs >= epochs:
            return baseline
        return self._run(BASELINE, PLAIN, self.data, continued=baseline, exactly=epochs)

    def _check_validation(self, data: Data) -> None:
        """Refuse at once what needs validation samples, where there are none."""
        config, rule = self.config, self.config.curriculum_epochs
        if isinstance(rule, str) and config.is_needed("length") and not len(data.val):
            raise ValueError(
                f"the rule {rule!r} for curriculum_epochs needs a baseline with validation "
                f"samples; give a number instead."
            )
        has_none = not len(data.val) or (rule == "search" and self.study.source.val is None)
        is_made = self.study.hierarchy is None and config.is_needed("hierarchy")
        if is_made and config.metric in CONFUSION_METRICS and has_none:
            raise ValueError(f"the metric {config.metric!r} needs validation samples.")

    # -------------------------------------------------------- what the curriculum is set by

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The levels that methods train on."""
        return self._hierarchy(self.baseline, self.data)

    @cached_property
    def class_vectors(self) -> NDArray[Any]:
        """The final layer's weight in the trained baseline, one row a class."""
        if self.baseline is None:
            raise ValueError("this method needs a baseline.")
        trained = trained_model(self.baseline, self.study.model, self.data)
        return heads.class_vectors(trained, self.config.head).detach().numpy()

    @cached_property
    def length(self) -> int:
        """T, by the settings' rule."""
        rule = self.config.curriculum_epochs
        if isinstance(rule, int):
            return rule
        return self._search() if rule == "search" else self._length(rule)

    def _hierarchy(self, baseline: RunResult | None, data: Data, place: str = "") -> Hierarchy:
        """Return the hierarchy: the given one, or that of a trained model."""
        config = self.config
        if self.study.hierarchy is not None:
            hierarchy = self.study.hierarchy
        elif config.hierarchy_model is not None:
            smaller = replace(
                self.study.asked,
                model=config.hierarchy_model,
                head=None,
                val_share=config.val_share,
            ).with_recipe(recipe_for(config.hierarchy_model))
            name = f"{place}hierarchy-{config.hierarchy_model.replace(':', '.')}"
            trained = self._run(name, PLAIN, data, config=smaller)
            hierarchy = hierarchy_of(trained, smaller, str(smaller.model), data)
        elif baseline is not None:
            hierarchy = hierarchy_of(baseline, config, self.study.model, data)
        else:
            raise ValueError("without a baseline, a hierarchy or a hierarchy_model must be given.")
        return hierarchy if config.max_levels is None else hierarchy.max_levels(config.max_levels)

    def _length(self, rule: str) -> int:
        """Return T by a rule that looks at the baseline."""
        if self.baseline is None:
            raise ValueError(f"the rule {rule!r} needs a baseline.")
        lines = Run(self.baseline.path).metrics()
        rules = {"reach-90": epochs_to_reach, "best-epoch": share_of_best_epoch}
        length = rules[rule]([line["accuracy"] or 0.0 for line in lines])
        capped = capped_length(length, self.config.epochs or 1)
        if capped < length:
            self.remarks["length"] = (
                f"seed {self.seed}: by its rule the curriculum would take {length} of "
                f"{self.config.epochs} epochs; it is cut to {capped}."
            )
        return capped

    def _search(self) -> int:
        """Return the best of the paper's candidates for T, by validation accuracy."""
        candidates = [length for length in CANDIDATES if length < (self.config.epochs or 1)]
        if not candidates:
            raise ValueError(f"to search for T, epochs must be more than {CANDIDATES[0]}.")
        data = self.study.data(self.seed, self.config.val_share or 0.0)
        baseline = self._run(f"{self.search}/baseline", PLAIN, data)
        hierarchy = self._hierarchy(baseline, data, f"{self.search}/")
        method = next(name for name in self.config.methods if "length" in find_method(name).needs)
        tried = [
            self._run(f"{self.search}/T-{length:02d}", method, data, hierarchy, length)
            for length in candidates
        ]
        return best_candidate(candidates, [run.val_accuracy or 0.0 for run in tried])

    # ------------------------------------------------------------------------ one training

    def _run(
        self,
        name: str,
        method: str,
        data: Data,
        hierarchy: Hierarchy | None = None,
        length: int | None = None,
        class_vectors: NDArray[Any] | None = None,
        config: Config | None = None,
        continued: RunResult | None = None,
        exactly: int | None = None,
    ) -> RunResult:
        """Train, go on training, or read what is done."""
        study, config = self.study, config or self.config
        model = study.model if config is self.config else str(config.model)
        # A baseline by itself may be asked for its hierarchy later.
        is_asked = config.is_needed("hierarchy") or not config.methods
        is_made = self.study.hierarchy is None and config.metric not in CONFUSION_METRICS
        is_read = (is_asked and is_made) or config.is_needed("class_vectors")
        job = Job(
            path=self.path / (longer_baseline(exactly) if exactly else name),
            name=name,
            method=method,
            seed=self.seed,
            data=data,
            config=config,
            model=model,
            hierarchy=hierarchy,
            length=length,
            class_vectors=class_vectors,
            reads_head=method == PLAIN and is_read,
            continued=continued,
            exactly=exactly,
        )
        trainer = Trainer(study.fabric, job, study.watcher, study.checkpoint_seconds)
        result = trainer.train()
        self.remarks.pop(name, None)  # of a baseline that has gone on since
        if not result.levelled_off:
            self.remarks[name] = (
                f"seed {self.seed}: {name} was best at epoch {result.best_epoch} of "
                f"{exactly or config.epochs}, so it has not levelled off; longer training may "
                f"change the outcome."
            )
        return result


def hierarchy_of(run: RunResult, config: Config, model: Factory, data: Data) -> Hierarchy:
    """Return the hierarchy of a trained model by the settings' metric and linkage."""
    return Hierarchy.from_classifier(
        trained_model(run, model, data),
        config.metric,
        head=config.head,
        confusion=run.predictions("val") if config.metric in CONFUSION_METRICS else None,
        linkage=cast(Linkage, config.linkage),
        seed=run.seed,
        class_names=data.class_names,
    )


def trained_model(run: RunResult, model: Factory, data: Data) -> nn.Module:
    """Return the model of a finished training."""
    trained = build_model(model, len(data.class_names), input_shape(data.train), data.kind)
    trained.load_state_dict(Run(run.path).weights())
    return trained


def run_name(method: str) -> str:
    """Return what a method's run directory is called.

    Examples:
        >>> run_name("staged"), run_name("my_methods:Mine")
        ('staged', 'my_methods.Mine')
    """
    return method.replace(":", ".")
