"""The curriculum in Hugging Face's Trainer: a loss function and a callback from one call.

loss, callback = coarse_to_fine(baseline, epochs=10)
Trainer(model, args, compute_loss_func=loss, callbacks=[callback], ...)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from ..curriculum import Curriculum
from ..errors import require
from ..loss import CoarseToFineLoss
from ._curriculum import Source, curriculum_from, warn_if_cut_short

require("transformers.trainer_callback", "transformers")  # says how to install it

from transformers.trainer_callback import (  # noqa: E402
    EarlyStoppingCallback,
    TrainerCallback,
    TrainerControl,
)
from transformers.training_args import TrainingArguments  # noqa: E402

# Under this name the curriculum lies in the state of the Trainer, which its checkpoints keep.
STATE_KEY = "coarse2fine"

logger = logging.getLogger(__name__)


def coarse_to_fine(
    hierarchy: Source,
    epochs: int | None = None,
    *,
    steps: int | None = None,
    boundaries: Iterable[int] | None = None,
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
    curriculum = curriculum_from(
        hierarchy, epochs, steps=steps, boundaries=boundaries, criterion=criterion, head=head
    )
    unit: Literal["epoch", "global_step"] = "epoch" if steps is None else "global_step"
    loss = CoarseToFineComputeLoss(criterion)
    return loss, CoarseToFineCallback(loss, curriculum, unit, label_smoothing)


class CoarseToFineComputeLoss:
    """The marginalised loss as a ``compute_loss_func``.

    Where the Trainer counts the items of all batches of an optimiser step, the sum of the
    losses is divided by that number, so that accumulation changes nothing. Evaluation, where
    no gradients are recorded, is cross-entropy on the classes.

    Args:
        criterion: The loss.

    Attributes:
        is_used: Whether it was called in training.
        has_callback: Whether its callback has begun to set the level.
    """

    def __init__(self, criterion: CoarseToFineLoss) -> None:
        self.criterion = criterion
        self.is_used = False
        self.has_callback = False

    def __call__(
        self,
        outputs: Any,
        labels: Tensor | None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Return the loss of a batch, at the level in force."""
        if labels is None:
            raise ValueError("the batch has no labels; name their column 'labels' or 'label'.")
        logits = _logits(outputs)
        if torch.is_grad_enabled():
            self._note_training()
        num_classes = logits.shape[-1]
        probabilities = labels.is_floating_point()
        criterion = self.criterion.to(logits.device).train(torch.is_grad_enabled())
        criterion.reduction = "mean" if num_items_in_batch is None else "sum"
        loss: Tensor = criterion(
            logits.reshape(-1, num_classes),
            labels.reshape(-1, num_classes) if probabilities else labels.reshape(-1),
        )
        if num_items_in_batch is None:
            return loss
        items = torch.as_tensor(num_items_in_batch, device=loss.device)
        # The Trainer counts labels that are not -100, so every class of a sample's probabilities.
        return loss / (items / num_classes if probabilities else items)

    def _note_training(self) -> None:
        if not self.has_callback:
            raise ValueError(
                "nothing changes the level: give the Trainer the other half of what "
                "coarse_to_fine returned, callbacks=[callback]."
            )
        self.is_used = True


class CoarseToFineCallback(TrainerCallback):
    """Sets the level before each optimiser step, by the epoch (or step) of the Trainer's state.

    The level stands in the Trainer's logs as ``curriculum_level``. The hierarchy and the
    boundaries of the levels are kept in the Trainer's checkpoints; a resumed training goes on
    with those, and says so where they are not the ones it was given. With several processes
    the first one's hierarchy is everybody's.

    Args:
        loss: What the Trainer computes losses by.
        curriculum: The curriculum of its criterion.
        unit: What the curriculum counts: ``"epoch"`` or ``"global_step"``. Defaults to
            ``"epoch"``.
        label_smoothing: Defaults to None: that of the Trainer's arguments.
    """

    def __init__(
        self,
        loss: CoarseToFineComputeLoss,
        curriculum: Curriculum,
        unit: Literal["epoch", "global_step"] = "epoch",
        label_smoothing: float | None = None,
    ) -> None:
        self.loss = loss
        self.curriculum = curriculum
        self.unit = unit
        self.label_smoothing = label_smoothing

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
        self.on_init_end(args, state, control)  # training begins with a new state
        kept = _of_first_process(state.stateful_callbacks[STATE_KEY])
        own = self._state()
        if any(kept[key] != own[key] for key in ("boundaries", "hierarchy", "unit")):
            logger.warning(
                "The curriculum of the checkpoint, or of the first process, is not the one given "
                "here; training goes on with it."
            )
        self.unit = kept["unit"]
        self.curriculum.load_state_dict(kept)
        state.stateful_callbacks[STATE_KEY] = kept
        self.loss.has_callback, self.loss.is_used = True, False
        self._check_length(state)
        self.on_step_begin(args, state, control)

    def on_step_begin(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Set the level of the epoch (or step) that is about to be trained."""
        self.curriculum.step(int(getattr(state, self.unit)))

    def on_step_end(
        self, args: TrainingArguments, state: Any, control: TrainerControl, **_: Any
    ) -> None:
        """Refuse to go on where the Trainer has another loss."""
        if not self.loss.is_used:
            raise ValueError(
                "the Trainer does not use the loss: give it the other half of what "
                "coarse_to_fine returned, compute_loss_func=loss."
            )

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
        return self.curriculum.state_dict() | {"unit": self.unit}


class CoarseToFineEarlyStopping(EarlyStoppingCallback):
    """Early stopping that counts only what was trained at the finest level.

    At a coarse level the model is not yet asked for the classes, so their validation metric
    may well stand still. Without a curriculum it is Hugging Face's own.
    """

    def on_evaluate(  # type: ignore[override]
        self, args: TrainingArguments, state: Any, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count an evaluation, if the finest level has been trained before it."""
        curriculum = state.stateful_callbacks.get(STATE_KEY, {"unit": "epoch", "boundaries": ()})
        position = getattr(state, curriculum["unit"])
        if all(position > boundary for boundary in curriculum["boundaries"]):
            super().on_evaluate(args, state, control, **kwargs)  # type: ignore[no-untyped-call]


def _logits(outputs: Any) -> Tensor:
    """Return the logits of a model's output: a tensor, the first of a tuple, or by their name."""
    if isinstance(outputs, Tensor):
        return outputs
    if isinstance(outputs, dict) and "logits" not in outputs:
        raise ValueError(f"the model gives no 'logits', but {', '.join(map(str, outputs))}.")
    logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
    return logits


def _of_first_process(value: Any) -> Any:
    """Return what the first of several processes has."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return value
    values = [value]
    torch.distributed.broadcast_object_list(values)
    return values[0]
