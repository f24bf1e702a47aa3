"""One training, described: from its settings to what the loop needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._util.files import Json
from .._util.seeds import seed_of
from ..checkpoints import Tensors
from ..data import Batches, Data, Split, Transform, channel_statistics, input_shape
from ..heads import find_head
from ..methods import build_method
from ..methods.base import Method, Plan
from ..models import build_model
from ..runs.checkpoint import digest
from ..runs.config import Config
from ..runs.directory import DataFacts
from ..runs.identity import Factory
from ..runs.result import RunResult
from ..runs.writer import provenance
from .evaluation import Scores
from .fabric import Fabric
from .state import Progress

# Mean and deviation of the channels, as they are commonly used for these sets.
_CIFAR = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PUBLISHED = {
    "cifar10": _CIFAR,
    "cifar100": _CIFAR,
    "cifar100-coarse": _CIFAR,
    "tiny-imagenet": ((0.4802, 0.4481, 0.3975), (0.2302, 0.2265, 0.2262)),
    "imagenet": _IMAGENET,
}


@dataclass(frozen=True)
class Job:
    """One training.

    Args:
        path: The run directory.
        name: What the result calls it.
        method: See `find_method`.
        data: The samples.
        config: Every setting filled in; its only seed is that of everything random.
        model: A name, or what makes a model.
        plan: What the method is given.
        reads_head: Whether the final layer is read afterwards. Defaults to False.
        continued: A finished training of the same that this one goes on from. Defaults to
            None.
        lengthens: Whether a run that was begun with fewer epochs is gone on with, and can be
            again. Defaults to False: it is refused.
        hierarchy_training: A training that only its hierarchy was made from. Defaults to None.
    """

    path: Path
    name: str
    method: str
    data: Data
    config: Config
    model: Factory
    plan: Plan
    reads_head: bool = False
    continued: RunResult | None = None
    lengthens: bool = False
    hierarchy_training: RunResult | None = None

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self.config.seeds[0]

    @cached_property
    def transform(self) -> Transform:
        """What inputs go through before the model sees them."""
        return transform_for(self.data, self.config)

    def new_method(self) -> Method:
        """Return the method at its beginning."""
        return build_method(self.method, self.plan, self.config.method_settings)

    def new_model(self, outputs: int) -> nn.Module:
        """Return a model with so many outputs, its weights drawn from torch's generator."""
        return build_model(self.model, outputs, input_shape(self.data.train), self.data.kind)

    def fresh_model(self, method: Method, stage: int, encoder: Tensors, head: str) -> nn.Module:
        """Return the model that a stage begins with.

        Every method of a seed begins with the same weights: those of a model with one output
        a class. A stage with fewer outputs takes the encoder alone, since a final layer of
        another width would shift the random numbers of all layers that are drawn after it.

        Args:
            method: By which it is trained.
            stage: Counted from 0.
            encoder: The weights to go on with; empty for those of the beginning.
            head: The name of the final layer; empty for a model that is nothing else.
        """
        outputs, final = method.stages[stage].outputs, method.stages[-1].outputs
        torch.manual_seed(seed_of("weights", self.seed))
        model = self.new_model(final)
        if stage == 0 and outputs == final:
            return model
        encoder = encoder or model.state_dict()
        torch.manual_seed(seed_of("head", self.seed, stage))
        model = self.new_model(outputs)
        prefix = f"{head}." if head else ""
        own = {k: v for k, v in model.state_dict().items() if k.startswith(prefix)}
        model.load_state_dict({**encoder, **own})
        return model

    def content(self) -> Json:
        """Return what the run is set by, and what is needed to use its model."""
        data, tree = self.data, self.data.train.hierarchy
        facts = DataFacts(
            kind=data.kind,
            class_names=data.class_names,
            columns=data.columns,
            input_shape=input_shape(data.train),
            samples=(len(data.train), len(data.val), len(data.test)),
            fingerprint=data.fingerprint(),
            transform=asdict(self.transform),
            dtype=str(data.train.sample(0).dtype).removeprefix("torch."),
            labels=None if tree is None else tree.to_dict(),
        )
        return {
            **provenance(self.config),
            "method": self.method,
            "data": asdict(facts),
            "plan": self.given_by_others(),
        }

    def given_by_others(self) -> Json:
        """Return what the method was given that follows from other runs, the hierarchy aside."""
        vectors = self.plan.class_vectors
        return {
            "curriculum_epochs": self.plan.curriculum_epochs,
            "class_vectors": None if vectors is None else digest(vectors.tolist()),
        }

    def result(
        self, method: Method, progress: Progress, scores: Mapping[str, Scores]
    ) -> tuple[RunResult, Tensors]:
        """Return what came out, and predictions and targets as a run stores them.

        Args:
            method: By which it was trained.
            progress: Where it ended.
            scores: Of the best epoch on the validation samples, if any, and the test samples.
        """
        stage, plan = method.stages[-1], self.plan
        length = plan.curriculum_epochs or method.curriculum_epochs
        allowed = stage.exactly or stage.epochs
        has_levelled = progress.has_stalled(stage) or progress.best_epoch <= 0.9 * allowed
        splits = {"val": self.data.val, "test": self.data.test}
        before = self.hierarchy_training
        result = RunResult(
            method=self.name,
            seed=self.seed,
            accuracy=scores["test"].level_accuracy,
            val_accuracy=scores["val"].level_accuracy if "val" in scores else None,
            best_epoch=progress.best_epoch,
            epochs=progress.total,
            seconds=progress.seconds,
            levelled_off=has_levelled or "val" not in scores,
            curriculum_epochs=length if "length" in method.needs else None,
            num_clusters=plan.hierarchy.num_clusters if plan.hierarchy else (),
            path=self.path,
            by_rule=scores["test"].accuracies(self.data.test),
            own_epochs=self.continued.epochs if self.continued else None,
            val_samples=self.data.val.num_with_class,
            hierarchy_epochs=before.epochs if before else None,
            hierarchy_seconds=before.seconds if before else None,
            with_class=self.data.with_class(),
        )
        predictions: Tensors = {}
        for part, found in scores.items():
            predictions |= found.named_predictions(part, splits[part])
        return result, predictions

    def batches(self, split: Split, fabric: Fabric) -> Batches:
        """Return the batches of a split for this process."""
        return Batches(
            split,
            self.transform,
            self.config.batch_size or 1,
            device=fabric.device,
            rank=fabric.global_rank,
            world=fabric.world_size,
            workers=self.config.workers,
            channels_last=fabric.device.type == "cpu",  # elsewhere it need not pay
            augments_files=bool(self.config.augment),
        )

    def head(self, method: Method, fabric: Fabric) -> str:
        """Return the name of the model's final layer, after a look at what the model gives.

        Args:
            method: By which it is trained; one with a single stage needs no name.
            fabric: Lightning Fabric, launched.
        """
        two = self.data.train.take(range(min(2, len(self.data.train))))
        samples = next(self.batches(two, fabric).in_order()).inputs
        model = self.new_model(self.plan.num_classes).eval().to(samples.device)
        _check_logits(model, samples, self.plan.num_classes)
        needs_head = len(method.stages) > 1 or self.reads_head
        return find_head(model, self.config.head)[0] if needs_head else ""


