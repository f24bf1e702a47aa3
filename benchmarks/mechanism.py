"""Why the curriculum loses on sentences and tables: what a level leaves behind, and remedies.

    python benchmarks/mechanism.py banking77 --model bert --data DIR --per-class 20 --json FILE

For each seed a baseline is trained, the hierarchy is made from it, and every variant of the
curriculum trains anew from the same weights on the same samples. It prints the gains, and looks
at each model when the last coarse level is left and in the end. A variant with settings of its
own has a baseline with the same settings.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mechanism_tables import Record, level_gain, tables
from mechanism_tasks import WIDTHS, Task, hierarchies_of, load_splits, task_of
from mechanism_training import Training, Variant

import coarse2fine
from coarse2fine import Hierarchy
from coarse2fine.models import MODELS, default_model

Hierarchies = Mapping[str, Hierarchy]

REMEDIES = {
    "adaptive": Variant("adaptive, patience 5"),
    "one-each": Variant("one epoch a level", each=1),
    "leave-80": Variant("a level is left at 80% training accuracy", leave_at=0.8),
    "adam": Variant("fresh Adam state", fresh=("optimiser",)),
    "head": Variant("fresh final layer and Adam state", fresh=("optimiser", "head")),
    "words": Variant("fresh embeddings and Adam state", fresh=("optimiser", "words")),
    "between": Variant("fresh hidden layer and Adam state", fresh=("optimiser", "between")),
    "encoder": Variant("fresh encoder and Adam state", fresh=("optimiser", "words", "between")),
    "norms": Variant("rows of the final layer as long as at first", fresh=("norms",)),
    "warm-up": Variant("learning rate warmed up again", warmup=3),
    "adam-warm-up": Variant(
        "fresh Adam state, learning rate warmed up again", fresh=("optimiser",), warmup=3
    ),
    "share-50": Variant("half of the weight on the classes", class_share=0.5),
    "share-20": Variant("a fifth of the weight on the classes", class_share=0.2),
    "random": Variant("random clusters of the same sizes", clusters="random"),
    "slow": Variant("a third of the learning rate", settings=(("rate", 1e-3),)),
    "decay": Variant("weight decay 1e-4", settings=(("decay", 1e-4),)),
    "dropout-20": Variant("dropout 0.2", settings=(("dropout", 0.2),)),
    "dropout-70": Variant("dropout 0.7", settings=(("dropout", 0.7),)),
}
VARIANTS = {
    **REMEDIES,
    "means": Variant("clusters of the class means of the columns", clusters="means"),
    "true": Variant("the clusters that the table was made from", clusters="true"),
}


def clusters_for(
    variant: Variant, baseline: torch.nn.Module, seed: int, made: Hierarchies
) -> Hierarchy:
    if variant.clusters in made:
        return made[variant.clusters]
    if variant.clusters not in ("baseline", "random"):
        raise SystemExit(f"This set has no such hierarchy as {variant.label!r} needs.")
    hierarchy = Hierarchy.from_classifier(baseline)
    if variant.clusters == "random":
        order = np.random.RandomState(seed).permutation(hierarchy.num_classes)
        return Hierarchy.from_levels([level[order] for level in hierarchy.levels[:-1]])
    return hierarchy


def records(task: Task, variants: list[Variant], made: Hierarchies) -> Iterator[Record]:
    """Train the baselines and variants of one set and seed.

    Args:
        task: The samples.
        variants: To be trained.
        made: Hierarchies that no baseline gives, by what `Variant.clusters` calls them.
    """
    baselines: dict[Any, Training] = {}
    for variant in variants:
        own = replace(task, recipe={**task.recipe, **dict(variant.settings)})
        if variant.settings not in baselines:
            baselines[variant.settings] = Training(own, variant)
            baselines[variant.settings].run()
        plain = baselines[variant.settings]
        hierarchy = clusters_for(variant, plain.network, task.seed, made)
        curriculum = Training(own, variant, hierarchy).run()
        yield {
            "set": task.name,
            "model": task.model,
            "seed": task.seed,
            "variant": variant.label,
            "clusters": list(hierarchy.num_clusters),
            "baseline": asdict(plain.at_levels(hierarchy)),
            "curriculum": asdict(curriculum),
        }


def line(record: Record) -> str:
    """Return one training in a line."""
    old, new = record["baseline"], record["curriculum"]
    left = new["looks"][-2]
    return (
        f"{record['set']} {record['model']} seed {record['seed']} {record['variant']}: validation "
        f"{100 * old['val']:.2f} → {100 * new['val']:.2f}, test {100 * old['test']:.2f} → "
        f"{100 * new['test']:.2f}, clusters {record['clusters']}, levels from "
        f"{new['boundaries']}, best {new['best_epoch']} of {new['epochs']}, last coarse level left "
        f"at training loss {left['train_loss']:.3f}, validation {100 * level_gain(record):+.1f}"
    )


def as_json(found: list[Record], recipe: Mapping[str, float], options: Record) -> str:
    """Return what was found, and with what, numbers to five places."""
    places = ("data", "encoder", "json")
    about = {
        "options": {name: value for name, value in options.items() if name not in places},
        "recipe": recipe,
        "python": platform.python_version(),
        "versions": {m.__name__: m.__version__ for m in (coarse2fine, torch, np)},
    }
    return json.dumps({**about, "runs": rounded(found)}, ensure_ascii=False)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 5) if isinstance(value, float) else value


def load_task(name: str, seed: int, options: argparse.Namespace) -> Task:
    """Return the samples of a seed for the model of the options."""
    sizes = options.per_class, options.val_size, options.image_size
    kind, splits = load_splits(name, seed, options.data, *sizes)
    if options.model == "bert":
        if splits["train"].sentences is None:
            raise SystemExit(f"{name} has no sentences, which --model bert needs.")
        from mechanism_bert import bert_task  # transformers is needed for nothing else here

        return bert_task(name, seed, splits)
    return task_of(name, options.model or default_model(kind), seed, kind, splits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", help="as c2f train takes them, or of MADE")
    parser.add_argument("--data", type=Path, help="the folder of the sets")
    parser.add_argument("--model", choices=[*MODELS, *WIDTHS, "bert"], help="by default the data's")
    parser.add_argument("--per-class", type=int, help="samples of each class; all by default")
    parser.add_argument("--val-size", type=int, help="samples to validate on; all by default")
    parser.add_argument("--image-size", type=int, help="the side of images")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(REMEDIES))
    parser.add_argument("--json", type=Path, help="also write what was found to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: list[Record] = []
    for name in options.sets:
        for seed in options.seeds:
            task = load_task(name, seed, options)
            variants = [VARIANTS[key] for key in options.variants]
            for record in records(task, variants, hierarchies_of(task)):
                note(record, found, task.recipe, options)
    print(f"\n{tables(found)}")


def note(
    record: Record,
    found: list[Record],
    recipe: Mapping[str, float],
    arguments: argparse.Namespace,
) -> None:
    """Print a record, and store it with those before it at once, as all of them take long."""
    print(line(record), flush=True)
    found.append(record)
    if arguments.json:
        arguments.json.write_text(as_json(found, recipe, vars(arguments)) + "\n")


if __name__ == "__main__":
    main()
