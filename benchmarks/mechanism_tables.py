"""Tables of what mechanism.py found, also of its files.

python benchmarks/mechanism_tables.py docs/results/text-banking77-bag.json
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
    """Return the means and standard errors of all that was measured, as a Markdown table."""
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
    """Return the mean of each figure, and its standard error where there are several seeds."""
    return ", ".join(
        " ± ".join(format(one, form) for one in mean_and_error(column))
        for column in zip(*values, strict=True)
    )


def in_points(values: Sequence[float]) -> str:
    return " ± ".join(
        format(100 * one, form)
        for one, form in zip(mean_and_error(values), ("+.1f", ".1f"), strict=False)
    )


def mean_and_error(values: Sequence[float]) -> Values:
    """Return the mean, and its standard error if there are several."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return (mean,)
    return mean, float(np.std(values, ddof=1) / len(values) ** 0.5)


def lead_and_gain(found: Sequence[Record]) -> str:
    """Return whether those gained that led at the last coarse level, where it was learned."""
    learned = [one for one in found if "one epoch a level" not in one["variant"]]
    leads = [level_gain(one) for one in learned]
    gains = [one["curriculum"]["val"] - one["baseline"]["val"] for one in learned]
    of_leading = [gain for lead, gain in zip(leads, gains, strict=True) if lead > 0]
    of_others = [gain for lead, gain in zip(leads, gains, strict=True) if lead <= 0]
    return (
        f"{len(learned)} trainings: {sum(gain > 0 for gain in of_leading)} of the "
        f"{len(of_leading)} that led at the level gained in validation, and "
        f"{sum(gain > 0 for gain in of_others)} of the {len(of_others)} others; correlation of "
        f"lead and gain {np.corrcoef(leads, gains)[0, 1]:.2f}"
    )


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
    texts = [path.read_text(encoding="utf-8") for path in parser.parse_args().files]
    found = [json.loads(text)["runs"] for text in texts]
    for one in found:
        print(tables(one))
    print(lead_and_gain([record for one in found for record in one]))


if __name__ == "__main__":
    main()
