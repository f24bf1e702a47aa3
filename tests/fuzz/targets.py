"""Every parser of files that people are given, each as a function of bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import fuzz_data as data
import fuzz_images as images
import fuzz_runs as runs
import fuzz_trees as trees
from fuzz_guard import Attempt, Guard


class Target(NamedTuple):
    """A parser.

    Args:
        make: Prepares a folder, and returns what gives the attempts with an input.
        seeds: Returns inputs that are right, or nearly.
        share: How many of a million inputs it gets.
        longest: The most bytes of an input.
    """

    make: Callable[[Path], Callable[[bytes], Iterator[Attempt]]]
    seeds: Callable[[], list[bytes]]
    share: int
    longest: int = 4096


TARGETS: dict[str, Target] = {
    "hierarchy-json": Target(trees.hierarchy_json, trees.hierarchy_seeds, 200_000),
    "editor": Target(trees.editor, trees.editor_seeds, 80_000),
    "taxonomy": Target(trees.taxonomy, trees.taxonomy_seeds, 180_000, 1024),
    "matrix": Target(trees.matrix, trees.matrix_seeds, 60_000, 1024),
    "config": Target(trees.config, trees.config_seeds, 180_000, 1024),
    "table": Target(data.table, data.table_seeds, 60_000, 1024),
    "parquet": Target(data.parquet, data.parquet_seeds, 30_000),
    "cifar": Target(data.cifar, data.cifar_seeds, 30_000),
    "tiny-imagenet": Target(data.tiny_imagenet, data.tiny_seeds, 30_000),
    "imagenet": Target(images.imagenet, images.imagenet_seeds, 20_000, 1024),
    "image-folder": Target(images.image_folder, images.image_seeds, 40_000, 2048),
    "checkpoint": Target(runs.checkpoint, runs.checkpoint_seeds, 30_000, 1024),
    "weights": Target(runs.weights, runs.weight_seeds, 30_000),
    "run-directory": Target(runs.run_directory, runs.run_seeds, 30_000, 1024),
}


def tester(name: str, folder: Path, guard: Guard) -> Callable[[bytes], list[Any]]:
    """Return a function of an input that raises a `ParserError` where a target goes wrong.

    Args:
        name: Of the target.
        folder: In which it may do what it does; the guard's own or one within.
        guard: Watches it.
    """
    attempts = TARGETS[name].make(folder)

    def test(input: bytes) -> list[Any]:
        return [guard.check(attempt) for attempt in attempts(input)]

    return test


def warm_up(name: str) -> None:
    """Let a target import all that it needs, which takes memory and opens files once.

    Args:
        name: Of the target.
    """
    with tempfile.TemporaryDirectory() as place:
        attempts = TARGETS[name].make(Path(place))
        for seed in TARGETS[name].seeds()[:12]:
            for attempt in attempts(seed):
                with suppress(*attempt.allowed):
                    attempt.call()
