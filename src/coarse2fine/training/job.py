"""One training from its settings to its result."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data import Batches, Data, Split, Transform, input_shape
from ..errors import RunError
from ..heads import find_head
from ..hierarchy import Hierarchy
from ..methods.base import Method, Plan
from ..methods.making import make_method
from ..models import build_model
from .checkpoint import Tensors
from .config import Config, without_say
from .evaluation import Scores, evaluate
from .identity import Factory, trust
from .loop import Trainer
from .progress import Watcher
from .result import RunResult
from .run import HIERARCHY, Run, locked, provenance
from .stored import changed
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

    def train(self, fabric: Fabric, watcher: Watcher, checkpoint_seconds: float) -> RunResult:
        """Train, go on where training was, or read what is done."""
        trust(str(self.config.model), self.model)
        run = Run(
            self.path,
            is_writer=fabric.is_global_zero,
            checkpoint_seconds=checkpoint_seconds,
            watch=watcher.epoch,
        )
        method = self._method()
        transform = transform_for(self.data, self.config)
        run.begin(self._content(transform), but=without_say(self.method))
        self._check_hierarchy()
        if not run.is_done:
            if self.hierarchy is not None and run.is_writer:
                self.hierarchy.save(run.path / HIERARCHY)
            allowed = sum(stage.epochs for stage in method.stages)
            watcher.begin(run.path, self.name, self.seed, allowed)
            with locked(run.path) if run.is_writer else nullcontext():
                if not fabric.broadcast(run.is_done):  # somebody else may have ended it just now
                    self._train(fabric, run, method, transform)
        fabric.barrier()
        result = RunResult.load(run.path)
        run.tidy()
        watcher.end(result)
        return result

    def _check_hierarchy(self) -> None:
        """Raise a `RunError` where the run was begun with another hierarchy."""
        stored = self.path / HIERARCHY
        if self.hierarchy is None or not stored.is_file():
            return
        try:
            is_same = Hierarchy.load(stored) == self.hierarchy
        except ValueError as error:
            raise changed(self.path, HIERARCHY) from error
        if not is_same:
            raise RunError(
                f"{self.path} was begun with another hierarchy; give the same one to go on, or "
                f"choose another folder."
            )

    def _method(self) -> Method:
        config = self.config
        plan = Plan(
            num_classes=len(self.data.class_names),
            epochs=config.epochs or 1,
            patience=config.patience or 0,
            hierarchy=self.hierarchy,
            curriculum_epochs=self.length,
            stage_epochs=config.stage_epochs,
            num_samples=len(self.data.train),
            class_vectors=self.class_vectors,
        )
        return make_method(self.method, plan, config.method_settings)

    def _content(self, transform: Transform) -> dict[str, Any]:
        """Return what the run is set by, and what is needed to use its model."""
        data = self.data
        return {
            "format": "coarse2fine run",
            "version": 1,
            **provenance(replace(self.config, seeds=(self.seed,))),
            "method": self.method,
            "data": {
                "kind": data.kind,
                "class_names": data.class_names,
                "columns": data.columns,
                "input_shape": input_shape(data.train),
                "samples": [len(data.train), len(data.val), len(data.test)],
                "fingerprint": data.fingerprint(),
                "transform": asdict(transform),
            },
        }

    def _train(self, fabric: Fabric, run: Run, method: Method, transform: Transform) -> None:
        data = self.data
        parts = {"train": data.train, "val": data.val, "test": data.test}
        batches = {
            part: self._batches(split, transform, fabric)
            for part, split in parts.items()
            if len(split)
        }
        two = data.train.take(range(min(2, len(data.train))))
        head = self._check_model(method, self._batches(two, transform, fabric))
        trainer = Trainer(
            fabric, self.config, self.seed, self._make_model, head, method,
            batches["train"], batches.get("val"), run,
            batches["test"] if self.config.track_test else None,
        )  # fmt: skip
        model = fabric.setup_module(trainer.fit())
        scores = {
            part: evaluate(fabric, model, batches[part], decide=method.decide)
            for part in ("val", "test")
            if part in batches
        }
        if not run.is_writer:
            return
        predictions: Tensors = {}
        for part, found in scores.items():
            predictions[f"{part}.predictions"] = found.predictions
            if len(found.by_rule) > 1:
                for rule, classes in found.by_rule.items():
                    predictions[f"{part}.predictions.{rule}"] = classes
            predictions[f"{part}.targets"] = parts[part].targets
        progress, stage = trainer.progress, method.stages[-1]
        has_levelled = progress.has_stalled(stage) or progress.best_epoch <= 0.9 * stage.epochs
        result = RunResult(
            method=self.name,
            seed=self.seed,
            accuracy=scores["test"].level_accuracy,
            val_accuracy=scores["val"].level_accuracy if "val" in scores else None,
            best_epoch=progress.best_epoch,
            epochs=progress.total,
            seconds=progress.seconds,
            levelled_off=has_levelled or "val" not in scores,
            curriculum_epochs=self.length if "length" in method.needs else None,
            num_clusters=self.hierarchy.num_clusters if self.hierarchy else (),
            path=run.path,
            by_rule=_accuracies(scores["test"], data.test.targets),
        )
        run.finish(trainer.best, method.state_dict(), predictions, result.to_dict())

    def _make_model(self, outputs: int) -> nn.Module:
        return build_model(self.model, outputs, input_shape(self.data.train), self.data.kind)

    def _batches(self, split: Split, transform: Transform, fabric: Fabric) -> Batches:
        return Batches(
            split,
            transform,
            self.config.batch_size or 1,
            device=fabric.device,
            rank=fabric.global_rank,
            world=fabric.world_size,
            workers=self.config.workers,
            channels_last=fabric.device.type == "cpu",  # elsewhere it need not pay
            augments_files=bool(self.config.augment),
        )

    def _check_model(self, method: Method, batches: Batches) -> str:
        """Return the name of the model's final layer, after a look at what it gives."""
        classes = len(self.data.class_names)
        samples = next(batches.in_order()).inputs
        model = self._make_model(classes).eval().to(samples.device)
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
        needs_head = len(method.stages) > 1 or self.reads_head
        return find_head(model, self.config.head)[0] if needs_head else ""


def _accuracies(scores: Scores, targets: Tensor) -> dict[str, float]:
    """Return the accuracy by each rule of inference, where there are several."""
    if len(scores.by_rule) < 2:
        return {}
    return {
        rule: float((found == targets).double().mean()) for rule, found in scores.by_rule.items()
    }
