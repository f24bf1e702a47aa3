"""How good a model is on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data import Batch, Batches, Split
from ..functional import coarse_log_softmax
from ..methods.base import by_argmax
from ..methods.candidates import Candidates, candidate_loss
from ..runs.directory import HAS_CLASS
from .fabric import Fabric, is_wrapped
from .finite import SAVED, FirstSpoiled, all_finite, complaint, looking_waits


@dataclass(frozen=True)
class Scores:
    """How good a model is on a split.

    Where samples are labelled with clusters, an accuracy counts only those whose label is fine
    enough to tell what is right.

    Args:
        loss: The mean cross-entropy on the model's outputs, over all samples: of a cluster it is
            the negative log of the summed probability of its classes.
        accuracy: On the target classes; None where the outputs are coarser than those.
        level_accuracy: At the level in force.
        by_rule: The predicted output for each sample, by each rule of inference.
    """

    loss: float
    accuracy: float | None
    level_accuracy: float
    by_rule: dict[str, Tensor]

    @property
    def predictions(self) -> Tensor:
        """By the rule that counts."""
        return next(iter(self.by_rule.values()), torch.zeros(0, dtype=torch.int64))

    def accuracies(self, split: Split) -> dict[str, float]:
        """Return the accuracy by each rule of inference, where there are several."""
        if len(self.by_rule) < 2:
            return {}
        hits = {rule: found == split.targets for rule, found in self.by_rule.items()}
        return {rule: float(hit[split.has_class].double().mean()) for rule, hit in hits.items()}

    def named_predictions(self, part: str, split: Split) -> dict[str, Tensor]:
        """Return predictions and targets as a run stores them.

        Args:
            part: ``"val"`` or ``"test"``, with which their names begin.
            split: Its samples.
        """
        named = {f"{part}.predictions": self.predictions, f"{part}.targets": split.targets}
        if split.num_with_class < len(split):
            named[f"{part}.{HAS_CLASS}"] = split.has_class
        if len(self.by_rule) > 1:
            named |= {f"{part}.predictions.{rule}": x for rule, x in self.by_rule.items()}
        return named


Decide = Callable[[Tensor], dict[str, Tensor]]


@torch.no_grad()
def evaluate(
    fabric: Fabric,
    model: nn.Module,
    batches: Batches,
    clusters: Tensor | None = None,
    decide: Decide = by_argmax,
    where: str = "the evaluation",
) -> Scores:
    """Return how good a model is on a split, each process doing its part.

    Args:
        fabric: Lightning Fabric, launched.
        model: As Fabric set it up; left in evaluation mode.
        batches: Of the split.
        clusters: Class → cluster at the level in force. Where the model has one output a
            class, a cluster is as probable as its classes together; where it has one a
            cluster, the targets are coarsened. Defaults to None: the classes themselves.
        decide: Turns logits into predictions by each rule of inference, the one that counts
            first. Defaults to the most probable output.
        where: What an error calls it. Defaults to ``"the evaluation"``.

    Raises:
        ValueError: The model gives a NaN or an infinity.
    """
    model.eval()
    count = len(batches.split)
    precise = torch.float32 if fabric.device.type == "mps" else torch.float64  # it has no more
    sums = torch.zeros(3, dtype=precise, device=fabric.device)  # loss, hits, level hits
    labels = _Labels(batches.split, clusters, fabric.device)
    predictions: dict[str, Tensor] = {}
    is_coarse = False
    for batch, logits in _with_logits(fabric, model, batches, where):
        decided = decide(logits)
        if not predictions:
            nothing = torch.zeros(count, dtype=torch.int64, device=fabric.device)
            predictions = {rule: nothing.clone() for rule in decided}
        if not batch.share:  # nothing to do, but all processes call the model equally often
            continue
        for rule, classes in decided.items():
            predictions[rule][batch.rows.to(fabric.device)] = classes
        found = next(iter(decided.values()))
        classes, groups = labels.wanted(batch.targets)
        group_found = found
        if clusters is not None:
            is_coarse = logits.shape[1] < len(clusters)
            if not is_coarse:  # every class has its cluster's probability
                group_found = clusters[coarse_log_softmax(logits, clusters).argmax(1)]
        loss = labels.loss(logits, batch.targets, groups if is_coarse else classes)
        hits, level_hits = found == classes, group_found == groups
        sums += torch.stack([loss, hits.sum(), level_hits.sum()])
    wholes = torch.tensor([count, *labels.counts], device=fabric.device).clamp(min=1)
    mean_loss, accuracy, level_accuracy = (sum_over(fabric, sums) / wholes).tolist()
    gathered = {rule: sum_over(fabric, found).cpu() for rule, found in predictions.items()}
    return Scores(mean_loss, None if is_coarse else accuracy, level_accuracy, gathered)


class _Labels:
    """What the labels of a split say of classes, and of clusters at a level.

    Args:
        split: The samples.
        clusters: See `evaluate`.
        device: Where batches are.

    Attributes:
        counts: How many labels tell the class, and how many the cluster.
    """

    def __init__(self, split: Split, clusters: Tensor | None, device: torch.device) -> None:
        self.clusters = clusters
        self.candidates: Candidates | None = None
        self.counts = len(split), len(split)
        if split.hierarchy is None:
            return
        nodes = split.hierarchy.nodes
        self.candidates = Candidates(nodes).to(device)
        levels = np.arange(nodes.num_classes) if clusters is None else clusters.cpu().numpy()
        self.num_classes = nodes.num_classes
        of_node = torch.from_numpy(nodes.within(levels))
        self.counts = split.num_with_class, int((of_node[split.targets] >= 0).sum())
        self.of_node = of_node.to(device)

    def wanted(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the class and the cluster of each target, -1 where it does not tell."""
        if self.candidates is None:
            return targets, targets if self.clusters is None else self.clusters[targets]
        return targets.where(targets < self.num_classes, -1), self.of_node[targets]

    def loss(
        self, logits: Tensor, targets: Tensor, wanted: Tensor, reduction: str = "sum"
    ) -> Tensor:
        """Return the sum of the losses, or each of them.

        Args:
            logits: Of classes, or of the clusters.
            targets: Classes or nodes.
            wanted: The output that each target is, -1 where it is several.
            reduction: As in `coarse_cross_entropy`. Defaults to ``"sum"``.
        """
        if self.candidates is None:
            return F.cross_entropy(logits, wanted, reduction=reduction)
        outputs = logits.shape[1]
        if self.clusters is None or outputs == len(self.clusters):
            mask = self.candidates(targets)
        else:
            mask = self.candidates.outputs(targets, self.clusters, outputs)
        return candidate_loss(logits, mask, reduction)


