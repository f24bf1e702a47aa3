"""The training loop: any method, one run, from its start or from its last checkpoint.

Everything random is a function of seed, stage and epoch, and checkpoints lie between epochs,
so a run that is killed and resumed goes through the very same numbers.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, NoReturn

import torch
from torch import Tensor

from .._util.seeds import seed_of
from .._util.text import brief
from ..checkpoints import Tensors
from ..errors import RunError
from ..methods.base import Stage
from ..runs.checkpoint import Checkpoint
from ..runs.config import irrelevant_settings
from ..runs.guards import locked
from ..runs.identity import trust
from ..runs.result import BASELINE, RunResult
from ..runs.writer import RunWriter
from .evaluation import Scores, check_finite, evaluate, sample_losses, sum_over
from .fabric import Fabric
from .finite import (
    REMEDY,
    SAVED,
    FirstSpoiled,
    SpoiledEpochError,
    looking_waits,
    non_finite_weights,
)
from .job import Job
from .longer import goes_on, lengthened
from .progress import Watcher
from .state import (
    Progress,
    gathered_state,
    gathered_weights,
    learning_rate,
    make_optimiser,
    restore_state,
    wrapped,
)


class Trainer:
    """Trains one model by one method, keeping a run directory up to date.

    Args:
        fabric: Lightning Fabric, launched.
        job: What to train.
        watcher: Told what happens. Defaults to None: nobody is.
        checkpoint_seconds: The least time between two checkpoints. Defaults to 10.0.
    """

    def __init__(
        self,
        fabric: Fabric,
        job: Job,
        watcher: Watcher | None = None,
        checkpoint_seconds: float = 10.0,
    ) -> None:
        trust(str(job.config.model), job.model)
        self.fabric, self.job, self.config = fabric, job, job.config
        self.watcher = watcher or Watcher()
        self.method = job.new_method().to(fabric.device)
        self.run = RunWriter(
            job.path,
            is_writer=fabric.is_global_zero,
            checkpoint_seconds=checkpoint_seconds,
            watch=self.watcher.epoch,
        )
        self.progress = Progress()
        self.best: Tensors = {}
        self.model: Any = None
        self.optimiser: Any = None
        self.looks = not looking_waits(fabric.device)  # at every batch for NaN and infinity

    def train(self) -> RunResult:
        """Train, go on where training was, or read what is done."""
        fabric, job, run = self.fabric, self.job, self.run
        if job.lengthens:
            self._lengthen()
        run.begin(job.content(), irrelevant_settings(job.method), job.plan.hierarchy)
        if not run.is_done:
            allowed = sum(stage.exactly or stage.epochs for stage in self.method.stages)
            self.watcher.begin(run.path, job.name, job.seed, allowed)
            with locked(run.path) if run.is_writer else nullcontext():
                if not fabric.broadcast(run.is_done):  # somebody else may have ended it just now
                    self._begin()
                    try:
                        while self._is_going_on():
                            self._begin_epoch()
                            self._end_epoch(self._train_batches())
                    except SpoiledEpochError as error:
                        self._name_what_spoiled(error)
                    self._finish()
        fabric.barrier()
        result = RunResult.load(run.path)
        run.tidy(keep_last=job.name == BASELINE or self._may_go_on)
        self.watcher.end(result)
        return result

    def _lengthen(self) -> None:
        """Have a run that was begun with fewer epochs be one of as many as are allowed now."""
        said = lengthened(self.run, self.job, self.method) if self.run.is_writer else None
        if said:
            self.watcher.note(f"seed {self.job.seed} {self.job.name}: {said}.")
        self.fabric.barrier()  # the others look at what the writer has just changed

    @property
    def _may_go_on(self) -> bool:
        """Whether the last checkpoint is of use to a run that is allowed more epochs."""
        is_of_use = self.job.lengthens and goes_on(self.job.method) and not self.config.milestones
        return is_of_use and not self.progress.has_stalled(self.method.stages[-1])

    def _begin(self) -> None:
        """Be ready to train: with the samples, and where the run's last checkpoint was."""
        fabric, job = self.fabric, self.job
        if job.continued is not None:
            self.run.go_on_from(job.continued.path)
            fabric.barrier()  # the others read what the writer has just copied
        parts = {"train": job.data.train, "val": job.data.val, "test": job.data.test}
        self.batches = {
            name: job.batches(part, fabric) for name, part in parts.items() if len(part)
        }
        self.head = job.head(self.method, fabric)
        self._resume()

    def _name_what_spoiled(self, error: SpoiledEpochError) -> NoReturn:
        """Raise a `ValueError` that names the layer which gave the first NaN or infinity.

        The weights are spoiled by now, so the epochs since the last checkpoint are trained
        again, to the same numbers, with a look at every batch.
        """
        self.progress, self.best, self.looks = Progress(), {}, True
        self.method = self.job.new_method().to(self.fabric.device)  # without what it has learned
        self._resume()
        while self._is_going_on() and self.progress.total < error.epoch:
            self._begin_epoch()
            self._end_epoch(self._train_batches())
        # Only where the device does not give the same numbers twice.
        raise ValueError(f"{error}, though not a second time; {REMEDY} {SAVED}") from error

    def _is_going_on(self) -> bool:
        """Whether there is another epoch to train, after going to the next stage if need be."""
        stages, progress = self.method.stages, self.progress
        if progress.is_over(stages[progress.stage]):
            if progress.stage == len(stages) - 1:
                return False
            progress.next_stage()
            self._begin_stage(encoder=self.best)
        return True

    def _finish(self) -> None:
        """Test the model of the best epoch, and store all that came out."""
        best = self.job.new_model(self.method.stages[-1].outputs)
        best.load_state_dict(self.best)
        model = self.fabric.setup_module(best.to(self.fabric.device))
        scores: dict[str, Scores] = {
            part: evaluate(self.fabric, model, self.batches[part], decide=self.method.decide)
            for part in ("val", "test")
            if part in self.batches
        }
        if self.run.is_writer:
            result, predictions = self.job.result(self.method, self.progress, scores)
            self.run.finish(self.best, self.method.state_dict(), predictions, result.to_dict())

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
        # First a model and an optimiser as the stage has them, set up for all processes: torch
        # spreads a whole state over these as the wrapped ones are.
        self._begin_stage(encoder={})
        restore_state(wrapped(self.model), self.optimiser.optimizer, found)
        self.method.load_state_dict(found.tensors["method"])
        self.fabric.strategy.precision.load_state_dict(found.state["precision"])

    # ------------------------------------------------------------------------- a stage

    def _begin_stage(self, encoder: Tensors) -> None:
        """Make the stage's model and optimiser, with an encoder's weights where given."""
        model = self.job.fresh_model(self.method, self.progress.stage, encoder, self.head)
        if self.batches["train"].is_channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model = self.fabric.setup_module(model)
        self.optimiser = self.fabric.setup_optimizers(
            make_optimiser(self.config, self.model.parameters())
        )

    # ------------------------------------------------------------------------- an epoch

    def _begin_epoch(self) -> None:
        """Set the method and the learning rate of an epoch."""
        self.started = time.perf_counter()
        progress, stage = self.progress, self.method.stages[self.progress.stage]
        self.method.begin_epoch(progress.stage, progress.epoch, self._sample_losses)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.config, progress.epoch, stage.epochs)

    def _train_batches(self) -> float:
        """Go through the training batches once, and return the mean loss."""
        fabric, progress = self.fabric, self.progress
        key = (self.job.seed, progress.stage, progress.epoch)
        torch.manual_seed(seed_of("layers", *key, fabric.global_rank))
        self.model.train()
        self.method.train()
        total, spoiled = torch.zeros((), device=fabric.device), FirstSpoiled(fabric.device)
        # Nothing in this loop may wait for the device, or it idles until the next batch.
        for number, batch in enumerate(self.batches["train"].shuffled(key), 1):
            self.optimiser.zero_grad()
            parts = batch.split(self.config.accumulate)
            for part in parts:
                waits = part is not parts[-1] and fabric.world_size > 1
                with fabric.no_backward_sync(self.model) if waits else nullcontext():
                    logits = self.model(part.inputs)
                    # Not by calling the module: nothing hooks into a loss, and every traceback
                    # from here on would be longer by two frames of torch's.
                    loss = self.method.forward(logits, part) * part.share
                    if self.looks:
                        where = f"{self._epoch_in_words}, batch {number}"
                        check_finite(fabric, self.model, part.inputs, logits, loss, where)
                    else:
                        spoiled.note(number, logits, loss)
                    fabric.backward(loss)
                total += loss.detach() * part.total
            self._clip_gradients()
            self.optimiser.step()
            self.method.end_batch(self._total)
        self._check_unspoiled(spoiled)
        samples = len(self.batches["train"].split)
        return float(self._total(total)) / fabric.world_size / samples

    def _clip_gradients(self) -> None:
        if self.config.clip is not None:
            # To refuse gradients that are not finite would wait; the next batch tells.
            self.fabric.clip_gradients(
                self.model, self.optimiser, max_norm=self.config.clip, error_if_nonfinite=False
            )

    def _check_unspoiled(self, spoiled: FirstSpoiled) -> None:
        """Raise where any process has seen a NaN or an infinity, or the weights hold one."""
        number = 0 if self.looks else spoiled.read()
        is_spoiled = torch.tensor(float(number > 0), device=self.fabric.device)
        if not self.looks and float(self._total(is_spoiled)):
            where = f"{self._epoch_in_words}, batch {number}" if number else "another process"
            text = f"the logits or the loss became nan or infinite in {where}"
            raise SpoiledEpochError(text, self.progress.total + 1)
        # Nothing is kept of weights that the last step has spoiled.
        if spoiled_weights := non_finite_weights(self.model.module):
            where = f"at the end of {self._epoch_in_words}"
            raise ValueError(f"{where} {spoiled_weights}; {REMEDY} {SAVED}")

    def _end_epoch(self, loss: float) -> None:
        """Validate, keep what is best so far, note the epoch down, and save it if it is time."""
        progress, stage = self.progress, self.method.stages[self.progress.stage]
        trained = time.perf_counter() - self.started
        scores = self._scores("val")
        tested = self._scores("test") if self.config.track_test else None
        progress.epoch, progress.total = progress.epoch + 1, progress.total + 1
        self._keep_best(stage, scores)
        progress.seconds += time.perf_counter() - self.started
        self.run.log(
            {
                "stage": progress.stage,
                "epoch": progress.total,
                "level": self.method.level,
                "loss": loss,
                "val_loss": scores.loss if scores else None,
                "level_accuracy": scores.level_accuracy if scores else None,
                "accuracy": scores.accuracy if scores else None,
                **({"test_accuracy": tested.accuracy} if tested else {}),
                **({"test_level_accuracy": tested.level_accuracy} if tested else {}),
                "learning_rate": self.optimiser.param_groups[0]["lr"],
                "images_per_second": len(self.batches["train"].split) / trained,
                "seconds": progress.seconds,
            }
        )
        self.method.end_epoch(scores.level_accuracy if scores else None)
        # By the clock of one process, since all must take part.
        wanted = self.run.wants_checkpoint(is_last=progress.is_over(stage))
        if self.fabric.broadcast(wanted):
            self.run.save(self._checkpoint())

    @property
    def _epoch_in_words(self) -> str:
        return f"epoch {self.progress.total + 1} of {self.run.path}"

    def _sample_losses(self) -> Tensor:
        where = f"a look at the samples before {self._epoch_in_words}"
        return sample_losses(self.fabric, self.model, self.batches["train"], where)

    def _total(self, tensor: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        return sum_over(self.fabric, tensor)

    def _scores(self, part: str) -> Scores | None:
        if part not in self.batches:
            return None
        method, what = self.method, {"val": "validation"}.get(part, part)
        where = f"the {what} after {self._epoch_in_words}"
        batches = self.batches[part]
        return evaluate(self.fabric, self.model, batches, method.clusters, method.decide, where)

    def _keep_best(self, stage: Stage, scores: Scores | None) -> None:
        """Keep the weights where they are the best so far, or nothing can tell."""
        progress = self.progress
        if progress.epoch <= stage.counts_from:
            return
        if scores is None or scores.level_accuracy > progress.best_accuracy:
            progress.best_epoch = progress.epoch
            progress.best_accuracy = scores.level_accuracy if scores else -1.0
            self.best = gathered_weights(wrapped(self.model))

    def _checkpoint(self) -> Checkpoint:
        """Return the whole state, gathered from all processes."""
        model, optimiser, groups = gathered_state(wrapped(self.model), self.optimiser.optimizer)
        state = {
            "progress": asdict(self.progress),
            "groups": groups,
            "precision": self.fabric.strategy.precision.state_dict(),
        }
        tensors = {
            "model": model,
            "best": self.best,
            "optimiser": optimiser,
            "method": self.method.state_dict(),
        }
        return Checkpoint(self.progress.total, state, tensors)
