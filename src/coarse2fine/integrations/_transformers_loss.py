"""The marginalised loss in the form that Hugging Face's Trainer takes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..loss import CoarseToFineLoss

_ROUNDING = 0.02  # of probabilities in bfloat16


class CoarseToFineComputeLoss:
    """The marginalised loss as a ``compute_loss_func``.

    Where the Trainer counts the items of all batches of an optimiser step, the sum of the
    losses is divided by that number, so that accumulation changes nothing. Evaluation, where
    no gradients are recorded, is cross-entropy on the classes; a label that is a node, or a
    mask of candidates, counts as it is.

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
        self._has_checked = False

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
        is_row = labels.is_floating_point() or labels.dtype == torch.bool
        if not is_row and labels.shape == logits.shape:
            raise ValueError(
                "labels hold a row of integers for each prediction; candidates must be boolean."
            )
        if labels.is_floating_point():
            self._check_probabilities(labels)
        criterion = self.criterion.to(logits.device).train(torch.is_grad_enabled())
        criterion.reduction = "mean" if num_items_in_batch is None else "sum"
        loss: Tensor = criterion(
            logits.reshape(-1, num_classes),
            labels.reshape(-1, labels.shape[-1]) if is_row else labels.reshape(-1),
        )
        if num_items_in_batch is None:
            return loss
        items = torch.as_tensor(num_items_in_batch, device=loss.device)
        # The Trainer counts labels that are not -100, so every class of a sample's row.
        return loss / (items / num_classes if is_row else items)

    def _check_probabilities(self, labels: Tensor) -> None:
        """Refuse candidates that became floats; once, as to look is to wait for the device."""
        if self._has_checked:
            return
        self._has_checked = True
        totals = labels.detach().sum(dim=-1)
        if (totals > 1 + _ROUNDING).any():
            raise ValueError(
                f"labels are floats, so class probabilities, but a row of them sums to "
                f"{totals.max():g}; candidates must be boolean, in a column 'labels' (of a column "
                f"'label' the Trainer makes floats)."
            )

    def _note_training(self) -> None:
        if not self.has_callback:
            raise ValueError(
                "nothing changes the level: give the Trainer the other half of what "
                "coarse_to_fine returned, callbacks=[callback]."
            )
        self.is_used = True


def _logits(outputs: Any) -> Tensor:
    """Return the logits of a model's output: a tensor, the first of a tuple, or by their name."""
    if isinstance(outputs, Tensor):
        return outputs
    if isinstance(outputs, dict) and "logits" not in outputs:
        raise ValueError(f"the model gives no 'logits', but {', '.join(map(str, outputs))}.")
    logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
    return logits
