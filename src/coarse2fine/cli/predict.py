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
from .process import is_first, say, show

if TYPE_CHECKING:
    from torch import Tensor

    from ..data import Split
    from ..inference.classifier import Classifier, Prediction
    from ..prediction import LevelPredictor
    from ..runs.restore import Trained
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
    accuracy: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Answer with the finest class or cluster that the model is sure of, so that this "
            "share of the answers is right, with a confidence of 0.9.",
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Find by this labelled data how sure that is, which the model has not seen. "
            "Default: by the test samples of the run.",
        ),
    ] = None,
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

    if as_csv and as_json:
        raise ValueError("--csv and --json cannot be given together.")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: there is no folder {out.parent}; make it first.")
    classifier = load_classifier(run, method, seed, model, text=text)
    say(f"using {classifier.description}")
    if accuracy is not None:
        predictor = _predictor(classifier, accuracy)  # checked before data is read
        trained = load_chosen(run, method, seed, model)[1]
        samples = _held_out(trained, calibrate, folder)
        _calibrate(classifier, predictor, trained.logits(samples), samples.targets)
    elif calibrate is not None:
        raise ValueError("--calibrate is for --accuracy, which says what is to be kept.")
    chosen = choose_format(classifier, top, as_csv=as_csv, as_json=as_json)
    skipped = Skipped() if keep_going else None
    batches = classifier.batches(
        _samples(inputs, classifier), top=top, batch_size=batch_size, on_fault=skipped
    )
    with _output(out) as write:
        count = _write(batches, chosen, write)
    _report(count, skipped)


def _predictor(classifier: Classifier, accuracy: float) -> LevelPredictor:
    """Return what is to be calibrated."""
    from ..prediction import LevelPredictor

    if classifier.hierarchy is None:
        raise ValueError("--accuracy needs a hierarchy, and the run has none.")
    return LevelPredictor(classifier.hierarchy, accuracy)


def _calibrate(
    classifier: Classifier, predictor: LevelPredictor, logits: Tensor, targets: Tensor
) -> None:
    """Have the classifier answer at any level, and tell what it was calibrated by."""
    classifier.level_predictor = predictor.fit(logits, targets)
    say(
        f"{predictor.accuracy:.6g} of the answers are right with a confidence of "
        f"{predictor.confidence}: {predictor.accuracy_:.2%} of {predictor.num_samples_} samples "
        f"at the threshold {predictor.threshold_:.4g}"
    )


def _held_out(trained: Trained, data: str | None, folder: Path | None) -> Split:
    """Return labelled samples that the model has not seen."""
    from ..runs.config import GIVEN
    from ..runs.directory import Run
    from ..runs.restorer import Restorer
    from .evaluate import labelled_samples

    if data is not None:
        return labelled_samples(trained, data, folder=folder)
    if trained.config.data == GIVEN:
        raise ValueError("the run's data were Python objects; name labelled data by --calibrate.")
    return Restorer(folder).data(Run(trained.path)).test.with_class()


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
