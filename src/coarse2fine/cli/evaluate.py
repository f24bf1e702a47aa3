"""`c2f evaluate`: how good a run's model is on data."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from . import options
from .process import say, show

if TYPE_CHECKING:
    from pathlib import Path

    from ..data import Source, Split
    from ..runs.restore import Trained

EXAMPLES = (
    "c2f evaluate runs/intents intents.csv",
    "c2f evaluate runs/photos new-photos/ --method baseline --seed 1",
    "c2f evaluate runs/cifar/seed-0/staged cifar100 --data ~/data --split val --json",
)
PARTS = ("test", "val", "train")


class LevelScore(TypedDict):
    """How good a model is at one level of its hierarchy."""

    clusters: int
    accuracy: float
    samples: int


class Scores(TypedDict, total=False):
    """How good a model is on samples; without what takes more classes or a hierarchy."""

    samples: int
    accuracy: float
    balanced_accuracy: float
    top_5_accuracy: float
    levels: list[LevelScore]
    mistake_severity: float | None


def command(
    run: options.RunPath,
    data: options.DataName,
    folder: options.Folder = None,
    method: options.MethodOfRun = None,
    seed: options.SeedOfRun = None,
    model: options.ModelOfRun = None,
    split: Annotated[
        str, typer.Option(metavar="|".join(PARTS), help="Evaluate on this part of the data.")
    ] = "test",
    target: options.Target = None,
    text: options.Text = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Evaluate so many samples at a time. Default: as in training."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")] = False,
) -> None:
    """Evaluate a run's model on any data.

    Of the data it was trained with, the parts are those of the training. Of other data without a
    test part, all samples are taken. Classes are matched by name. Of a comparison, the model that
    validates best is evaluated. Data without labels are for c2f predict.
    """
    from ..runs.best import described, find_best
    from ..runs.parsers import one_or_several
    from ..runs.restore import load_trained

    if split not in PARTS:
        raise ValueError(f"--split must be one of {', '.join(PARTS)}. Got {split!r}.")
    found = find_best(run, method, seed)
    trained = load_trained(found.path, model)
    say(f"using {described(found)}")
    columns = one_or_several(target or ())
    part = part_of_data(trained, data, split, folder=folder, target=columns, text=text)
    coarse = coarse_samples(part, trained)
    samples = classes_of(
        part, trained, split, "left out" if coarse is None else "counted at coarser levels"
    )
    scores = evaluation(trained, samples, batch_size, coarse)
    if as_json:
        used = {"run": str(trained.path), "method": found.method, "seed": found.seed}
        show(json.dumps({**used, "data": data, "split": split, **scores}))
    else:
        show(f"{trained.path} on {data}, {split}: {len(samples)} samples\n{_shown(scores)}")


def part_of_data(
    trained: Trained,
    data: str,
    split: str = "test",
    *,
    folder: Path | None = None,
    target: str | tuple[str, ...] | None = None,
    text: str | None = None,
) -> Split:
    """Return samples for a model, whose labels may be of any depth.

    Args:
        trained: The model.
        data: As `load_data` takes it.
        split: One of `PARTS`, see `part_of`. Defaults to ``"test"``.
        folder: Where a named set lies. Defaults to None.
        target: The column of the classes. Defaults to None: as in training.
        text: The column of the text. Defaults to None: as in training.
    """
    from ..data.load import load_data
    from ..runs.directory import Run

    target = target or trained.config.target
    # Labels that make a tree by themselves are those of the data alone, and matched by name.
    makes_tree = replace(trained.config, target=target).has_tree_of_labels
    source = load_data(
        data,
        class_names=None if makes_tree else trained.class_names,
        hierarchy=Run(trained.path).config.data.tree,
        folder=folder,
        image_size=_image_size(trained, data),
        target=target,
        text=text or trained.config.text,
        columns=trained.columns or None,
    )
    part = part_of(source, trained, split)
    _check_inputs(part, source.kind, trained)
    return part


def classes_of(part: Split, trained: Trained, split: str, others: str = "left out") -> Split:
    """Return the samples that have a class, with targets that count a model's classes.

    Args:
        part: Samples of any labels.
        trained: The model.
        split: What the part is called.
        others: What is told of samples without a class. Defaults to ``"left out"``.
    """
    samples = with_classes(part.with_class(), trained.class_names)
    if not len(samples):
        raise ValueError(f"none of the {len(part)} {split} samples has a class.")
    if len(samples) < len(part):
        say(f"{len(samples)} of {len(part)} {split} samples have a class; the others are {others}")
    return samples


def coarse_samples(part: Split, trained: Trained) -> Split | None:
    """Return the samples labelled with a cluster, with a tree of the model's classes.

    None where there are none, where the tree is of other classes, or the run has no levels.
    """
    from ..runs.directory import Run

    is_known = {*part.class_names} == {*trained.class_names} and Run(trained.path).has_hierarchy
    if part.hierarchy is None or part.num_with_class == len(part) or not is_known:
        return None
    names, tree = trained.class_names, part.hierarchy.for_classes(trained.class_names)
    # The numbers of clusters do not depend on the order of the classes.
    return replace(part.take((~part.has_class).nonzero()[:, 0]), class_names=names, hierarchy=tree)


def part_of(source: Source, trained: Trained, split: str) -> Split:
    """Return a part of the data: the training's own where these are the data it had.

    Args:
        source: What was loaded.
        trained: The model.
        split: One of `PARTS`.
    """
    from ..runs.restore import divided_as_in_training

    own = divided_as_in_training(source, trained.config, trained.fingerprint)
    whole = source.train if source.test is None else source.test
    parts = {"test": whole, "val": source.val, "train": source.train}
    if own is not None:
        parts = {"test": own.test, "val": own.val, "train": own.train}
    found = parts[split]
    if found is None or not len(found):
        raise ValueError(f"the data has no {split} samples.")
    return found


def with_classes(split: Split, class_names: tuple[str, ...]) -> Split:
    """Return the samples with targets that count the given classes, matched by name."""
    import torch

    from ..data import Split

    if split.class_names == class_names:
        return split
    places = {name: place for place, name in enumerate(class_names)}
    counts = split.targets.bincount(minlength=len(split.class_names)).tolist()
    unknown = [n for n, c in zip(split.class_names, counts, strict=True) if c and n not in places]
    if unknown:
        raise ValueError(
            f"the data has the class {unknown[0]!r}, which is not one of the run's "
            f"{len(class_names)}: {', '.join(class_names[:5])}, …"
        )
    table = torch.tensor([places.get(name, 0) for name in split.class_names])
    return Split(split.inputs, table[split.targets], class_names, split.index)


def evaluation(
    trained: Trained, samples: Split, batch_size: int | None = None, coarse: Split | None = None
) -> Scores:
    """Return how good a model is on samples.

    Args:
        trained: The model.
        samples: Of its classes.
        batch_size: Defaults to None: as in training.
        coarse: Samples labelled with clusters, which count at levels. Defaults to None.
    """
    from .._scores import ratio
    from ..metrics import balanced_accuracy, level_hits, mistake_severity, top_k_accuracy
    from ..runs.directory import Run

    logits, targets = trained.logits(samples, batch_size), samples.targets
    predictions = logits.argmax(1)
    scores: Scores = {
        "samples": len(samples),
        "accuracy": float((predictions == targets).double().mean()),
        "balanced_accuracy": balanced_accuracy(predictions, targets),
    }
    if len(trained.class_names) >= 10:
        scores["top_5_accuracy"] = top_k_accuracy(logits, targets, 5)
    if Run(trained.path).has_hierarchy:
        hierarchy = Run(trained.path).hierarchy()
        hits, counts = level_hits(predictions, targets, hierarchy, hierarchy.nodes)
        if coarse is not None and coarse.hierarchy is not None:
            found = trained.logits(coarse, batch_size).argmax(1)
            more = level_hits(found, coarse.targets, hierarchy, coarse.hierarchy.nodes)
            hits, counts = hits + more[0], counts + more[1]
        severity = mistake_severity(predictions, targets, hierarchy)
        scores["levels"] = [
            {"clusters": clusters, "accuracy": ratio(hit, count), "samples": int(count)}
            for clusters, hit, count in zip(hierarchy.num_clusters, hits, counts, strict=True)
        ]
        scores["mistake_severity"] = None if math.isnan(severity) else severity
    return scores


def _image_size(trained: Trained, data: str) -> int | None:
    """Return the size to bring images to, where they can be brought to one."""
    from ..data.load import takes_size

    if trained.kind != "image" or not takes_size(data):
        return None
    *_, height, width = trained.input_shape
    return width if height == width else None


def _check_inputs(samples: Split, kind: str, trained: Trained) -> None:
    from ..data import input_shape

    if kind != trained.kind:
        raise ValueError(f"the run was trained on data of kind {trained.kind!r}. Got {kind!r}.")
    shape = input_shape(samples)
    if kind != "text" and shape != trained.input_shape:  # sentences may have any length
        wanted, got = ("×".join(map(str, sizes)) for sizes in (trained.input_shape, shape))
        raise ValueError(f"the run was trained on samples of {wanted}, and these are of {got}.")


def _shown(scores: Scores) -> str:
    shares: dict[str, float | None] = {
        "accuracy": scores["accuracy"],
        "balanced accuracy": scores["balanced_accuracy"],
        "top-5 accuracy": scores.get("top_5_accuracy"),
    }
    for level in scores.get("levels", [])[:-1]:
        name = f"accuracy at {level['clusters']} clusters"
        is_other = level["samples"] != scores["samples"]
        shares[f"{name}, {level['samples']} samples" if is_other else name] = level["accuracy"]
    rows = [(name, f"{100 * share:.2f}") for name, share in shares.items() if share is not None]
    if scores.get("mistake_severity") is not None:
        rows.append(("mistake severity", f"{scores['mistake_severity']:.2f}"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value:>6}" for name, value in rows)
