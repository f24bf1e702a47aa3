"""The whole method in a plain PyTorch loop, on data that ships with scikit-learn.

Small images of a handwritten digit in one of three colours, somewhere on a black ground:
30 classes, of which many look alike. A baseline is trained first; its final layer gives the
hierarchy and its learning curve the length of the curriculum; then the same network is
trained anew, from the same initial weights and for as many epochs, through the levels.

    python examples/plain_pytorch.py [--seeds 0 1 2]
"""

import argparse
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from coarse2fine import (
    CoarseToFineLoss,
    Curriculum,
    Hierarchy,
    capped_length,
    epochs_to_reach,
    level_accuracies,
)

EPOCHS = 50
SIDE = 14
COLOURS = {"magenta": (1.0, 0.0, 1.0), "cyan": (0.0, 1.0, 1.0), "grey": (0.5, 0.5, 0.5)}
CLASS_NAMES = [f"{colour} {digit}" for colour in COLOURS for digit in range(10)]

Split = tuple[Tensor, Tensor]


def make_splits(seed: int) -> list[Split]:
    """Return training, validation and test images, drawn from different digits."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits.images))
    sources = np.split(order, [int(0.5 * len(order)), int(0.7 * len(order))])
    return [
        paint(digits.images[source] / 16, digits.target[source], per_class, rng)
        for source, per_class in zip(sources, (60, 12, 50), strict=True)
    ]


def paint(
    images: np.ndarray, labels: np.ndarray, per_class: int, rng: np.random.Generator
) -> Split:
    """Put digits of every colour at random places of an empty image."""
    targets = np.repeat(np.arange(30), per_class)
    canvas = np.zeros((len(targets), 3, SIDE, SIDE), np.float32)
    for index, target in enumerate(targets):
        digit = images[rng.choice(np.flatnonzero(labels == target % 10))]
        colour = list(COLOURS.values())[target // 10]
        row, column = rng.integers(0, SIDE - 8 + 1, 2)
        canvas[index, :, row : row + 8, column : column + 8] = np.multiply.outer(colour, digit)
    return torch.from_numpy(canvas), torch.from_numpy(targets)


def make_model(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 4 * 4, 30),
    )  # fmt: skip


def train(
    model: nn.Module, criterion: nn.Module, curriculum: Curriculum | None, splits: list[Split]
) -> tuple[list[float], Tensor]:
    """Return validation accuracies, and the test logits at the best of them."""
    (inputs, targets), validation, test = splits
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    accuracies: list[float] = []
    logits = torch.empty(0)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(targets)).split(32):
            optimiser.zero_grad()
            criterion(model(inputs[batch]), targets[batch]).backward()
            optimiser.step()
        if curriculum is not None:
            curriculum.step()
        with torch.no_grad():
            correct = model(validation[0]).argmax(1) == validation[1]
            accuracies.append(correct.float().mean().item())
            if accuracies[-1] == max(accuracies):
                logits = model(test[0])
    return accuracies, logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    seeds = parser.parse_args().seeds
    results = []
    for seed in seeds:
        start = time.perf_counter()
        splits = make_splits(seed)
        baseline = make_model(seed)
        accuracies, plain = train(baseline, nn.CrossEntropyLoss(), None, splits)

        hierarchy = Hierarchy.from_classifier(baseline, class_names=CLASS_NAMES)
        criterion = CoarseToFineLoss(hierarchy)
        length = capped_length(epochs_to_reach(accuracies), EPOCHS)
        curriculum = Curriculum(criterion, epochs=length)
        _, coarse_to_fine = train(make_model(seed), criterion, curriculum, splits)

        targets = splits[2][1]
        if seed == seeds[0]:
            print(f"\nThe hierarchy that the baseline of seed {seed} gives:\n\n{hierarchy}\n")
        before, after = (
            100 * level_accuracies(logits.argmax(1), targets, hierarchy)
            for logits in (plain, coarse_to_fine)
        )
        results.append((before[-1], after[-1]))
        print(
            f"seed {seed}: test accuracy {before[-1]:.1f} without, {after[-1]:.1f} with the "
            f"curriculum (T = {length}, levels {' → '.join(map(str, hierarchy.num_clusters))}, "
            f"{time.perf_counter() - start:.0f} s)"
        )
    if len(seeds) == 1:
        return
    plain_mean, coarse_mean = np.mean(results, axis=0)
    gains = np.diff(results, axis=1)[:, 0]
    error = gains.std(ddof=1) / len(gains) ** 0.5
    print(
        f"\nmean of {len(seeds)} seeds: {plain_mean:.1f} without, {coarse_mean:.1f} with; ", end=""
    )
    print(f"gain {gains.mean():+.1f} ± {error:.1f} points (standard error, paired by seed)")


if __name__ == "__main__":
    main()
