"""`c2f predict`: what a run's model says of new images, sentences or rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .calibration import Accuracy, Calibrate, check_calibration, level_predictor
from .process import is_first, say, show

if TYPE_CHECKING:
    from ..inference.classifier import Classifier, Prediction
    from .prediction_formats import Format

EXAMPLES = (
    "c2f predict runs/photos new.jpg holiday/",
    "c2f predict runs/intents new.csv --text sentence --json --out predictions.jsonl",
    "c2f predict runs/intents - < sentences.txt",
    "c2f predict runs/intents new.csv --accuracy 0.95 --calibrate held-out.csv",
)
Output = Any


def command(
    run: options.RunPath,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT…",
            help="The inputs are image files and folders, csv, jsonl, parquet or npy files, or - "
            "for lines of the standard input: sentences, or paths of images.",
        ),
    ],
    method: options.MethodOfRun = None,
    seed: options.SeedOfRun = None,
    model: options.ModelOfRun = None,
    text: options.Text = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, help="Name the N most probable classes.")
    ] = 3,
    accuracy: Accuracy = None,
    calibrate: Calibrate = None,
    folder: options.Folder = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Predict so many samples at a time. Default: 256, fewer of large ones.",
        ),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Name and skip what cannot be read, and count it."),
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV instead of a table.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write lines of JSON instead of a table.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to this file, which appears once it is whole."),
    ] = None,
) -> None:
    """Predict the classes of new images, sentences or rows.

    For each it writes the most probable class, its probability, the next guesses and the cluster
    at each level. Of a comparison, the model that validates best is used. Labels are ignored.
    However many inputs there are, only a few are in memory at a time.
    """
    from ..inference.load import load_chosen, load_classifier
    from .prediction_formats import choose_format

    check_calibration(accuracy, calibrate)
    if as_csv and as_json:
        raise ValueError("--csv and --json cannot be given together.")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: there is no folder {out.parent}; make it first.")
    classifier = load_classifier(run, method, seed, model, text=text)
    say(f"using {classifier.description}")
    if accuracy is not None:
        trained = load_chosen(run, method, seed, model)[1]
        classifier.level_predictor = level_predictor(
            trained, classifier.hierarchy, accuracy, calibrate, folder
        )
    chosen = choose_format(classifier, top, as_csv=as_csv, as_json=as_json)
    skipped = Skipped() if keep_going else None
    batches = classifier.batches(
        _samples(inputs, classifier), top=top, batch_size=batch_size, on_fault=skipped
    )
    with _output(out) as write:
        count = _write(batches, chosen, write)
    _report(count, skipped)


class Skipped:
    """Names what cannot be used, and counts it.

    Attributes:
        count: How often there was something.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()  # samples are read by one thread and prepared by another

    def __call__(self, name: str, error: Exception) -> None:
        """Tell what is wrong with a sample or a file."""
        from .app import one_line

        reason = one_line(error)
        with self._lock:
            self.count += 1
            say(f"skipped: {reason}" if name in reason else f"skipped: {name}: {reason}")


def _samples(inputs: list[str], classifier: Classifier) -> Any:
    """Return what the classifier is given: paths, or lines of the standard input."""
    kind = classifier.preprocessing.kind
    if inputs != ["-"]:
        if "-" in inputs:
            raise ValueError("the standard input (-) cannot be mixed with files.")
        return [Path(name) for name in inputs]
    if kind not in ("text", "image"):
        raise ValueError(
            f"the standard input is for sentences, or for paths of images; the model takes "
            f"{classifier.preprocessing.wanted}, so name a csv, jsonl, parquet or npy file."
        )
    lines = (line.rstrip("\r\n") for line in sys.stdin)
    return lines if kind == "text" else (Path(line) for line in lines if line.strip())


def _write(batches: Iterator[list[Prediction]], chosen: Format, write: Output) -> int:
    """Write predictions as they come, and return how many there were."""
    count = 0
    with _bar() as advance:
        for batch in batches:
            if not count and chosen.header:
                write(chosen.header)
            write(chosen.lines(batch))
            count += len(batch)
            advance(len(batch))
    return count


@contextmanager
def _output(out: Path | None) -> Iterator[Output]:
    if out is None:
        yield show
        return
    from .._util.files import replacing

    with (
        replacing(out) as unfinished,
        unfinished.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        yield lambda text: file.write(f"{text}\n")


@contextmanager
def _bar() -> Iterator[Output]:
    """Show on terminals how many there were so far, and how many a second."""
    from ..errors import require
    from ..training.terminal import plain_console

    progress = require("rich.progress", "train")
    console = plain_console()
    # Where the results scroll by on the same terminal, they are progress enough.
    is_shown = console.is_terminal and is_first() and not sys.stdout.isatty()
    with progress.Progress(
        progress.TextColumn("predicted {task.completed:,.0f}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not is_shown,
    ) as bars:
        task = bars.add_task("", total=None, rate="")

        def advance(count: int) -> None:
            bars.advance(task, count)
            speed = bars.tasks[0].speed
            bars.update(task, rate=f"{speed:,.0f} a second" if speed else "")

        yield advance


def _report(count: int, skipped: Skipped | None) -> None:
    if skipped is not None and skipped.count:
        if not count:
            raise ValueError(f"nothing could be predicted: all {skipped.count} were skipped.")
        say(f"{count} predicted, {skipped.count} skipped")
    elif not count:
        raise ValueError("there is nothing to predict: the inputs are empty.")