def _check_logits(model: nn.Module, samples: Tensor, classes: int) -> None:
    """Raise a ValueError where a model does not give one logit a class."""
    try:
        with torch.no_grad():
            logits: Any = model(samples)
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"the model cannot take inputs of shape {tuple(samples.shape)} and type "
            f"{samples.dtype}: {error}"
        ) from error
    if not isinstance(logits, Tensor) or logits.shape != (len(samples), classes):
        got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"the model must give a tensor of {classes} logits, one a class, for each sample. "
            f"Got {got} for {len(samples)} samples."
        )


def transform_for(data: Data, config: Config) -> Transform:
    """Return the transform of the settings: its statistics are those of the training samples.

    Images are cropped after padding by an eighth of their side: 4 pixels for CIFAR, 8 for
    Tiny-ImageNet. Images that are read lazily are cropped and mirrored as they are read.
    """
    inputs = data.train.inputs
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    if config.normalise and data.kind in ("image", "table"):
        if config.data in PUBLISHED:
            mean, std = PUBLISHED[config.data]
        elif isinstance(inputs, Tensor):
            mean, std = channel_statistics(inputs)
        elif _are_colour_bytes(inputs.read(0, None)):
            mean, std = _IMAGENET
    if config.augment and data.kind == "image" and isinstance(inputs, Tensor):
        return Transform(mean, std, padding=input_shape(data.train)[-1] // 8, flip=True)
    return Transform(mean, std)


def _are_colour_bytes(image: Tensor) -> bool:
    return image.dtype == torch.uint8 and image.dim() == 3 and len(image) == 3
