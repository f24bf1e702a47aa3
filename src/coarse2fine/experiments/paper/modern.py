"""A small residual network, trained as such networks are: SGD, augmentation, weight decay, steps.

It is not of the paper. T is at most a third of the epochs. The weight decay is that of the other
large models, 5e-4, where He et al. have 1e-4.
"""

from __future__ import annotations

from dataclasses import replace

from ..declaration import FULL, Experiment, Scale
from . import CONTINUOUS, STAGED_CURRICULUM
from .dependable import ADAPTIVE
from .real import setting

EPOCHS = 42  # a multiple of 7, as the learning rate falls after 3/7 and 5/7 of them
STAGE_EPOCHS = 7  # nothing else ends a stage, as there is no early stopping

_STAGED = replace(STAGED_CURRICULUM, settings={"stage_epochs": STAGE_EPOCHS})

MODERN = Experiment(
    title="A residual network on CIFAR-100",
    scales={
        FULL: Scale(
            f"ResNet-20 by the recipe of the large models, for {EPOCHS} epochs instead of 200 and "
            f"at most {STAGE_EPOCHS} for each coarse stage, so that two cores take about three "
            f"hours; T by the rule of the CNN, within a third of the epochs",
            (
                setting(
                    "cifar100",
                    10_000,
                    "resnet20",
                    (CONTINUOUS, ADAPTIVE, _STAGED),
                    curriculum_epochs="reach-90",
                    epochs=EPOCHS,
                ),
            ),
        )
    },
    figure="gains",
    num_seeds=3,
)
