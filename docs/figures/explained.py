"""The two pictures that explain the method: what counts as right, and when."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch
from style import BLUE, GREY, ORANGE, new_axes, save

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

HIERARCHY = Hierarchy.from_levels(
    [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]],
    class_names=["cat", "lynx", "dog", "wolf", "car", "van"],
)
PROBABILITIES = (0.30, 0.25, 0.20, 0.15, 0.06, 0.04)
TARGET = 0
LEVELS = ("level 0, first", "level 1, then", "level 2, at last")
SHADES = ("#fbe5d6", "#f5bd96", ORANGE)  # of the levels, coarse to fine
EPOCHS, LENGTH = 18, 6
HEIGHT = 0.62


def losses_by_level() -> list[float]:
    """Return the loss of the example at each level, as the library computes it."""
    criterion = CoarseToFineLoss(HIERARCHY)
    logits, target = torch.tensor([PROBABILITIES]).log(), torch.tensor([TARGET])
    losses = []
    for level in range(len(HIERARCHY.levels)):
        criterion.level = level
        losses.append(criterion(logits, target).item())
    return losses


def draw_box(axes: Axes, left: float, right: float, y: float, fill: str, edge: str = GREY) -> None:
    size = (right - left, HEIGHT)
    style = "round,pad=0,rounding_size=0.12"
    axes.add_patch(
        FancyBboxPatch((left, y - HEIGHT / 2), *size, style, facecolor=fill, edgecolor=edge)
    )


def draw_levels(axes: Axes) -> None:
    """Draw the clusters of every level, and what the model gives to each."""
    right = "#dbeafb"
    for level, loss in enumerate(losses_by_level()):
        y = -1.25 * level
        axes.text(-0.75, y, LEVELS[level], ha="right", va="center", color=GREY)
        for members in HIERARCHY.clusters(level):
            is_right = TARGET in members
            ends = members[0] - 0.42, members[-1] + 0.42
            draw_box(axes, *ends, y, right if is_right else "white", BLUE if is_right else GREY)
            share = sum(PROBABILITIES[one] for one in members)
            names = ", ".join(HIERARCHY.class_names[one] for one in members)
            text = f"{names}\n{share:.2f}"
            axes.text(np.mean(ends), y, text, ha="center", va="center", linespacing=1.3)
            if level:
                draw_stem(axes, level, members, y)
        axes.text(5.75, y, f"−log {np.exp(-loss):.2f} = {loss:.2f}", va="center", color=BLUE)


def draw_stem(axes: Axes, level: int, members: tuple[int, ...], y: float) -> None:
    """Draw the line from a cluster up to the one it is a part of."""
    above = HIERARCHY.clusters(level - 1)[HIERARCHY.levels[level - 1][members[0]]]
    middles = [np.mean(members), np.mean(above)]
    top = y + 1.25 - HEIGHT / 2
    axes.plot(middles, [y + HEIGHT / 2, top], color=GREY, linewidth=0.9, zorder=0)


def levels_picture(path: Path) -> None:
    figure, axes = new_axes((7.4, 3.5))
    axes.text(-0.75, 0.85, "An image of a cat", ha="right", va="center", weight="bold")
    axes.text(2.5, 0.85, "what is told apart, and its probability", ha="center", va="center")
    axes.text(5.75, 0.85, "loss", va="center")
    draw_levels(axes)
    axes.set(xlim=(-2.8, 7.6), ylim=(-3.0, 1.2))
    save(figure, path)


def spans() -> list[tuple[int, int]]:
    """Return the first epoch of each level and the one after its last."""
    curriculum = Curriculum(CoarseToFineLoss(HIERARCHY), epochs=LENGTH)
    edges = (0, *curriculum.boundaries, EPOCHS)
    return list(pairwise(edges))


def schedule_picture(path: Path) -> None:
    figure, axes = new_axes((7.4, 1.9))
    draw_box(axes, 0, EPOCHS, 1, SHADES[-1])
    axes.text(EPOCHS / 2, 1, "the 6 classes", ha="center", va="center", color="white")
    counts = (*(f"{count}\nclusters" for count in HIERARCHY.num_clusters[:-1]), "the 6 classes")
    for (first, end), shade, text in zip(spans(), SHADES, counts, strict=True):
        draw_box(axes, first, end, 0, shade)
        colour = "white" if shade == ORANGE else "black"
        axes.text((first + end) / 2, 0, text, ha="center", va="center", color=colour, size=9)
    for y, text in ((1, "baseline"), (0, "curriculum")):
        axes.text(-0.3, y, text, ha="right", va="center")
    draw_length(axes)
    draw_scale(axes)
    save(figure, path)


def draw_length(axes: Axes) -> None:
    """Draw an arrow as long as the curriculum."""
    arrow = {"arrowstyle": "<->", "color": BLUE, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0, 0.5), (LENGTH, 0.5), arrowprops=arrow)
    axes.text(LENGTH + 0.15, 0.5, f"T = {LENGTH}", color=BLUE, va="center", size=9)


def draw_scale(axes: Axes) -> None:
    for epoch in range(0, EPOCHS + 1, 2):
        axes.text(epoch, -0.62, str(epoch), ha="center", va="center", color=GREY, size=9)
    axes.text(-0.3, -0.62, "epochs done", ha="right", va="center", color=GREY, size=9)
    axes.set(xlim=(-3.2, EPOCHS + 0.4), ylim=(-0.85, 1.45))
