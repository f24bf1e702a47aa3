"""The curriculum in Hugging Face's Trainer: a loss function and a callback from one call.

loss, callback = coarse_to_fine(baseline, patience=5)
Trainer(model, args, compute_loss_func=loss, callbacks=[callback], ...)
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any, Literal, cast

import torch
from torch import Tensor

from ..curriculum import Curriculum
from ..errors import require
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ._curriculum import HierarchySource, curriculum_from, warn_if_coarse, warn_if_cut_short
from ._pace import Pace
from ._transformers_loss import CoarseToFineComputeLoss

require("transformers.trainer_callback", "transformers")  # says how to install it

from transformers.trainer_callback import (  # noqa: E402
    EarlyStoppingCallback,
    TrainerCallback,
    TrainerControl,
)
from transformers.training_args import TrainingArguments  # noqa: E402

__all__ = [
    "CoarseToFineCallback",
    "CoarseToFineComputeLoss",
    "CoarseToFineEarlyStopping",
    "coarse_to_fine",
]

# Under this name the curriculum lies in the state of the Trainer, which its checkpoints keep.
STATE_KEY = "coarse2fine"
_REMEDY = (
    'give the Trainer an eval_dataset and TrainingArguments(eval_strategy="epoch"), and no '
    "streamed data set to train on, which has no epochs"
)

logger = logging.getLogger(__name__)


def coarse_to_fine(
    hierarchy: HierarchySource,
    epochs: int | None = None,
    *,
    steps: int | None = None,
    boundaries: Iterable[int] | None = None,
    patience: int | None = None,
    head: str | None = None,
    weight: Tensor | None = None,
    label_smoothing: float | None = None,
) -> tuple[CoarseToFineComputeLoss, CoarseToFineCallback]:
    """Return what a Trainer needs: its ``compute_loss_func`` and one of its ``callbacks``.

    Args:
        hierarchy: A trained classifier to make it from, a `Hierarchy`, a K×K matrix of
            distances, or the path of any file or run that a hierarchy is read from.
        epochs: T, the length of the curriculum in epochs.
        steps: T in optimiser steps instead.
        boundaries: Instead of either, the epochs at which the levels 1, 2, ... begin.
        patience: Instead of those, leave a coarse level once the accuracy at it, in the
            evaluations after each epoch, has not improved for so many of them. The coarse
            levels take at most half of all epochs.
        head: The name of the classifier's final layer, where it cannot be found. Defaults
            to None.
        weight: A weight for each class. Defaults to None.
        label_smoothing: Defaults to None: the ``label_smoothing_factor`` of the Trainer's
            arguments.

    Examples:
        >>> from coarse2fine import Hierarchy
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> loss, callback = coarse_to_fine(hierarchy, epochs=10)
        >>> # Trainer(model, args, compute_loss_func=loss, callbacks=[callback], ...)
        >>> callback.curriculum
        Curriculum(boundaries=(5,), epoch=0, level=0)
    """
    criterion = CoarseToFineLoss(weight=weight)
    lengths: dict[str, Any] = {"steps": steps, "boundaries": boundaries, "patience": patience}
    curriculum = curriculum_from(hierarchy, epochs, **lengths, criterion=criterion, head=head)
    unit: Literal["epoch", "global_step"] = "epoch" if steps is None else "global_step"
    loss = CoarseToFineComputeLoss(criterion)
    return loss, CoarseToFineCallback(loss, curriculum, unit, label_smoothing, patience)


class CoarseToFineCallback(TrainerCallback):
    """Sets the level before each optimiser step, by the epoch (or step) of the Trainer's state.

    The level stands in the Trainer's logs as ``curriculum_level``. The hierarchy and the
    boundaries of the levels are kept in the Trainer's checkpoints; a resumed training goes on
    with those, and says so where they are not the ones it was given. With several processes
    the first one's hierarchy is everybody's. With `patience` the level is set by the
    evaluations after each epoch, and checkpoints hold how they went.

    Args:
        loss: What the Trainer computes losses by.
        curriculum: The curriculum of its criterion.
        unit: What the curriculum counts: ``"epoch"`` or ``"global_step"``. Defaults to
            ``"epoch"``.
        label_smoothing: Defaults to None: that of the Trainer's arguments.
        patience: Of the curriculum. Defaults to None: it has a fixed length.
    """

    def __init__(
        self,
        loss: CoarseToFineComputeLoss,
        curriculum: Curriculum,
        unit: Literal["epoch", "global_step"] = "epoch",
        label_smoothing: float | None = None,
        patience: int | None = None,
    ) -> None:
        self.loss = loss
        self.curriculum = curriculum
        self.unit = unit
        self.label_smoothing = label_smoothing
        self.patience = patience
        self._pace: Pace | None = None  # with patience, from the start of training on

    def on_init_end(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Take label smoothing from the Trainer's arguments, and give its state the curriculum."""
        given = self.label_smoothing
        smoothing = args.label_smoothing_factor if given is None else given
        self.curriculum.criterion.label_smoothing = smoothing
        state.stateful_callbacks.setdefault(STATE_KEY, self._state())

    def on_train_begin(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Go on with the curriculum of the checkpoint, if there is one, and the first process."""
        self._forget()
        self.on_init_end(args, state, control)  # training begins with a new state
        kept = _of_first_process(state.stateful_callbacks[STATE_KEY])
        own = self._state()
        given = ("hierarchy", "unit") if self.patience else ("hierarchy", "unit", "boundaries")
        if any(kept[key] != own[key] for key in given):
            logger.warning(
                "The curriculum of the checkpoint, or of the first process, is not the one given "
                "here; training goes on with it."
            )
        self.unit = kept["unit"]
        self.curriculum.load_state_dict(kept)
        state.stateful_callbacks[STATE_KEY] = kept
        self.loss.has_callback, self.loss.is_used = True, False
        if self.patience is not None:
            self._begin_adaptive(args, state, kept)
        self._check_length(state)
        self.on_step_begin(args, state, control)

    def _forget(self, total_epochs: int | None = None) -> None:
        """Begin an adaptive curriculum anew; a fixed one goes to any epoch."""
        self._pace = None
        if self.patience is not None:
            criterion = self.curriculum.criterion
            hierarchy = cast(Hierarchy, criterion.hierarchy)
            length: dict[str, Any] = {"patience": self.patience, "total_epochs": total_epochs}
            self.curriculum = curriculum_from(hierarchy, **length, criterion=criterion)

    def _begin_adaptive(self, args: TrainingArguments, state: Any, kept: dict[str, Any]) -> None:
        """Build the curriculum now that it is known how many epochs there are."""
        self._forget(state.num_train_epochs)
        self._pace = Pace(self.curriculum, int(state.epoch), _REMEDY)
        if "trained" in kept:
            self._pace.load_state_dict(kept)
        is_stream = state.num_train_epochs == sys.maxsize
        if args.eval_strategy != "epoch" or is_stream:
            raise ValueError(self._pace.complaint())
        self._begin_epoch(self._pace, args, state)

    def on_step_begin(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Set the level of the epoch (or step) that is about to be trained."""
        if self._pace is None:
            self.curriculum.step(int(getattr(state, self.unit)))
            return
        if int(state.epoch) > self._pace.epoch:
            self._begin_epoch(self._pace, args, state)

    def _begin_epoch(self, pace: Pace, args: TrainingArguments, state: Any) -> None:
        pace.begin_epoch(int(state.epoch))
        self.loss.criterion._tally = pace.tally(args.device)
        state.stateful_callbacks[STATE_KEY] = self._state()

    def on_step_end(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Refuse to go on where the Trainer has another loss."""
        if not self.loss.is_used:
            raise ValueError(
                "the Trainer does not use the loss: give it the other half of what "
                "coarse_to_fine returned, compute_loss_func=loss."
            )
        if self.loss.criterion._tally is not None:
            self.loss.criterion._tally.clear()  # the model is another one now
            # A checkpoint at the end of an epoch needs the accuracy, which it would come before.
            control.should_evaluate |= control.should_save and float(state.epoch).is_integer()

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: Any,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Note the accuracy at the level over all processes for when the next epoch begins."""
        tally = self.loss.criterion._tally
        if self._pace is None or tally is None:
            return
        if any(name.startswith("eval_") for name in metrics or ()):
            self._pace.accuracy = tally.accuracy()  # of all evaluation sets, if there are several
            state.stateful_callbacks[STATE_KEY] = self._state()
        else:  # what somebody evaluated beside the Trainer's own data, such as test samples
            tally.clear()

    def on_predict(
        self, args: TrainingArguments, state: Any, control: TrainerControl, *_: Any, **__: Any
    ) -> None:
        """Forget what was predicted: it is not what the Trainer validates on."""
        if self.loss.criterion._tally is not None:
            self.loss.criterion._tally.clear()

    def on_train_end(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Warn where training has ended before the classes."""
        self.loss.criterion._tally = None
        warn_if_coarse(self.curriculum)

    def on_log(
        self,
        args: TrainingArguments,
        state: Any,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Add the level to what is logged."""
        for entry in (logs, state.log_history[-1]):
            if entry is not None:
                entry["curriculum_level"] = self.curriculum.level

    def _check_length(self, state: Any) -> None:
        what = "num_train_epochs" if self.unit == "epoch" else "max_steps"
        warn_if_cut_short(getattr(state, what), self.curriculum, what)

    def _state(self) -> dict[str, Any]:
        now = self.curriculum if self._pace is None else self._pace
        return now.state_dict() | {"unit": self.unit}


class CoarseToFineEarlyStopping(EarlyStoppingCallback):
    """Early stopping that counts only what was trained at the finest level.

    At a coarse level the model is not yet asked for the classes, so their validation metric
    may well stand still. Without a curriculum it is Hugging Face's own.
    """

    def on_evaluate(  # type: ignore[override]
        self, args: TrainingArguments, state: Any, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count an evaluation, if the finest level has been trained before it."""
        if _is_finest(state, state.stateful_callbacks.get(STATE_KEY)):
            super().on_evaluate(args, state, control, **kwargs)  # type: ignore[no-untyped-call]


def _is_finest(state: Any, curriculum: dict[str, Any] | None) -> bool:
    """Whether the finest level has been trained, or there is no curriculum."""
    if curriculum is None:
        return True
    position, boundaries = getattr(state, curriculum["unit"]), curriculum["boundaries"]
    is_known = len(boundaries) == len(curriculum["hierarchy"]["levels"])  # the coarse ones
    return is_known and all(position > boundary for boundary in boundaries)


def _of_first_process(value: Any) -> Any:
    """Return what the first of several processes has."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return value
    values = [value]
    torch.distributed.broadcast_object_list(values)
    return values[0]
