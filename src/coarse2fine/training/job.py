"""One training, described: from its settings to what the loop needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data import Batches, Data, Split, Transform, input_shape
from ..heads import find_head
from ..hierarchy import Hierarchy
from ..methods import build_method
from ..methods.base import Method, Plan
from ..models import build_model
from ..runs.config import Config
from ..runs.identity import Factory
from ..runs.result import RunResult
from ..runs.writer import provenance
from .transforms import transform_for


@dataclass(frozen=True)
class Job:
    """One training.

    Args:
        path: The run directory.
        name: What the result calls it.
        method: See `find_method`.
        seed: Of everything random.
        data: The samples.
        config: Every setting filled in.
        model: A name, or what makes a model.
        hierarchy: Defaults to None: for methods that need none.
        length: T. Defaults to None: for methods that need none.
        class_vectors: The final layer's weight in the trained baseline. Defaults to None:
            for methods that need none.
        reads_head: Whether the final layer is read afterwards. Defaults to False.
        continued: A finished training of the same that this one goes on from. Defaults to
            None.
        exactly: How many epochs to train for. Defaults to None: as the settings say.
    """

    path: Path
    name: str
    method: str
    seed: int
    data: Data
    config: Config
    model: Factory
    hierarchy: Hierarchy | None = None
    length: int | None = None
    class_vectors: NDArray[Any] | None = None
    reads_head: bool = False
    continued: RunResult | None = None
    exactly: int | None = None

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.data.class_names)

    @cached_property
    def transform(self) -> Transform:
        """What inputs go through before the model sees them."""
        return transform_for(self.data, self.config)

    def new_method(self) -> Method:
        """Return the method at its beginning."""
        config = self.config
        plan = Plan(
            num_classes=self.num_classes,
            epochs=config.epochs or 1,
            patience=config.patience or 0,
            hierarchy=self.hierarchy,
            curriculum_epochs=self.length,
            stage_epochs=config.stage_epochs,
            num_samples=len(self.data.train),
            class_vectors=self.class_vectors,
            exactly=self.exactly,
        )
        return build_method(self.method, plan, config.method_settings)

    def new_model(self, outputs: int) -> nn.Module:
        """Return a model with so many outputs, its weights drawn from torch's generator."""
        return build_model(self.model, outputs, input_shape(self.data.train), self.data.kind)

    def content(self) -> dict[str, Any]:
        """Return what the run is set by, and what is needed to use its model."""
        data = self.data
        return {
            **provenance(replace(self.config, seeds=(self.seed,))),
            "method": self.method,
            "data": {
                "kind": data.kind,
                "class_names": data.class_names,
                "columns": data.columns,
                "input_shape": input_shape(data.train),
                "samples": [len(data.train), len(data.val), len(data.test)],
                "fingerprint": data.fingerprint(),
                "transform": asdict(self.transform),
            },
        }

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
        model = self.new_model(self.num_classes).eval().to(samples.device)
        _check_logits(model, samples, self.num_classes)
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
