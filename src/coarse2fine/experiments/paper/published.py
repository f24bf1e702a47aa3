"""The paper's own figures: percent, with standard errors over five runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..declaration import Published


@dataclass(frozen=True)
class PublishedRow:
    """A row of one of the paper's tables.

    Args:
        model: By our name.
        data: By our name.
        size: How many images to train on; None for all.
        figures: The baseline's accuracy, and the gains.
    """

    model: str
    data: str
    size: int | None
    figures: Published


# Data, size, and the figures of the baseline, the continuous curriculum (both Table 2: results on
# real data sets) and the staged one (the appendix), by the CNN.
_CNN = (
    ("cifar10", None, (70.92, 0.37), (0.69, 0.32), (0.92, 0.32)),
    ("cifar10", 20_000, (64.66, 0.53), (1.28, 0.60), (1.86, 0.23)),
    ("cifar10", 10_000, (59.52, 0.35), (1.24, 0.46), (1.01, 0.13)),
    ("cifar10", 5_000, (53.64, 0.19), (1.57, 0.39), (2.22, 0.42)),
    ("cifar100-coarse", None, (49.63, 0.35), (1.22, 0.38), (0.91, 0.37)),
    ("cifar100-coarse", 20_000, (42.04, 0.29), (1.84, 0.51), (1.03, 0.22)),
    ("cifar100-coarse", 10_000, (36.61, 0.19), (1.77, 0.56), (1.38, 0.53)),
    ("cifar100-coarse", 5_000, (31.80, 0.28), (1.38, 0.22), (1.17, 0.46)),
    ("cifar100", None, (35.87, 0.23), (3.31, 0.59), (3.99, 0.24)),
    ("cifar100", 20_000, (27.83, 0.34), (2.27, 0.37), (4.40, 0.32)),
    ("cifar100", 10_000, (21.96, 0.49), (2.67, 0.68), (2.70, 0.22)),
    ("cifar100", 5_000, (17.20, 0.20), (1.92, 0.24), (2.35, 0.29)),
    ("tiny-imagenet", None, (21.94, 0.19), (2.73, 0.49), (3.79, 0.34)),
    ("tiny-imagenet", 50_000, (16.33, 0.32), (3.06, 0.33), (3.64, 0.47)),
    ("tiny-imagenet", 20_000, (10.16, 0.22), (2.02, 0.34), (2.94, 0.36)),
    ("tiny-imagenet", 10_000, (7.38, 0.11), (1.14, 0.19), (2.01, 0.32)),
)
CNN_SIZES = tuple(
    PublishedRow("cnn", data, size, {"baseline": baseline, "continuous": continuous})
    for data, size, baseline, continuous, _ in _CNN
)
STAGED_GAINS = tuple(
    replace(row, figures={**row.figures, "staged": staged})
    for row, (*_, staged) in zip(CNN_SIZES, _CNN, strict=True)
)

# Table 2: the large models on CIFAR-100.
_LARGE = (
    ("resnet18", None, (76.11, 0.20), (1.08, 0.12)),
    ("resnet18", 20_000, (61.24, 0.21), (2.73, 0.41)),
    ("resnet18", 10_000, (46.01, 0.91), (4.61, 0.40)),
    ("resnet18", 5_000, (20.98, 0.35), (2.32, 0.97)),
    ("resnet50", None, (77.21, 0.40), (2.20, 0.53)),
    ("resnet50", 20_000, (63.31, 0.38), (0.52, 0.45)),
    ("resnet50", 10_000, (51.21, 0.22), (0.39, 1.01)),
    ("wrn-28-10", None, (80.10, 0.20), (0.55, 0.13)),
    ("wrn-28-10", 10_000, (58.72, 0.38), (1.29, 0.35)),
    ("wrn-28-10", 5_000, (43.77, 0.98), (2.49, 0.90)),
    ("wrn-28-10", 1_000, (14.87, 0.14), (0.54, 0.56)),
)
LARGE_SIZES = tuple(
    PublishedRow(model, "cifar100", size, {"baseline": baseline, "continuous": continuous})
    for model, size, baseline, continuous in _LARGE
)

# Table 3: the comparison; what it leaves out is left out here. The gains of NBDT without an
# error, and that of DP-LI for WRN-28-10, are from those methods' own papers. NBDT's for
# WRN-28-10 are against this paper's baselines; against its own they are 0.78 and -0.99.
COMPARISON = (
    PublishedRow("cnn", "cifar10", None, {
        "baseline": (70.92, 0.37), "spl": (-0.04, 0.19), "dp-l": (0.26, 0.20),
        "dp-li": (0.53, 0.30), "multitask": (0.12, 0.25), "nbdt": (0.04, 0.38),
        "continuous": (0.69, 0.32),
    }),
    PublishedRow("cnn", "cifar100-coarse", None, {
        "baseline": (49.63, 0.35), "spl": (-0.27, 0.09), "dp-l": (-0.65, 0.34),
        "dp-li": (-0.75, 0.47), "multitask": (-0.08, 0.24), "continuous": (1.22, 0.38),
    }),
    PublishedRow("cnn", "cifar100", None, {
        "baseline": (35.87, 0.23), "spl": (0.94, 0.61), "dp-l": (0.14, 0.25),
        "dp-li": (0.26, 0.31), "multitask": (0.69, 0.15), "nbdt": (0.45, 0.45),
        "continuous": (3.31, 0.59),
    }),
    PublishedRow("cnn", "tiny-imagenet", None, {
        "baseline": (21.94, 0.19), "spl": (-0.97, 0.97), "dp-l": (-0.05, 0.14),
        "dp-li": (-0.08, 0.15), "multitask": (0.33, 0.33), "nbdt": (0.22, 0.28),
        "continuous": (2.73, 0.49),
    }),
    PublishedRow("resnet18", "cifar100-coarse", None, {
        "baseline": (84.57, 0.14), "spl": (-0.21, 0.82), "multitask": (0.53, 0.02),
        "continuous": (0.69, 0.11),
    }),
    PublishedRow("resnet18", "cifar100", None, {
        "baseline": (76.11, 0.20), "spl": (0.51, 0.45), "multitask": (0.01, 0.37),
        "nbdt": (-1.19, None), "continuous": (1.08, 0.12),
    }),
    PublishedRow("resnet18", "tiny-imagenet", None, {
        "baseline": (65.03, 0.09), "spl": (-0.19, 0.15), "multitask": (-0.76, 0.42),
        "nbdt": (-0.80, None), "continuous": (0.12, 0.14),
    }),
    PublishedRow("resnet50", "cifar100-coarse", None, {
        "baseline": (84.68, 0.47), "spl": (-1.21, 0.56), "multitask": (-0.97, 0.51),
        "continuous": (0.49, 0.41),
    }),
    PublishedRow("resnet50", "cifar100", None, {
        "baseline": (77.21, 0.40), "spl": (-1.68, 0.55), "multitask": (0.43, 0.89),
        "continuous": (2.20, 0.53),
    }),
    PublishedRow("wrn-28-10", "cifar100", None, {
        "baseline": (80.10, 0.20), "spl": (0.50, 0.41), "dp-li": (0.70, 0.33),
        "multitask": (0.21, 0.12), "nbdt": (2.77, None), "continuous": (0.55, 0.13),
    }),
    PublishedRow("wrn-28-10", "tiny-imagenet", None, {
        "baseline": (64.14, 0.15), "nbdt": (2.52, None), "continuous": (1.01, 0.22),
    }),
)  # fmt: skip
