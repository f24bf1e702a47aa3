"""`c2f hierarchy`: show, save and convert a hierarchy."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .process import is_first, say, show

if TYPE_CHECKING:
    from ..hierarchy import Hierarchy

EXAMPLES = (
    "c2f hierarchy runs/intents",
    "c2f hierarchy resnet.safetensors --classes names.txt --save hierarchy.json",
    "c2f hierarchy taxonomy.csv --max-levels 3 --save hierarchy.json",
)


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The source is a checkpoint (.safetensors, .pt, .pth, .bin, .ckpt), a matrix of "
            "distances, embeddings or confusions (.npy, .npz, .csv), a hierarchy (.json, "
            ".safetensors), a taxonomy (.json, .csv) or a run.",
        ),
    ],
    metric: Annotated[str, options.METRIC] = "embedding",
    linkage: Annotated[str, options.LINKAGE] = "single",
    head: options.Head = None,
    model: options.ModelOfRun = None,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Cluster by nearest neighbours that faiss finds: faster for 10,000 classes and "
            "more, and nearly the same.",
        ),
    ] = False,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Let processes:N, a Dask cluster's address or torchrun (its processes) compute "
            "the distances of more than 2,048 classes. Default: this process.",
        ),
    ] = None,
    max_levels: Annotated[
        int | None, typer.Option(metavar="N", help="Thin the hierarchy out to so many levels.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAMES",
            help="Take the class names, in order, from this file, one a line, or list with commas.",
        ),
    ] = None,
    parents: Annotated[
        str | None,
        typer.Option(
            metavar="first",
            help="In a taxonomy, take what has several parents below the first of them.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save it as this file, .json or .safetensors."),
    ] = None,
    as_csv: Annotated[
        Path | None,
        typer.Option(
            "--csv", metavar="FILE", help="Save it as this CSV file, with columns parent and child."
        ),
    ] = None,
    max_lines: Annotated[
        int, typer.Option(metavar="N", help="Cut the shown tree after so many lines.")
    ] = 80,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the hierarchy as JSON instead of the tree.")
    ] = False,
) -> None:
    """Show a hierarchy, save it or convert it.

    It is that of a run, or read from a file, or made from a checkpoint or matrix.
    """
    from ..runs.hierarchies import read_hierarchy

    names = None if classes is None else _class_names(classes)
    hierarchy = read_hierarchy(
        source,
        metric=metric,
        linkage=linkage,
        head=head,
        class_names=names,
        model=model,
        parents=parents,
        approximate=approximate,
        executor=executor,
    )
    if names is not None and hierarchy.class_names != tuple(names):
        hierarchy = hierarchy.for_classes(names)
    if max_levels is not None:
        hierarchy = hierarchy.max_levels(max_levels)
    show(json.dumps(hierarchy.to_dict()) if as_json else hierarchy.to_text(max_lines=max_lines))
    if not is_first():
        return
    if save is not None:
        hierarchy.save(save)
        say(f"saved as {save}")
    if as_csv is not None:
        from .._util.files import write_atomically

        write_atomically(as_csv, parent_child_csv(hierarchy))
        say(f"saved as {as_csv}")


def parent_child_csv(hierarchy: Hierarchy) -> str:
    """Return a hierarchy as CSV with the columns parent and child, which taxonomies have.

    Clusters without a name, or with a name that is not theirs alone, are called by their level
    and number.

    Examples:
        >>> from coarse2fine import Hierarchy
        >>> print(parent_child_csv(Hierarchy.from_levels([[0, 0, 1]], ["cat", "dog", "car"])))
        parent,child
        ,level 0 cluster 0
        ,level 0 cluster 1
        level 0 cluster 0,cat
        level 0 cluster 0,dog
        level 0 cluster 1,car
    """
    names = _distinct_names(hierarchy)
    rows = [("parent", "child"), *(("", name) for name in names[0])]
    for level, (above, below) in enumerate(pairwise(names)):
        owner = dict(
            zip(hierarchy.levels[level + 1].tolist(), hierarchy.levels[level], strict=True)
        )
        rows += [(above[owner[number]], name) for number, name in enumerate(below)]
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _distinct_names(hierarchy: Hierarchy) -> list[list[str]]:
    """Return names for the clusters of every level, the classes last, all of them different."""
    classes = hierarchy.class_names or tuple(map(str, range(hierarchy.num_classes)))
    groups = hierarchy.cluster_names or [[""] * count for count in hierarchy.num_clusters[:-1]]
    times = Counter(name for level in (*groups, classes) for name in level)

    def name_of(name: str, level: int, number: int) -> str:
        return name if name and times[name] == 1 else f"level {level} cluster {number}"

    named = [[name_of(x, level, at) for at, x in enumerate(g)] for level, g in enumerate(groups)]
    return [*named, list(classes)]


def _class_names(text: str) -> list[str]:
    path = Path(text)
    if path.is_file():
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        return [line.strip() for line in lines if line.strip()]
    return [name.strip() for name in text.split(",")]
