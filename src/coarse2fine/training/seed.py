"""All trainings of one seed: the same samples, the same fresh weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .. import heads
from ..data import Data, Source
from ..data.sampling import balanced_class_weights, warn_of_absent_classes
from ..hierarchy import CONFUSION_METRICS, Hierarchy
from ..lengths import RULES, best_candidate, capped_length
from ..methods import PLAIN, find_method
from ..methods.base import Plan
from ..runs.config import CANDIDATES, WITHOUT_HIERARCHY, Config
from ..runs.directory import Run
from ..runs.find import longer_baseline, seed_folder
from ..runs.identity import Factory
from ..runs.restore import sampled
from ..runs.result import BASELINE, RunResult, counts_of_labels
from ..runs.writer import remove_other_baselines
from .encoders import Encoder, feature_means
from .fabric import Fabric
from .hierarchies import (
    hierarchy_of,
    hierarchy_of_vectors,
    levels_to_train,
    training_config,
    training_name,
)
from .job import Job
from .labels import check_labels, label_nodes
from .progress import Watcher
from .trainer import Trainer


@dataclass(frozen=True)
class SeedRuns:
    """The trainings of one seed, in the order in which one needs the other.

    Args:
        fabric: Lightning Fabric, launched.
        asked: The settings as they were asked for.
        config: The same, every setting filled in; its only seed is that of everything random.
        source: The samples before they are divided.
        model: A name, or what makes a model.
        given: The hierarchy; None for the baseline's.
        path: The directory that holds all seeds.
        watcher: Told what happens.
        checkpoint_seconds: The least time between two checkpoints. Defaults to 10.0.
        search: The folder of the search for T. Defaults to ``"search"``.
        lengthens: See `Job`. Defaults to False.
        encoder: Gives the features that the hierarchy is made from. Defaults to None: it is
            made from none.

    Attributes:
        remarks: What to bear in mind about the results, by what it is about.
    """

    fabric: Fabric
    asked: Config
    config: Config
    source: Source
    model: Factory
    given: Hierarchy | None
    path: Path
    watcher: Watcher
    checkpoint_seconds: float = 10.0
    search: str = "search"
    lengthens: bool = False
    encoder: Encoder | None = None
    remarks: dict[str, str] = field(default_factory=dict, init=False)

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self.config.seeds[0]

    def train(self) -> list[RunResult]:
        """Train the baseline and every method, or read what is done, and return the results."""
        if self.encoder is not None and self.config.is_needed("hierarchy"):
            _ = self.hierarchy  # before anything is trained, as the encoder may be of no use
        _ = self.baseline  # first, as the others may need it
        results: list[RunResult] = []
        longest = 0
        for method in self.config.methods:
            results.append(self.run(method))
            longest = max(longest, results[-1].epochs)
        if self.baseline is None:
            return results
        baseline = self.longer_baseline(longest)
        if self.fabric.is_global_zero:
            remove_other_baselines(baseline.path)  # of fewer epochs than are allowed now
        return [baseline, *results]

    @cached_property
    def data(self) -> Data:
        """The samples to train, validate and test on."""
        data = sampled(self.source, self.config, self.config.val_share or 0.0)
        self._check_validation(data)
        check_labels(data)
        warn_of_absent_classes(data)
        # The search for T has its validation samples; the trainings it is for have none.
        return (
            sampled(self.source, self.config, 0.0)
            if self.config.curriculum_epochs == "search"
            else data
        )

    @cached_property
    def baseline(self) -> RunResult | None:
        """Plain training until it stops by itself; None where it is not wanted.

        The hierarchy and T are made from it.
        """
        return self.run(PLAIN, BASELINE) if self.config.baseline else None

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
        return self.run(PLAIN, BASELINE, continued=baseline, exactly=epochs)

    def _check_validation(self, data: Data) -> None:
        """Refuse at once what needs validation samples, where there are none."""
        config, rule = self.config, self.config.curriculum_epochs
        if isinstance(rule, str) and config.is_needed("length") and not len(data.val):
            needs = "needs" if config.is_adaptive else "needs a baseline with"
            raise ValueError(
                f"the rule {rule!r} for curriculum_epochs {needs} validation samples; give a "
                f"number instead."
            )
        has_none = not len(data.val) or (rule == "search" and self.source.val is None)
        is_made = self.given is None and config.is_needed("hierarchy")
        if is_made and config.metric in CONFUSION_METRICS and has_none:
            raise ValueError(f"the metric {config.metric!r} needs validation samples.")

    # -------------------------------------------------------- what the curriculum is set by

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The levels that methods train on."""
        is_trained = self.given is None and self.encoder is None
        trained = (self.hierarchy_training or self.baseline) if is_trained else None
        return self._hierarchy(trained, self.data)

    @cached_property
    def hierarchy_training(self) -> RunResult | None:
        """A training that only the hierarchy is made from; None where there is none."""
        return self._train_for_hierarchy(self.data)

    @cached_property
    def class_vectors(self) -> NDArray[Any]:
        """The final layer's weight in the trained baseline, one row a class."""
        if self.baseline is None:
            raise ValueError("this method needs a baseline.")
        trained = self.baseline.model(self.model)
        return heads.class_vectors(trained, self.config.head).detach().numpy()

    @cached_property
    def length(self) -> int | None:
        """T, by the settings' rule; None where levels last as long as they teach."""
        rule = self.config.curriculum_epochs
        if self.config.is_adaptive:
            return None
        if isinstance(rule, int):
            return rule
        return self._search() if rule == "search" else self._length(rule)

    def _hierarchy(self, trained: RunResult | None, data: Data) -> Hierarchy:
        """Return the hierarchy: the given one, or that of an encoder or a trained model."""
        if self.given is not None:
            hierarchy = self.given
        elif self.encoder is not None:
            means = feature_means(self.encoder, data, self.config, self.fabric)
            hierarchy = hierarchy_of_vectors(means, self.config, data.class_names)
        elif trained is not None:
            config = training_config(self.asked, self.config) or self.config
            hierarchy = hierarchy_of(trained, config, self._factory(config), data)
        else:
            raise ValueError(WITHOUT_HIERARCHY)
        return levels_to_train(hierarchy, self.config)

    def _train_for_hierarchy(self, data: Data, place: str = "") -> RunResult | None:
        """Train what only the hierarchy is made from, if there is such."""
        config = training_config(self.asked, self.config)
        if config is None:
            return None
        name = f"{place}{training_name(self.config)}"
        trained = self.run(PLAIN, name, data, config=config)
        if self.config.hierarchy_epochs is not None:
            self.remarks.pop(name, None)  # that it could be longer is the point of it
        return trained

    def _factory(self, config: Config) -> Factory:
        """Return what makes the model of the seed's settings, or of those of another."""
        return self.model if config.model == self.config.model else str(config.model)

    def _length(self, rule: str) -> int:
        """Return T by a rule that looks at the baseline."""
        if self.baseline is None:
            raise ValueError(f"the rule {rule!r} needs a baseline.")
        lines = Run(self.baseline.path).metrics()
        length = RULES[rule]([line["accuracy"] or 0.0 for line in lines])
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
        data = sampled(self.source, self.config, self.config.val_share or 0.0)
        baseline = self.run(PLAIN, f"{self.search}/baseline", data)
        trained = self._train_for_hierarchy(data, f"{self.search}/") or baseline
        hierarchy = self._hierarchy(trained, data)
        method = next(name for name in self.config.methods if "length" in find_method(name).needs)
        tried = [
            self.run(method, f"{self.search}/T-{length:02d}", data, hierarchy, length)
            for length in candidates
        ]
        return best_candidate(candidates, [run.val_accuracy or 0.0 for run in tried])

    # ------------------------------------------------------------------------ one training

    def run(
        self,
        method: str,
        name: str | None = None,
        data: Data | None = None,
        hierarchy: Hierarchy | None = None,
        length: int | None = None,
        config: Config | None = None,
        continued: RunResult | None = None,
        exactly: int | None = None,
    ) -> RunResult:
        """Train by a method after what it needs, go on training, or read what is done.

        Args:
            method: See `find_method`.
            name: What the result calls it. Defaults to None: as the method.
            data: Defaults to None: the seed's.
            hierarchy: Defaults to None: the seed's, for a method that needs one.
            length: T. Defaults to None: the seed's, for a method that needs it.
            config: The settings of another model. Defaults to None: the seed's.
            continued: See `Job`. Defaults to None.
            exactly: For how many epochs. Defaults to None: as the settings say.
        """
        name, needs = name or run_name(method), find_method(method).needs
        data, config = data or self.data, config or self.config
        is_own = hierarchy is None and "hierarchy" in needs  # made for this seed, here
        plan = Plan(
            num_classes=len(data.class_names),
            epochs=config.epochs or 1,
            patience=config.patience or 0,
            hierarchy=self.hierarchy if is_own else hierarchy,
            curriculum_epochs=length or (self.length if "length" in needs else None),
            stage_epochs=config.stage_epochs,
            num_samples=len(data.train),
            class_vectors=self.class_vectors if "class_vectors" in needs else None,
            exactly=exactly,
            class_weights=self._class_weights(data),
            labels=label_nodes(data.train),
        )
        folder = seed_folder(self.path, self.seed) / (longer_baseline(exactly) if exactly else name)
        reads_head = method == PLAIN and self._is_head_read(config)
        training = self.hierarchy_training if is_own else None
        others = (reads_head, continued, self.lengthens, training)
        job = Job(folder, name, method, data, config, self._factory(config), plan, *others)
        result = Trainer(self.fabric, job, self.watcher, self.checkpoint_seconds).train()
        self._remark(result, exactly or config.epochs)
        return result

    def _class_weights(self, data: Data) -> NDArray[Any] | None:
        """Return how much each class counts in the training loss; None where all do alike."""
        if self.config.class_weights is None:
            return None
        nodes = label_nodes(data.train)
        return balanced_class_weights(data.train.targets, len(data.class_names), nodes)

    def _is_head_read(self, config: Config) -> bool:
        """Whether the final layer of plain training is looked at once it is trained."""
        # A baseline by itself may be asked for its hierarchy later.
        is_asked = config.is_needed("hierarchy") or not config.methods
        is_made = self.given is None and self.encoder is None
        is_made = is_made and config.metric not in CONFUSION_METRICS
        return (is_asked and is_made) or config.is_needed("class_vectors")

    def _remark(self, result: RunResult, epochs: int | None) -> None:
        """Say of a training whether it should have been longer."""
        if result.with_class:
            self.remarks["labels"] = f"seed {self.seed}: {counts_of_labels(result.with_class)}"
        self.remarks.pop(result.method, None)  # of a baseline that has gone on since
        if not result.levelled_off:
            self.remarks[result.method] = (
                f"seed {self.seed}: {result.method} was best at epoch {result.best_epoch} of "
                f"{epochs}, so it has not levelled off; longer training may change the outcome."
            )


def run_name(method: str) -> str:
    """Return what a method's run directory is called.

    Examples:
        >>> run_name("staged"), run_name("my_methods:Mine")
        ('staged', 'my_methods.Mine')
    """
    return method.replace(":", ".")
