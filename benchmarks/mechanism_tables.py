"""Tables of what mechanism.py found, also of its files.

python benchmarks/mechanism_tables.py docs/results/text-banking77-bert.json
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]
Values = tuple[float, ...]


def level_gain(record: Record) -> float:
    """Return the accuracy at the last coarse level when it was left, minus the baseline's."""
    now, _, plain = at_last_coarse(record)
    return now - plain


def at_last_coarse(record: Record) -> Values:
    """Return validation accuracies at the last coarse level: when left, in the end, baseline."""
    return tuple(float(look["val_accuracy"][-2]) for look in looks(record))


def looks(record: Record) -> Sequence[Record]:
    """Return how it looks when the last coarse level is left, in the end, and in the baseline."""
    left, end = record["curriculum"]["looks"][-2:]
    return left, end, record["baseline"]["looks"][-1]


def seen(name: str) -> Callable[[Record], Values]:
    """Return how to read a figure of all three looks; NaN where an older file has none."""
    return lambda record: tuple(float(look.get(name, math.nan)) for look in looks(record))


def when_left(name: str) -> Callable[[Record], Values]:
    """Return how to read a figure at the end of the last coarse level alone."""
    return lambda record: seen(name)(record)[:1]


def gradient_over_scale(record: Record) -> Values:
    """Return the class loss's gradient by what Adam divides steps by, at the last coarse level."""
    return (seen("head_gradient")(record)[0] / seen("head_scale")(record)[0],)


def at_equal_loss(record: Record, loss: float = 0.5) -> Values:
    """Return validation accuracies where the training loss on the classes first is so small."""
    found = []
    for outcome in (record["curriculum"], record["baseline"]):
        accuracies, losses = (on_classes(outcome, key) for key in ("accuracies", "losses"))
        pairs = zip(accuracies, losses, strict=bool(losses))
        found.append(next((accuracy for accuracy, one in pairs if one <= loss), math.nan))
    return tuple(found)


def at_equal_epochs(record: Record) -> Values:
    """Return the best validation accuracies in as many epochs on the classes."""
    mine = on_classes(record["curriculum"], "accuracies")
    return max(mine), max(record["baseline"]["accuracies"][: len(mine)])


def on_classes(outcome: Record, key: str) -> Sequence[float]:
    """Return the figures of the epochs in which the classes were trained."""
    figures: Sequence[float] = outcome.get(key, ())[max(outcome["boundaries"], default=0) :]
    return figures


# "Left" is when the last coarse level is left; where there are three, the second is the end of
# the curriculum, and the last is always the baseline.
MEASURES: Mapping[str, tuple[Callable[[Record], Values], str]] = {
    "training loss at the level: left": (when_left("train_loss"), ".3f"),
    "training accuracy at the level: left": (when_left("train_accuracy"), ".1%"),
    "validation accuracy at the level: left, end, baseline": (at_last_coarse, ".1%"),
    "training loss on the classes: left": (when_left("class_loss"), ".2f"),
    "directions of the class means: left, end, baseline": (seen("dimensions"), ".1f"),
    "share between classes, training: left, end, baseline": (seen("class_spread"), ".2f"),
    "share between classes, validation: left, end, baseline": (seen("val_class_spread"), ".2f"),
    "cosine of rows in a cluster: left, end, baseline": (seen("row_cosine"), ".2f"),
    "norm of rows: left, end, baseline": (seen("row_norm"), ".2f"),
    "gradient in the final layer over Adam's scale: left": (gradient_over_scale, ".0f"),
    "validation accuracy at training loss 0.5: curriculum, baseline": (at_equal_loss, ".1%"),
    "validation accuracy in equal epochs: curriculum, baseline": (at_equal_epochs, ".1%"),
}


def gains(found: Sequence[Record]) -> str:
    """Return the mean gains and their standard errors, in points, as a Markdown table."""
    rows = [
        "| variant | validation | test | at the last coarse level when left |",
        "|---|---|---|---|",
    ]
    for label, mine in by_variant(found).items():
        both = [[r["curriculum"][k] - r["baseline"][k] for r in mine] for k in ("val", "test")]
        cells = [in_points(values) for values in (*both, [level_gain(r) for r in mine])]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(rows)


def measures(found: Sequence[Record]) -> str:
    """Return the means over the seeds of all that was measured, as a Markdown table."""
    of = by_variant(found)
    rows = [f"| | {' | '.join(of)} |", "|---|" + "---|" * len(of)]
    for name, (read, form) in MEASURES.items():
        cells = [mean_of([read(record) for record in mine], form) for mine in of.values()]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def by_variant(found: Sequence[Record]) -> dict[str, list[Record]]:
    labels = dict.fromkeys(record["variant"] for record in found)
    return {label: [one for one in found if one["variant"] == label] for label in labels}


def mean_of(values: Sequence[Values], form: str) -> str:
    return ", ".join(format(statistics.mean(one), form) for one in zip(*values, strict=True))


def in_points(values: Sequence[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{100 * statistics.mean(values):+.1f} ± {100 * error:.1f}"


def tables(found: Sequence[Record]) -> str:
    """Return both tables of every set and model."""
    kinds = dict.fromkeys((record["set"], record["model"]) for record in found)
    parts = []
    for kind in kinds:
        mine = [record for record in found if (record["set"], record["model"]) == kind]
        # That of the first variant, as others may have settings, and so baselines, of their own.
        first = next(iter(by_variant(mine).values()))
        baseline = [tuple(one["baseline"][key] for key in ("val", "test")) for one in first]
        means = mean_of(baseline, ".1%")
        parts.append(f"{', '.join(kind)}; baseline {means}\n\n{gains(mine)}\n\n{measures(mine)}\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    for path in parser.parse_args().files:
        print(tables(json.loads(path.read_text(encoding="utf-8"))["runs"]))


if __name__ == "__main__":
    main()
