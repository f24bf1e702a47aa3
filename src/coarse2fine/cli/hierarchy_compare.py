"""`c2f hierarchy compare`: whether models hold the same classes for similar."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .process import show

if TYPE_CHECKING:
    from .._util.arrays import Array
    from ..hierarchy import Hierarchy

EXAMPLES = (
    "c2f hierarchy compare runs/intents",
    "c2f hierarchy compare runs/cnn runs/resnet20 --linkage average",
    "c2f hierarchy compare runs/intents/seed-0/baseline runs/intents/seed-0/continuous",
)


@dataclass(frozen=True)
class Seen:
    """How a trained model sees its classes.

    Args:
        source: Which of the given sources it is from, counted from 0.
        path: The run directory.
        class_names: In order.
        distances: Between the classes.
        hierarchy: Made from these.
    """

    source: int
    path: Path
    class_names: tuple[str, ...]
    distances: Array
    hierarchy: Hierarchy


@dataclass(frozen=True)
class Pair:
    """How far two models agree.

    Args:
        one: The first.
        other: The second.
        distances: See `distance_correlation`.
        levels: See `level_agreements`.
    """

    one: Seen
    other: Seen
    distances: float
    levels: tuple[float, ...]


def command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="The runs, or comparisons, of which the baselines of all seeds are taken.",
        ),
    ],
    linkage: Annotated[str, options.LINKAGE] = "single",
    model: options.ModelOfRun = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write each pair of runs as a line of JSON.")
    ] = False,
) -> None:
    """Compare which classes trained models hold for similar.

    Distances are compared by their rank correlation, the levels that clustering makes of them by
    the adjusted Rand index: 1 is the same, 0 no more than chance. Every two runs are compared;
    the table has their means, within each comparison and between any two.
    """
    seen = [
        _seen(number, run, linkage, model)
        for number, source in enumerate(sources)
        for run in _trained(source)
    ]
    pairs = [_compared(one, other) for one, other in combinations(seen, 2)]
    if not pairs:
        raise ValueError(f"to compare takes at least two runs. Got only {seen[0].path}.")
    if as_json:
        for pair in pairs:
            show(json.dumps(_to_dict(pair)))
        return
    show(list(_rows(sources, pairs)))


def _trained(source: Path) -> list[Path]:
    """Return the runs that are meant: one, or the baselines of a comparison's seeds.

    A baseline that went on for longer does not count, as no hierarchy was made from it.
    """
    from ..errors import RunError
    from ..runs.directory import Run
    from ..runs.find import find_run, seed_folders
    from ..runs.result import BASELINE

    seeds = seed_folders(source) if source.is_dir() else {}
    if not seeds:
        return [find_run(source)]
    found = [folder / BASELINE for folder in seeds.values() if Run(folder / BASELINE).is_done]
    if not found:
        raise RunError(f"{source} has no baseline that is done; name runs of it instead.")
    return found


def _seen(number: int, run: Path, linkage: str, model: str | None) -> Seen:
    from ..distances import class_distances
    from ..heads import class_vectors
    from ..runs.hierarchies import from_vectors
    from ..runs.restore import load_trained

    trained = load_trained(run, model)
    vectors = class_vectors(trained.model, trained.config.head).detach().numpy()
    names = trained.class_names
    hierarchy = from_vectors(vectors, "embedding", linkage, names)
    return Seen(number, run, names, class_distances(vectors), hierarchy)


def _compared(one: Seen, other: Seen) -> Pair:
    from ..agreement import distance_correlation, level_agreements

    if one.class_names != other.class_names:
        raise ValueError(f"{one.path} and {other.path} have other classes, or in another order.")
    correlation = distance_correlation(one.distances, other.distances)
    return Pair(one, other, correlation, level_agreements(one.hierarchy, other.hierarchy))


def _to_dict(pair: Pair) -> dict[str, object]:
    return {
        "runs": [str(pair.one.path), str(pair.other.path)],
        "distance_correlation": pair.distances,
        "level_agreements": list(pair.levels),
        "num_clusters": [list(it.hierarchy.num_clusters) for it in (pair.one, pair.other)],
    }


def _rows(sources: Sequence[Path], pairs: Sequence[Pair]) -> Iterator[list[str]]:
    """Yield the cells of the table: a line for each source and for each two of them."""
    depth = max(len(pair.levels) for pair in pairs)
    further = [f"level {number}" for number in range(2, depth + 1)]
    yield ["runs of", "and of", "pairs", "distances", *["finest level"][:depth], *further]
    for first, second in combinations_with_replacement(range(len(sources)), 2):
        own = [pair for pair in pairs if (pair.one.source, pair.other.source) == (first, second)]
        if own:
            levels = list(zip_longest(*(pair.levels for pair in own)))
            yield [
                str(sources[first]),
                str(sources[second]),
                str(len(own)),
                _summary([pair.distances for pair in own]),
                *(_summary([it for it in level if it is not None]) for level in levels),
            ]


def _summary(values: Sequence[float]) -> str:
    """Return the mean, and the smallest and largest where there are several.

    Examples:
        >>> _summary([0.25, 0.5]), _summary([0.5])
        ('0.38 (0.25 to 0.50)', '0.50')
    """
    mean = f"{sum(values) / len(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.2f} to {max(values):.2f})"
