"""Where hierarchies from confusion go wrong, as the paper's appendix A has it, on made data.

One class dominates the training samples: are all others then taken for it, and does that leave a
hierarchy? And: classes that are confused only in pairs, where the pairs are alike too.

`python benchmarks/degenerate_confusion.py` takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coarse2fine import Hierarchy
from coarse2fine._util.arrays import IntArray
from coarse2fine._util.columns import aligned
from coarse2fine.agreement import adjusted_rand_index
from coarse2fine.metrics import confusion_matrix
from coarse2fine.runs.statistics import plus_minus, standard_error

GROUPS, OF_EACH, FEATURES = 8, 4, 16
CLASSES = GROUPS * OF_EACH
GROUP_OF = np.arange(CLASSES) // OF_EACH
SPREADS = (
    2.0,
    1.0,
    0.5,
    0.3,
)  # of the groups' centres; of a group's classes half as much; noise is 1
SAMPLES = 40  # of each class but the first, to train on; as many of each class to validate on
TIMES = (1, 10, 100)  # as many of the first
EPOCHS = 30
METRICS = ("confusion_distance", "embedding")


@dataclass(frozen=True)
class Found:
    """The hierarchy by one metric from one training.

    Args:
        metric: See `Hierarchy.from_classifier`.
        spread: How far apart the classes are, one of `SPREADS`.
        times: How many times as many training samples the first class has.
        seed: Of data, weights and order.
        accuracy: On validation samples, as many of each class.
        to_first: The share of the other classes' mistakes that are the first class.
        num_clusters: Of the finest level above the classes.
        largest: The share of the classes that its largest cluster has.
        agreement: Of that level with the groups, by the adjusted Rand index.
    """

    metric: str
    spread: float
    times: int
    seed: int
    accuracy: float
    to_first: float
    num_clusters: int
    largest: float
    agreement: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every training's figures here")
    options = parser.parse_args()
    cases = itertools.product(SPREADS, TIMES, range(options.seeds))
    found = [one for case in cases for one in measured(*case)]
    print(aligned(list(rows(found))))
    print(f"\npairs of like pairs that are together in the end: {pairs_together():.2f}")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


# ---------------------------------------------------------------------- one class dominates


def measured(spread: float, times: int, seed: int) -> list[Found]:
    """Train once, and return the hierarchies by both metrics."""
    torch.manual_seed(seed)
    centres = torch.randn(GROUPS, FEATURES).repeat_interleave(OF_EACH, 0)
    centres = spread * (centres + torch.randn(CLASSES, FEATURES) / 2)
    model = trained(centres, times)
    targets = torch.arange(CLASSES).repeat_interleave(SAMPLES)
    with torch.no_grad():
        predictions = model(_drawn(centres, targets)).argmax(1)
    confusion = confusion_matrix(predictions, targets, CLASSES)
    wrong = confusion - np.diag(confusion.diagonal())
    shared = {
        "spread": spread,
        "times": times,
        "seed": seed,
        "accuracy": float(confusion.trace() / confusion.sum()),
        "to_first": float(wrong[1:, 0].sum() / wrong[1:].sum()),
    }
    return [Found(metric, **shared, **_level(metric, model, confusion)) for metric in METRICS]


def trained(centres: Tensor, times: int) -> nn.Module:
    """Return a network with one hidden layer, trained where one class dominates."""
    counts = torch.tensor([SAMPLES * times, *[SAMPLES] * (CLASSES - 1)])
    targets = torch.arange(CLASSES).repeat_interleave(counts)
    inputs = _drawn(centres, targets)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(targets)).split(64):
            optimiser.zero_grad()
            F.cross_entropy(model(inputs[rows]), targets[rows]).backward()
            optimiser.step()
    return model


def _drawn(centres: Tensor, targets: Tensor) -> Tensor:
    return centres[targets] + torch.randn(len(targets), FEATURES)


def _level(metric: str, model: nn.Module, confusion: IntArray) -> dict[str, float]:
    """Return what the finest level above the classes is like."""
    given = confusion if metric == "confusion_distance" else None
    hierarchy = Hierarchy.from_classifier(model, metric, confusion=given)
    level = hierarchy.levels[-2]
    return {
        "num_clusters": hierarchy.num_clusters[-2],
        "largest": float(np.bincount(level).max() / CLASSES),
        "agreement": adjusted_rand_index(level, GROUP_OF),
    }


def rows(found: Sequence[Found]) -> Iterator[list[str]]:
    """Yield the cells of the table: means and standard errors over the seeds."""
    yield ["spread", "times", "metric", "accuracy", "to the first", "clusters", "largest", "groups"]
    for spread, times, metric in itertools.product(SPREADS, TIMES, METRICS):
        case = (spread, times, metric)
        own = [one for one in found if (one.spread, one.times, one.metric) == case]
        columns = (
            [100 * one.accuracy for one in own],
            [100 * one.to_first for one in own],
            [one.num_clusters for one in own],
            [100 * one.largest for one in own],
            [one.agreement for one in own],
        )
        means = [plus_minus((float(np.mean(it)), standard_error(it))) for it in columns]
        yield [str(spread), str(times), metric, *means]


# ------------------------------------------------------------------ confused only in pairs


def pairs_together(pairs: int = 8, trials: int = 1000) -> float:
    """Return how often two pairs of like classes are in one cluster of the coarsest level.

    Every class is confused with the other of its pair alone. The classes of the first two pairs
    are all alike, as four kinds of trees, which the confusion does not show.

    Args:
        pairs: How many.
        trials: Orders of the classes, as equal distances are told apart by the order.
    """
    rng, together = np.random.default_rng(0), 0
    for _ in range(trials):
        order = rng.permutation(2 * pairs)
        confusion = np.zeros((2 * pairs, 2 * pairs))
        one, other = order[::2], order[1::2]
        confusion[one, other] = confusion[other, one] = 10
        np.fill_diagonal(confusion, 30)
        coarsest = Hierarchy.from_confusion(confusion).levels[0]
        together += coarsest[one[0]] == coarsest[one[1]]
    return together / trials


if __name__ == "__main__":
    main()
