"""`c2f figure`: figures of finished runs, for papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import RunError
from . import options
from .process import say

if TYPE_CHECKING:
    from ..figures.style import Panel
    from ..report.runs import Entry
    from ..runs.restorer import Restorer
    from ..runs.result import RunResult

EXAMPLES = (
    "c2f figure curves runs/intents",
    "c2f figure gains runs/intents runs/photos --out gains.pdf --width 3.5",
    "c2f figure confusion runs/photos --method staged --out confusion.png --dpi 600",
    "c2f figure answers runs/photos --method continuous --seed 0",
    "c2f figure hierarchy hierarchy.json --title 'Intents' --out tree.pdf",
)
ANSWERS = "answers"
PAIR = "a baseline and another method of the same seed"
# What each shows, and needs of the runs.
KINDS = {
    "curves": "accuracies noted after an epoch",
    "gains": PAIR,
    "levels": "a method with a hierarchy",
    "classes": PAIR,
    "confusion": "a baseline and a method with a hierarchy of the same seed",
    "hierarchy": "a method with a hierarchy",
    ANSWERS: "a method with a hierarchy",
}


def command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"The figure to draw: {', '.join(KINDS)}.")
    ],
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="The runs, comparisons, or folders with runs as seed-N/METHOD; each is a panel. A "
            "figure of a hierarchy also takes all that c2f hierarchy reads.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save it as this .svg, .png or .pdf file. Default: KIND.svg."
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(metavar="INCHES", help="Draw it for a column of this width."),
    ] = None,
    dpi: Annotated[int, typer.Option(metavar="N", help="Draw so many pixels an inch.")] = 300,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Draw only this method and the baseline. Repeat the option for several.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw only the runs of this seed.")
    ] = None,
    title: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Call the panel so, instead of by its folder. Repeat the option for each.",
        ),
    ] = None,
    folder: options.Folder = None,
    model: options.ModelOfRun = None,
    no_title: Annotated[bool, typer.Option("--no-title", help="Leave the titles out.")] = False,
) -> None:
    """Draw a figure of finished runs, for a paper or a page.

    The same runs give the same file.
    """
    from ..figures import find_figure
    from ..figures.style import check_format, printed, save
    from ..runs.restorer import Restorer

    if kind not in KINDS:
        raise ValueError(f"a figure is one of {', '.join(KINDS)}. Got {kind!r}.")
    if not 2.5 <= (2.5 if width is None else width) <= 100:
        raise ValueError(f"--width must lie between 2.5 and 100 inches. Got {width}.")
    if not 50 <= dpi <= 1200:
        raise ValueError(f"--dpi must lie between 50 and 1200 pixels an inch. Got {dpi}.")
    if kind != ANSWERS and (folder, model) != (None, None):
        raise ValueError(f"--data and --model are for {ANSWERS}, which runs the models again.")
    path = out or Path(f"{kind}.svg")
    check_format(path)
    found = list(_panels(kind, runs, method or (), seed, Restorer(folder, model)))
    panels = _titled(found, [""] * len(found) if no_title else title)
    with printed(width):
        save(find_figure(kind).draw(panels, width), path, dpi)
    say(f"saved as {path}")


def _panels(
    kind: str,
    sources: Sequence[Path],
    methods: Sequence[str],
    seed: int | None,
    restorer: Restorer,
) -> Iterator[tuple[Path, Panel[Any]]]:
    """Yield what there is to draw, of each comparison and each file, and where it is from."""
    for paths in _together(kind, sources):
        path = paths[0]
        if path.is_file():
            panel = _from_file(path)
        else:
            panel = _from_runs(kind, paths, methods, seed, restorer)
        if not panel.values:
            raise RunError(f"{path}: {kind} needs {KINDS[kind]}.")
        yield path, panel


def _together(kind: str, sources: Sequence[Path]) -> list[list[Path]]:
    """Return which sources share a panel: runs of the same comparison."""
    from ..report.runs import gather

    groups: dict[Path, list[Path]] = {}
    for source in sources:
        if kind == "hierarchy" and source.is_file():
            groups[source] = [source]
        else:
            comparison = gather([source]).entries[0].runs[0].comparison
            groups.setdefault(comparison, []).append(source)
    return list(groups.values())


def _from_file(path: Path) -> Panel[Any]:
    from ..figures.hierarchy import NamedHierarchy
    from ..figures.style import Panel
    from ..runs.hierarchies import read_hierarchy

    return Panel(path.stem, {}, [NamedHierarchy(read_hierarchy(path))])


def _from_runs(
    kind: str,
    paths: Sequence[Path],
    methods: Sequence[str],
    seed: int | None,
    restorer: Restorer,
) -> Panel[Any]:
    """Return what there is to draw of the runs of one comparison."""
    from ..figures.style import Panel
    from ..report.runs import gather
    from ..runs.result import BASELINE

    found = gather(paths)
    for remark in found.remarks:
        say(f"note: {remark}")
    entries = _chosen(found.entries, paths[0], methods)
    runs = [
        replace(run.result, method=entry.label)  # as two of a method may have labels of their own
        for entry in entries
        for run in entry.runs
        if seed in (None, run.seed)
    ]
    if not runs:
        raise RunError(f"{paths[0]} has no finished run of seed {seed}.")
    try:
        values = _values(kind, runs, restorer)
    except (LookupError, AttributeError) as error:
        raise RunError(f"{paths[0]} has a damaged run: {error!r}.") from error
    labels = [entry.label for entry in entries if entry.label != BASELINE]
    name = found.entries[0].runs[0].comparison.name
    return Panel(name, {label: label for label in labels}, values)


def _values(kind: str, runs: Sequence[RunResult], restorer: Restorer) -> Any:
    from ..figures import answers, find_figure

    if kind != ANSWERS:
        return find_figure(kind).values_of(runs)
    say(f"running {len(runs)} models on their validation and test samples …")
    return answers.values_of(runs, restorer)


def _chosen(entries: Sequence[Entry], path: Path, methods: Sequence[str]) -> list[Entry]:
    """Return the baseline and the methods that are asked for, or all."""
    from ..runs.result import BASELINE

    labels = [entry.label for entry in entries]
    for name in methods:
        if name not in labels:
            raise RunError(f"{path} has no method {name}, but {', '.join(labels)}.")
    wanted = {BASELINE, *methods} if methods else set(labels)
    return [entry for entry in entries if entry.label in wanted]


def _titled(
    found: Sequence[tuple[Path, Panel[Any]]], titles: Sequence[str] | None
) -> list[Panel[Any]]:
    """Return the panels with the titles that are given, or else names that tell them apart."""
    if titles and len(titles) != len(found):
        panels = "is 1 panel" if len(found) == 1 else f"are {len(found)} panels"
        raise ValueError(f"there {panels} to name. Got {len(titles)} titles.")
    times = Counter(panel.title for _, panel in found)
    own = [str(path) if times[panel.title] > 1 else panel.title for path, panel in found]
    return [
        replace(panel, title=title) for (_, panel), title in zip(found, titles or own, strict=True)
    ]
