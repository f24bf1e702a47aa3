"""The epochs of the scikit-learn estimator: skorch's net without all that it does for a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import torch
from skorch import NeuralNetClassifier  # type: ignore[import-untyped]
from torch import Tensor

from ..functional import coarse_log_softmax
from ..training.finite import complaint
from ._sklearn_samples import SampleBatches


@dataclass
class _Share:
    """The share of samples that are right, each by its weight."""

    right: float = 0.0
    total: float = 0.0

    def add(self, weights: Tensor, hits: Tensor, counted: Tensor) -> None:
        self.right += float(weights[hits].sum())
        self.total += float(weights[counted].sum())


class LeanNet(NeuralNetClassifier):  # type: ignore[misc]
    """skorch's net with epochs that do for a batch what must be done, and no more.

    skorch takes notes and asks every callback before and after each batch, which takes longer
    than a batch of a small network. Here only epochs are noted, with ``train_loss``,
    ``valid_loss``, ``valid_acc`` and, in a curriculum, ``valid_level_acc`` at the level in
    force. It refuses to go on where nothing can be learned any more.
    """

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **_: Any
    ) -> None:
        """Train or validate for an epoch, and note how it went."""
        self._set_training(training)
        found = self._train(iterator) if training else self._validate(iterator)
        for name, value in found.items():
            self.history.record(f"{prefix}_{name}", value)

    def _train(self, batches: SampleBatches) -> dict[str, float]:
        total, count = 0.0, 0
        for number, batch in enumerate(batches, 1):
            inputs, *known = self._on_device(batch)

            def compute(
                number: int = number, inputs: Tensor = inputs, known: Any = known
            ) -> Tensor:
                self.optimizer_.zero_grad()
                logits = self.module_(inputs)
                loss = self._loss(logits, *known)
                if not math.isfinite(loss.item()):
                    self._refuse(logits, loss, inputs, number)
                loss.backward()  # type: ignore[no-untyped-call]
                return loss

            loss = self.optimizer_.step(compute)  # as LBFGS needs it
            total, count = total + len(inputs) * loss.item(), count + len(inputs)
        return {"loss": total / count}

    @torch.no_grad()
    def _validate(self, batches: SampleBatches) -> dict[str, float]:
        """Return the loss, and the accuracies with each sample weighted as in the loss.

        Samples that are not labelled finely enough do not count in an accuracy.
        """
        loss, count, fine, level = 0.0, 0, _Share(), _Share()
        for batch in batches:
            inputs, targets, *more = self._on_device(batch)
            logits = self.module_(inputs)
            weights = self._weights(targets, *more)
            loss += len(targets) * self._loss(logits, targets, *more).item()
            hits, counted = logits.argmax(dim=1) == targets, targets < logits.shape[1]
            fine.add(weights, hits, counted)
            if not self._is_finest:
                hits, counted = self._level_hits(logits, targets)
            level.add(weights, hits, counted)
            count += len(targets)
        found = {"loss": loss / count, "acc": fine.right / fine.total}
        is_plain = self.criterion_.hierarchy is None
        return found if is_plain else {**found, "level_acc": level.right / level.total}

    @property
    def _is_finest(self) -> bool:
        hierarchy = self.criterion_.hierarchy
        return hierarchy is None or self.criterion_.level == len(hierarchy.levels) - 1

    def _level_hits(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return which samples are right at the level in force, and which tell their cluster."""
        hierarchy = self.criterion_.hierarchy
        level = hierarchy.levels[self.criterion_.level]
        wanted = torch.from_numpy(hierarchy.nodes.within(level)).to(targets.device)[targets]
        clusters = torch.tensor(level, device=logits.device)
        found = clusters[coarse_log_softmax(logits, clusters).argmax(dim=1)]
        return found == wanted, wanted >= 0

    def _on_device(self, batch: tuple[Tensor, ...]) -> list[Tensor]:
        return [tensor.to(self.device) for tensor in batch]

    def _loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the mean loss; samples' weights, unlike classes', do not count in its divisor.

        Else a batch of samples that hardly weigh anything would count as much as any other.
        """
        losses: Tensor = self.criterion_(logits, targets)
        if self.criterion_.reduction == "mean":
            return losses
        if weights is not None:
            losses = losses * weights
        return losses.sum() / self._weights(targets).sum()

    def _weights(self, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the weight of each sample: its own, if given, times that of its class."""
        of_labels = self._label_weights
        found = torch.ones(len(targets)) if of_labels is None else of_labels[targets.cpu()]
        found = found.to(targets.device)
        return found if weights is None else found * weights

    @cached_property
    def _label_weights(self) -> Tensor | None:
        """The weight of each class, and of each node the mean of its classes; None: all are 1."""
        weight, hierarchy = self.criterion_.weight, self.criterion_.hierarchy
        if weight is None or hierarchy is None:
            return None if weight is None else weight.double().cpu()
        nodes, weights = hierarchy.nodes, weight.double().cpu().numpy()
        return torch.from_numpy(nodes.probabilities(weights[None])[0] / nodes.sizes)

    def _refuse(self, logits: Tensor, loss: Tensor, inputs: Tensor, number: int) -> NoReturn:
        where = f"epoch {len(self.history)}, batch {number}"
        message = complaint(logits, loss, where, self.module_, inputs, self.infer)
        raise ValueError(f"{message} lr is {self.lr}.")
