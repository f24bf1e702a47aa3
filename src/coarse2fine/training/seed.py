"""All trainings of one seed: the same samples, the same fresh weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric

from ..curriculum import best_candidate, capped_length, epochs_to_reach, share_of_best_epoch
from ..data import Data, Source, input_shape, sample
from ..hierarchy import CONFUSION_METRICS, Hierarchy
from ..models import build_model
from .checkpoint import load_tensors
from .config import CANDIDATES, Config
from .job import Factory, Job
from .progress import Watcher
from .recipes import recipe_for
from .result import BASELINE, RunResult
from .run import CHECKPOINT, MODEL, Run


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
        )


class SeedRuns:
    """The trainings of one seed, in the order in which one needs the other.

    Args:
        study: What all seeds share.
        seed: Of everything random.

    Attributes:
        remarks: What to bear in mind about the results.
    """

    def __init__(self, study: Study, seed: int) -> None:
        self.study, self.config, self.seed = study, study.config, seed
        self.path = study.path / f"seed-{seed}"
        self.remarks: list[str] = []

    def train(self) -> list[RunResult]:
        """Train the baseline and every method, or read what is done, and return the results."""
        config = self.config
        length: int | None = None
        data = self.study.data(self.seed, config.val_share or 0.0)
        self._check_validation(data)
        if config.curriculum_epochs == "search":
            length = self._search(data)
            data = self.study.data(self.seed, 0.0)
        baseline = self._run(BASELINE, "plain", data) if config.baseline else None
        hierarchy = self._hierarchy(baseline, data)
        length = length or self._length(baseline)
        others = [self._run(name, name, data, hierarchy, length) for name in config.methods]
        return [baseline, *others] if baseline else others

    def _check_validation(self, data: Data) -> None:
        """Refuse at once what needs validation samples, where there are none."""
        config, rule = self.config, self.config.curriculum_epochs
        if isinstance(rule, str) and "continuous" in config.methods and not len(data.val):
            raise ValueError(
                f"the rule {rule!r} for curriculum_epochs needs a baseline with validation "
                f"samples; give a number instead."
            )
        has_none = not len(data.val) or (rule == "search" and self.study.source.val is None)
        is_made = self.study.hierarchy is None and bool(config.methods)
        if is_made and config.metric in CONFUSION_METRICS and has_none:
            raise ValueError(f"the metric {config.metric!r} needs validation samples.")

    # -------------------------------------------------------- what the curriculum is set by

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
            trained = self._run(name, "plain", data, config=smaller)
            hierarchy = hierarchy_of(trained, smaller, str(smaller.model), data)
        elif baseline is not None:
            hierarchy = hierarchy_of(baseline, config, self.study.model, data)
        else:
            raise ValueError("without a baseline, a hierarchy or a hierarchy_model must be given.")
        return hierarchy if config.max_levels is None else hierarchy.max_levels(config.max_levels)

    def _length(self, baseline: RunResult | None) -> int | None:
        """Return T by the settings' rule; None where no method needs it."""
        config = self.config
        if isinstance(config.curriculum_epochs, int) or "continuous" not in config.methods:
            return config.curriculum_epochs if isinstance(config.curriculum_epochs, int) else None
        if baseline is None:
            raise ValueError(f"the rule {config.curriculum_epochs!r} needs a baseline.")
        accuracies = [line["accuracy"] for line in Run(baseline.path, is_writer=False).metrics()]
        rules = {"reach-90": epochs_to_reach, "best-epoch": share_of_best_epoch}
        length = rules[config.curriculum_epochs](accuracies)
        capped = capped_length(length, config.epochs or 1)
        if capped < length:
            self.remarks.append(
                f"seed {self.seed}: by its rule the curriculum would take {length} of "
                f"{config.epochs} epochs; it is cut to {capped}."
            )
        return capped

    def _search(self, data: Data) -> int:
        """Return the best of the paper's candidates for T, by validation accuracy."""
        baseline = self._run("search/baseline", "plain", data)
        hierarchy = self._hierarchy(baseline, data, "search/")
        candidates = [length for length in CANDIDATES if length < (self.config.epochs or 1)]
        if not candidates:
            raise ValueError(f"to search for T, epochs must be more than {CANDIDATES[0]}.")
        tried = [
            self._run(f"search/T-{length:02d}", "continuous", data, hierarchy, length)
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
        config: Config | None = None,
    ) -> RunResult:
        """Train, go on training, or read what is done."""
        study, config = self.study, config or self.config
        model = study.model if config is self.config else str(config.model)
        is_source = method == "plain" and self.study.hierarchy is None
        job = Job(
            path=self.path / name,
            name=name,
            method=method,
            seed=self.seed,
            data=data,
            config=config,
            model=model,
            hierarchy=hierarchy,
            length=length,
            makes_hierarchy=is_source and config.metric not in CONFUSION_METRICS,
        )
        result = job.train(study.fabric, study.watcher, study.checkpoint_seconds)
        if not result.levelled_off:
            self.remarks.append(
                f"seed {self.seed}: {name} was best at epoch {result.best_epoch} of "
                f"{config.epochs}, so it has not levelled off, and the difference may be noise; "
                f"train for longer."
            )
        return result


def hierarchy_of(run: RunResult, config: Config, model: Factory, data: Data) -> Hierarchy:
    """Return the hierarchy of a trained model by the settings' metric and linkage."""
    options: dict[str, Any] = {"linkage": config.linkage, "class_names": data.class_names}
    if config.metric in CONFUSION_METRICS:
        pairs, classes = run.predictions("val"), len(data.class_names)
        return Hierarchy.from_confusion(pairs, config.metric, num_classes=classes, **options)
    trained = build_model(model, len(data.class_names), input_shape(data.train), data.kind)
    trained.load_state_dict(load_tensors(run.path / CHECKPOINT / MODEL))
    options |= {"head": config.head, "seed": run.seed}
    return Hierarchy.from_classifier(trained, config.metric, **options)