@torch.no_grad()
def sample_losses(
    fabric: Fabric, model: nn.Module, batches: Batches, where: str = "the evaluation"
) -> Tensor:
    """Return the loss of each sample of a split, as `Scores.loss`, gathered from all processes.

    Args:
        fabric: Lightning Fabric, launched.
        model: As Fabric set it up; left in evaluation mode.
        batches: Of the split.
        where: What an error calls it. Defaults to ``"the evaluation"``.
    """
    model.eval()
    losses = torch.zeros(len(batches.split), device=fabric.device)
    labels = _Labels(batches.split, None, fabric.device)
    for batch, logits in _with_logits(fabric, model, batches, where):
        if batch.share:
            rows = batch.rows.to(fabric.device)
            losses[rows] = labels.loss(logits, batch.targets, batch.targets, "none")
    return sum_over(fabric, losses)


def _with_logits(
    fabric: Fabric, model: nn.Module, batches: Batches, where: str, *, waits: bool = False
) -> Iterator[tuple[Batch, Tensor]]:
    """Yield every batch with what the model makes of it, which must be finite.

    Args:
        fabric: Lightning Fabric, launched.
        model: As Fabric set it up.
        batches: Of the split.
        where: What an error calls it.
        waits: Whether to look at every batch though the device must be waited for. Defaults
            to False: then a flag tells in the end, and the batches are gone through again.
    """
    looks = waits or not looking_waits(fabric.device)
    spoiled = FirstSpoiled(fabric.device)
    for number, batch in enumerate(batches.in_order(), 1):
        logits = model(batch.inputs).float()
        if looks:
            check_finite(fabric, model, batch.inputs, logits, None, f"{where}, batch {number}")
        else:
            spoiled.note(number, logits)
        yield batch, logits
    if looks:
        return
    is_spoiled = torch.tensor(float(spoiled.read() > 0), device=fabric.device)
    if float(sum_over(fabric, is_spoiled)):  # the processes go through it together
        for _ in _with_logits(fabric, model, batches, where, waits=True):
            pass


def check_finite(
    fabric: Fabric,
    model: nn.Module,
    inputs: Tensor,
    logits: Tensor,
    loss: Tensor | None,
    where: str,
) -> None:
    """Raise a `ValueError` that names the layer where logits or loss are not finite.

    Args:
        fabric: Lightning Fabric, launched.
        model: As Fabric set it up.
        inputs: Of the batch.
        logits: What the model made of them.
        loss: None where only the logits count.
        where: The epoch and the batch.
    """
    if all_finite(logits, loss):
        return
    inner: Any = model.module if is_wrapped(model) else model
    precision = fabric.strategy.precision

    def forward(inputs: Tensor) -> None:
        with precision.forward_context():  # without the wrapper, which would wait for the others
            inner(precision.convert_input(inputs))

    raise ValueError(f"{complaint(logits, loss, where, inner, inputs, forward)} {SAVED}")


def sum_over(fabric: Fabric, tensor: Tensor) -> Tensor:
    """Return the sum of a tensor over all processes."""
    total: Any = fabric.all_reduce(tensor, reduce_op="sum")
    return torch.as_tensor(total)
