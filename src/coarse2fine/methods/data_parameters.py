"""Data parameters (Saxena et al., 2019): learned temperatures of classes and samples.

The logits are divided by σ = exp(c_y), or exp(c_y) + exp(s_i) for class y and sample i. Large
temperatures make a sample's gradients small, so that the model learns by itself what to
leave for later. They are not used at inference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.batches import Batch
from .base import Method, Plan

LARGEST = math.log(20)  # of a logarithm: temperatures stay between 1/20 and 20
SMALLEST_INIT = 1e-30  # it must be more than 0
MOMENTUM = 0.9


class LogParameters(nn.Module):
    """The logarithms of some temperatures, learned by gradient descent with momentum.

    Entries that are not in a batch keep their value and their momentum. torch's SGD would go
    on moving them by their momentum, and decay it; and a sample is in one batch an epoch.

    Args:
        count: How many there are.
        init: The initial value of each temperature.
        learning_rate: It never changes.
        weight_decay: How strongly the logarithms are pulled towards 0.
    """

    values: Tensor
    velocity: Tensor
    gradient: Tensor
    uses: Tensor

    def __init__(self, count: int, init: float, learning_rate: float, weight_decay: float) -> None:
        super().__init__()
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        first = math.log(init)
        self.register_buffer("values", torch.full((count,), first))
        self.register_buffer("velocity", torch.zeros(count))
        # Of the batch at hand: the sum of gradients, and how many samples have the entry.
        self.register_buffer("gradient", torch.zeros(count), persistent=False)
        self.register_buffer("uses", torch.zeros(count), persistent=False)

    def add(self, entries: Tensor, gradients: Tensor) -> None:
        """Add the gradients of a loss, one for each sample of this process's part of a batch."""
        self.gradient.index_add_(0, entries, gradients)
        self.uses.index_add_(0, entries, torch.ones_like(gradients))

    def step(self, total: Callable[[Tensor], Tensor]) -> None:
        """Update the entries by what all processes have added for a batch."""
        # All processes have all entries, and compute the same update from the same sums.
        gradient, uses = total(torch.stack([self.gradient, self.uses]))
        # The gradient of ½ · weight_decay · Σ value², once for every sample that has the entry.
        gradient = gradient + self.weight_decay * uses * self.values
        # By masks of all entries, as their number would differ from batch to batch, and to know
        # it would wait for the device.
        used = uses > 0
        velocity = torch.where(used, MOMENTUM * self.velocity + gradient, self.velocity)
        self.velocity.copy_(velocity)
        self.values.sub_(self.learning_rate * velocity * used).clamp_(-LARGEST, LARGEST)
        self.gradient.zero_()
        self.uses.zero_()


class ClassParameters(Method):
    """DP-L: cross-entropy of the logits divided by a learned temperature of the class.

    Args:
        plan: What every method is given.
        class_init: The initial value of each temperature. Defaults to 1.0.
        class_learning_rate: Defaults to 0.1.
        class_weight_decay: Of the temperatures' logarithms. Defaults to 1e-4.
    """

    weighs_classes = True
    least: ClassVar[Mapping[str, float]] = {
        "class_init": SMALLEST_INIT,
        "class_learning_rate": 0,
        "class_weight_decay": 0,
    }

    def __init__(
        self,
        plan: Plan,
        *,
        class_init: float = 1.0,
        class_learning_rate: float = 0.1,
        class_weight_decay: float = 1e-4,
    ) -> None:
        super().__init__(plan)
        self.stages = plan.single_stage
        self.classes = LogParameters(
            plan.num_classes, class_init, class_learning_rate, class_weight_decay
        )

    def parts(self, batch: Batch) -> list[tuple[LogParameters, Tensor]]:
        """Return the parameters whose exponentials add up to a sample's temperature.

        Returns:
            Pairs of parameters and each sample's entry in them.
        """
        return [(self.classes, batch.targets)]

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss, and add up the gradients of the temperatures.

        The latter in closed form, without a graph through the temperatures: see `_slope`.
        """
        parts = self.parts(batch)
        terms = [parameters.values[entries].exp() for parameters, entries in parts]
        temperature = torch.stack(terms).sum(0)
        scaled = logits.float() / temperature[:, None]
        # Without a share, these samples are another process's, and only fill up this one's batch.
        if batch.share:
            # The mean over the whole batch, whose parts are added up in `end_batch`. With
            # σ = Σ exp(c), the derivative of log σ by one c is exp(c) / σ.
            slope = _slope(scaled.detach(), batch.targets) / batch.total
            if self.class_weights is not None:
                slope = slope * self.class_weights[batch.targets]
            for (parameters, entries), term in zip(parts, terms, strict=True):
                parameters.add(entries, slope * term / temperature)
        return self.weighed(F.cross_entropy(scaled, batch.targets, reduction=self.reduction), batch)

    def end_batch(self, total: Callable[[Tensor], Tensor]) -> None:
        """Change the temperatures."""
        self.classes.step(total)


class InstanceParameters(ClassParameters):
    """DP-LI: the temperature is the sum of one for the class and one for the sample.

    Args:
        plan: What every method is given.
        instance_init: The initial value of each sample's part. Defaults to 0.001.
        instance_learning_rate: Defaults to 0.8.
        instance_weight_decay: Of the parts' logarithms. Defaults to 1e-8.
        **class_settings: See `ClassParameters`.
    """

    least: ClassVar[Mapping[str, float]] = {
        **ClassParameters.least,
        "instance_init": SMALLEST_INIT,
        "instance_learning_rate": 0,
        "instance_weight_decay": 0,
    }

    def __init__(
        self,
        plan: Plan,
        *,
        instance_init: float = 0.001,
        instance_learning_rate: float = 0.8,
        instance_weight_decay: float = 1e-8,
        **class_settings: float,
    ) -> None:
        super().__init__(plan, **class_settings)
        self.instances = LogParameters(
            plan.num_samples, instance_init, instance_learning_rate, instance_weight_decay
        )

    def parts(self, batch: Batch) -> list[tuple[LogParameters, Tensor]]:
        """Return the parameters of the classes and those of the samples."""
        rows = batch.rows.to(batch.targets.device)
        return [*super().parts(batch), (self.instances, rows)]

    def end_batch(self, total: Callable[[Tensor], Tensor]) -> None:
        """Change the temperatures of the classes, then those of the samples."""
        super().end_batch(total)
        self.instances.step(total)


def _slope(scaled: Tensor, targets: Tensor) -> Tensor:
    """Return the derivative of each sample's cross-entropy by its log-temperature.

    With u = z/σ, the loss has the gradient p - y by u, and ∂u/∂log σ = -u. So the derivative is
    -(p - y)·u = u_y - Σ p u.
    """
    expected = (scaled.softmax(1) * scaled).sum(1)
    return scaled.gather(1, targets[:, None]).squeeze(1) - expected
