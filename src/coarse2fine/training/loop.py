"""The training loop: any method, one run, from its start or from its last checkpoint.

Everything random is a function of seed, stage and epoch, and checkpoints lie between epochs,
so a run that is killed and resumed goes through the very same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from .._finite import REMEDY, non_finite_weights
from .._printable import brief
from ..data import Batches, seed_of
from ..errors import RunError
from ..methods.base import Method, Stage
from .checkpoint import Checkpoint, Tensors
from .config import Config
from .evaluation import SAVED, Scores, check_finite, evaluate, sample_losses, sum_over
from .optimisers import flat_state, learning_rate, make_optimiser, nested_state
from .run import Run

ModelFactory = Callable[[int], nn.Module]  # given the number of outputs
_WHOLE = StateDictOptions(full_state_dict=True)
# Weights that never had a gradient have no state.
_PARTIAL = StateDictOptions(full_state_dict=True, strict=False)


@dataclass
class Progress:
    """Where a run is; between epochs this and the tensors are all there is.

    Args:
        stage: The stage in training.
        epoch: How many of its epochs are done.
        total: How many epochs are done in all.
        best_epoch: The best of the stage's epochs, counted from 1; 0 for none yet.
        best_accuracy: Its validation accuracy, at the level of the stage.
        seconds: How long training took so far.
    """

    stage: int = 0
    epoch: int = 0
    total: int = 0
    best_epoch: int = 0
    best_accuracy: float = -1.0
    seconds: float = 0.0

    def is_over(self, stage: Stage) -> bool:
        """Whether the stage has had its epochs, or has not improved for too long."""
        return self.epoch >= stage.epochs or self.has_stalled(stage)

    def has_stalled(self, stage: Stage) -> bool:
        """Whether the stage has not improved for as long as its patience."""
        since = self.epoch - max(self.best_epoch, stage.counts_from)
        return bool(stage.patience) and since >= stage.patience

    def next_stage(self) -> None:
        """Go to the beginning of the next stage."""
        self.stage, self.epoch, self.best_epoch, self.best_accuracy = self.stage + 1, 0, 0, -1.0


class Trainer:
    """Trains one model by one method, keeping a run directory up to date.

    Args:
        fabric: Lightning Fabric, launched.
        config: Every setting filled in.
        seed: Of this run.
        make_model: Makes a model with a given number of outputs.
        head: The name of the model's final layer, whose weights are fresh in each stage.
        method: How to train.
        train: Training batches.
        val: Validation batches, or None: then the last epoch is the best.
        run: The run directory.
        test: Test batches, to note how good the model is on them after every epoch; nothing
            depends on it. Defaults to None.
    """

    def __init__(
        self,
        fabric: Fabric,
        config: Config,
        seed: int,
        make_model: ModelFactory,
        head: str,
        method: Method,
        train: Batches,
        val: Batches | None,
        run: Run,
        test: Batches | None = None,
    ) -> None:
        self.fabric, self.config, self.seed, self.run = fabric, config, seed, run
        self.make_model, self.head, self.method = make_model, head, method.to(fabric.device)
        self.train, self.val, self.test = train, val, test
        self.progress = Progress()
        self.best: Tensors = {}
        self.model: Any = None
        self.optimiser: Any = None

    def fit(self) -> nn.Module:
        """Train to the end, and return the model of the best epoch."""
        self._resume()
        stages = self.method.stages
        while True:
            if self.progress.is_over(stages[self.progress.stage]):
                if self.progress.stage == len(stages) - 1:
                    break
                self.progress.next_stage()
                self._begin_stage(encoder=self.best)
            self._train_epoch()
        model = self.make_model(stages[-1].outputs)
        model.load_state_dict(self.best)
        return model.to(self.fabric.device)

    def _resume(self) -> None:
        """Take up the run's last checkpoint, or begin."""
        found = self.run.resume()
        if found is None:
            self._begin_stage(encoder={})
            return
        try:
            self._take_up(found)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "state_dict" not in str(error):
                raise  # it is of memory, or of another process
            raise RunError(
                f"the checkpoint in {self.run.path} is not one of this training ({brief(error)}); "
                f"remove {self.run.path} to start anew, or choose another folder."
            ) from error

    def _take_up(self, found: Checkpoint) -> None:
        """Be where a checkpoint was written."""
        self.progress = Progress(**found.state["progress"])
        self.best = found.tensors["best"]
        self._begin_stage(encoder={})
        set_model_state_dict(self._inner(), dict(found.tensors["model"]), options=_WHOLE)
        if found.tensors["optimiser"]:  # SGD without momentum has no state
            set_optimizer_state_dict(
                self._inner(),
                self.optimiser.optimizer,
                nested_state(found.tensors["optimiser"], found.state["groups"]),
                options=_PARTIAL,
            )
        self.method.load_state_dict(found.tensors["method"])
        self.fabric.strategy.precision.load_state_dict(found.state["precision"])

    # ------------------------------------------------------------------------- a stage

    def _begin_stage(self, encoder: Tensors) -> None:
        """Make the stage's model and optimiser, with an encoder's weights where given."""
        stage = self.method.stages[self.progress.stage]
        torch.manual_seed(seed_of(self.seed, self.progress.stage))
        model = self.make_model(stage.outputs)
        if encoder:
            prefix = f"{self.head}." if self.head else ""  # a bare final layer has no encoder
            own = {k: v for k, v in model.state_dict().items() if k.startswith(prefix)}
            model.load_state_dict({**encoder, **own})
        if self.train.is_channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model = self.fabric.setup_module(model)
        self.optimiser = self.fabric.setup_optimizers(
            make_optimiser(self.config, self.model.parameters())
        )

    def _train_epoch(self) -> None:
        """Train and validate for one epoch, and note it down."""
        progress, stage = self.progress, self.method.stages[self.progress.stage]
        started = time.perf_counter()
        self.method.begin_epoch(progress.stage, progress.epoch, self._sample_losses)
        rate = learning_rate(self.config, progress.epoch, stage.epochs)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = self._train_batches()
        trained = time.perf_counter() - started
        scores = self._scores(self.val, "validation")
        test_scores = self._scores(self.test, "test")
        progress.epoch, progress.total = progress.epoch + 1, progress.total + 1
        self._keep_best(stage, scores)
        progress.seconds += time.perf_counter() - started
        self.run.log(
            {
                "stage": progress.stage,
                "epoch": progress.total,
                "level": self.method.level,
                "loss": loss,
                "val_loss": scores and scores.loss,
                "level_accuracy": scores and scores.level_accuracy,
                "accuracy": scores and scores.accuracy,
                **({"test_accuracy": test_scores.accuracy} if test_scores else {}),
                "learning_rate": rate,
                "images_per_second": len(self.train.split) / trained,
                "seconds": progress.seconds,
            }
        )
        # By the clock of one process, since all must take part.
        wanted = self.run.wants_checkpoint(is_last=progress.is_over(stage))
        if self.fabric.broadcast(wanted):
            self.run.save(self._checkpoint())

    def _train_batches(self) -> float:
        """Go through the training batches once, and return the mean loss."""
        progress, fabric = self.progress, self.fabric
        key = (self.seed, progress.stage, progress.epoch)
        torch.manual_seed(seed_of(*key, fabric.global_rank))
        self.model.train()
        self.method.train()
        total = torch.zeros((), device=fabric.device)
        for number, batch in enumerate(self.train.shuffled(key), 1):
            self.optimiser.zero_grad()
            parts = batch.split(self.config.accumulate)
            for part in parts:
                waits = part is not parts[-1] and fabric.world_size > 1
                with fabric.no_backward_sync(self.model) if waits else nullcontext():
                    logits = self.model(part.inputs)
                    loss = self.method(logits, part) * part.share
                    where = f"{self._epoch_in_words}, batch {number}"
                    check_finite(fabric, self.model, part.inputs, logits, loss, where)
                    fabric.backward(loss)
                total += loss.detach() * part.total
            if self.config.clip is not None:
                fabric.clip_gradients(self.model, self.optimiser, max_norm=self.config.clip)
            self.optimiser.step()
            self.method.end_batch(self._total)
        # Nothing is kept of weights that the last step has spoiled.
        if spoiled := non_finite_weights(self.model.module):
            raise ValueError(f"at the end of {self._epoch_in_words} {spoiled}; {REMEDY} {SAVED}")
        return float(sum_over(fabric, total)) / fabric.world_size / len(self.train.split)

    @property
    def _epoch_in_words(self) -> str:
        return f"epoch {self.progress.total + 1} of {self.run.path}"

    def _sample_losses(self) -> Tensor:
        where = f"a look at the samples before {self._epoch_in_words}"
        return sample_losses(self.fabric, self.model, self.train, where)

    def _total(self, tensor: Tensor) -> Tensor:
        return sum_over(self.fabric, tensor)

    def _scores(self, batches: Batches | None, what: str) -> Scores | None:
        if batches is None:
            return None
        method, where = self.method, f"the {what} after {self._epoch_in_words}"
        return evaluate(self.fabric, self.model, batches, method.clusters, method.decide, where)

    def _keep_best(self, stage: Stage, scores: Scores | None) -> None:
        """Keep the weights where they are the best so far, or nothing can tell."""
        progress = self.progress
        if progress.epoch <= stage.counts_from:
            return
        if scores is None or scores.level_accuracy > progress.best_accuracy:
            progress.best_epoch = progress.epoch
            progress.best_accuracy = scores.level_accuracy if scores else -1.0
            whole = get_model_state_dict(self._inner(), options=_WHOLE)
            self.best = {name: value.to("cpu", copy=True) for name, value in whole.items()}  # type: ignore[union-attr]

    # --------------------------------------------------------------------------- state

    def _checkpoint(self) -> Checkpoint:
        """Return the whole state, gathered from all processes."""
        found: Any = get_state_dict(self._inner(), self.optimiser.optimizer, options=_WHOLE)
        model, optimiser = found
        state = {
            "progress": asdict(self.progress),
            "groups": optimiser["param_groups"],
            "precision": self.fabric.strategy.precision.state_dict(),
        }
        tensors = {
            "model": model,
            "best": self.best,
            "optimiser": flat_state(optimiser["state"]),
            "method": self.method.state_dict(),
        }
        return Checkpoint(self.progress.total, state, tensors)

    def _inner(self) -> nn.Module:
        """Return the model as torch's strategies wrap it, within Fabric's own wrapper."""
        inner: nn.Module = self.model._forward_module
        return inner
