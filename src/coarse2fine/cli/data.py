"""`c2f data`: what data there is to train on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .process import say, show

if TYPE_CHECKING:
    from ..data.sampling import Data

EXAMPLES = (
    "c2f data shapes cifar10 cifar100 --data ~/data",
    "c2f data photos/ --image-size 64",
    "c2f data shapes --examples shapes.png",
)
HEADINGS = ("data", "kind", "classes", "training", "validation", "test", "size")


def command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="The data: names of sets, files, folders or hub names, as c2f train takes them.",
        ),
    ],
    folder: options.Folder = None,
    image_size: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Have images of this side.")
    ] = None,
    target: options.Target = None,
    text: options.Text = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Let labels name clusters of this hierarchy too, not only classes."
        ),
    ] = None,
    examples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw an image of each class, of one data set, as this .svg, .png or .pdf file.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a line of JSON for each instead of a table.")
    ] = False,
) -> None:
    """Show what data there is: its classes, its samples, and how large one is.

    The samples are divided as c2f train does it by default: where the data has no test or
    validation samples of its own, a fifth is taken.
    """
    from ..data.load import load_data
    from ..data.sampling import sample
    from ..runs.hierarchies import read_tree
    from ..runs.parsers import one_or_several
    from ..runs.result import counts_of_labels

    if examples is not None:
        _check_examples(examples, names)
    columns = one_or_several(target or ())
    tree = None if hierarchy is None else partial(read_tree, hierarchy)
    load = partial(load_data, folder=folder, image_size=image_size, target=columns, text=text)
    found = {name: sample(load(name, hierarchy=tree)) for name in names}
    if as_json:
        for name, data in found.items():
            counts = data.with_class()
            told = {"with_class": [found for found, _ in counts.values()]} if counts else {}
            show(json.dumps(statistics(name, data) | told))
    else:
        rows = [[_shown(cell) for cell in statistics(*each).values()] for each in found.items()]
        show([HEADINGS, *rows])
        for name, data in found.items():
            if data.with_class():
                show(f"{name}: {counts_of_labels(data.with_class())}")
    if examples is not None:
        _draw(*found.popitem(), examples)
        say(f"saved as {examples}")


def _check_examples(path: Path, names: Sequence[str]) -> None:
    """Refuse what cannot be drawn before data is read."""
    from ..errors import require
    from ..figures.style import check_format

    require("matplotlib", "report")
    if len(names) > 1:
        raise ValueError(f"--examples draws the images of one data set. Got {', '.join(names)}.")
    check_format(path)


def statistics(name: str, data: Data) -> dict[str, str | int | list[int]]:
    """Return what there is to say of data, in the order of `HEADINGS`.

    Args:
        name: What was asked for.
        data: Its samples, divided.
    """
    from ..data.sampling import input_shape

    parts = (len(data.train), len(data.val), len(data.test))
    cells = (name, data.kind, len(data.class_names), *parts, list(input_shape(data.train)))
    return dict(zip(HEADINGS, cells, strict=True))


def _shown(cell: str | int | Sequence[int]) -> str:
    """Return a cell as text.

    Examples:
        >>> _shown(50_000), _shown([3, 32, 32]), _shown("image")
        ('50,000', '3×32×32', 'image')
    """
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else "×".join(map(str, cell))


def _draw(name: str, data: Data, path: Path) -> None:
    from ..figures.examples import draw, examples_of
    from ..figures.style import Panel, save

    if data.kind != "image":
        raise ValueError(f"--examples draws images, and {name} is of kind {data.kind!r}.")
    save(draw([Panel("", {}, examples_of(data.train))]), path)
