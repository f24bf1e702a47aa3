"""Ways to train where most samples have only a coarse label, beside fine labels alone.

    python benchmarks/any_level.py --data DIR --out RESULTS --jobs 2
    python benchmarks/any_level.py --from RESULTS/any-level.json [MORE.json ...]

Of each set a share of the samples has its class, all others only their group: the superclass of
an image of CIFAR-100, the domain of a sentence of CLINC150. Every way sees the same samples, and
has the same batches, learning rate and early stopping, counted in steps. A killed command goes
on where it was, and files of other seeds are put together by --from. docs/any-level.md describes
the ways.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import torch
from any_level_tables import report
from any_level_tasks import SETS, VAL_SHARE, Mixed, load_set, mixed_samples, recipe_in_steps
from any_level_training import PSEUDO, WAYS, Ways, scores
from mechanism import rounded
from mechanism_looks import outputs

import coarse2fine
from coarse2fine._util.files import Json, parse_json, write_atomically
from coarse2fine.data.load import VARIABLE


@dataclass(frozen=True)
class Place:
    """Trainings that share their samples.

    Args:
        name: Of the set.
        percent: How many of the samples have fine labels.
        seed: Of every choice.
    """

    name: str
    percent: int
    seed: int

    def file(self, folder: Path, way: str) -> Path:
        """Return the file of a way's row."""
        words = re.sub("[^a-z]+", "-", way)
        return folder / "rows" / f"{self.name}-{self.percent}-seed-{self.seed}-{words}.json"

    def samples(self, data: Path) -> Mixed:
        """Return the samples."""
        source, hierarchy = load_set(self.name, data)
        about, share = SETS[self.name], self.percent / 100
        return mixed_samples(
            self.name, about.model, source, hierarchy, about.size, share, self.seed
        )


# ------------------------------------------------------------------------------- one row


def write_rows(mixed: Mixed, place: Place, folder: Path) -> Iterator[Json]:
    """Train the ways that have no row yet; yield each row when it is on the disk."""
    ways = Ways(mixed)
    for way in WAYS:
        path = place.file(folder, way)
        if not path.is_file():
            row = row_of(ways, way, place)
            write_atomically(path, json.dumps(rounded(row)) + "\n")
            yield row


def row_of(ways: Ways, way: str, place: Place) -> Json:
    """Return what came of a way."""
    mixed, trained = ways.mixed, ways.trained(way)
    inputs, classes = mixed.task.parts["test"]
    has_guesses = way.startswith(PSEUDO)
    parts = [ways.fine, trained] if has_guesses else [trained]
    row = {
        "set": place.name,
        "model": mixed.task.model,
        "percent": place.percent,
        "seed": place.seed,
        "way": way,
        "samples": sizes(mixed),
        "val": trained.val,
        "test": scores(outputs(trained.network, inputs)[0], classes, mixed.hierarchy),
        "best_step": trained.best_step,
        "steps": trained.steps,
        "steps_in_all": sum(part.steps for part in parts),
        "seconds_in_all": sum(part.seconds for part in parts),
        "accuracies": trained.accuracies,
    }
    if has_guesses:
        is_right = (ways.guesses == mixed.classes)[~mixed.is_fine]
        row["guessed_right"] = float(is_right.float().mean())
    return row


def sizes(mixed: Mixed) -> Json:
    """Return how many samples there are of each kind."""
    fine = int(mixed.is_fine.sum())
    held = {part: len(mixed.task.parts[part][1]) for part in ("val", "test")}
    return {"fine": fine, "coarse": len(mixed.is_fine) - fine, **held}


def line(row: Json) -> str:
    """Return a row in a line."""
    test = {name: f"{100 * value:.2f}" for name, value in row["test"].items()}
    return (
        f"{row['set']} {row['percent']}% seed {row['seed']} {row['way']}: validation "
        f"{100 * row['val']:.2f}, test {test['classes']}, at the groups {test['groups']}, best "
        f"step {row['best_step']} of {row['steps']}, {row['seconds_in_all']:.0f} s"
    )


# ------------------------------------------------------------------------------ all rows


def train_place(place: Place, folder: Path, data: Path) -> None:
    """Train what is missing of a place, in a process of its own."""
    if any(not place.file(folder, way).is_file() for way in WAYS):
        for row in write_rows(place.samples(data), place, folder):
            print(line(row), flush=True)


def train_all(places: Sequence[Place], folder: Path, data: Path, jobs: int) -> None:
    """Train all that is missing, so many trainings at a time, each by one thread."""
    # A fork would share torch's threads and locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, torch.set_num_threads, (1,)) as pool:
        futures = [pool.submit(train_place, place, folder, data) for place in places]
        for future in futures:
            future.result()


def settings() -> Json:
    """Return what all rows of a folder have in common."""
    modules = (coarse2fine, torch, np, scipy)
    sets = {
        name: {"model": one.model, "size": one.size, "recipe": dict(recipe_in_steps(one.model))}
        for name, one in SETS.items()
    }
    versions = {"python": platform.python_version()}
    versions.update((module.__name__, module.__version__) for module in modules)
    return {"sets": sets, "val_share": VAL_SHARE, "versions": versions}


def begin(folder: Path) -> Json:
    """Make the folder, or make sure that its rows are of the same settings; return these."""
    mine, path = settings(), folder / "settings.json"
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        write_atomically(path, json.dumps(mine) + "\n")
    elif (found := parse_json(path)) != mine:
        differ = ", ".join(key for key in mine if found.get(key) != mine[key])
        raise SystemExit(f"{folder} holds rows of other {differ}; give another folder by --out.")
    return mine


def collected(places: Sequence[Place], folder: Path, mine: Json) -> Json:
    """Return all rows, and what they were made with."""
    files = [place.file(folder, way) for place in places for way in WAYS]
    return {
        "command": command(),
        "seeds": sorted({place.seed for place in places}),
        "settings": mine,
        "runs": [parse_json(file) for file in files],
    }


def together(files: Sequence[Path]) -> Json:
    """Return the rows of several files, of other seeds each, as one."""
    parts = [parse_json(file) for file in files]
    rows = [row for part in parts for row in part["runs"]]
    seeds = [seed for part in parts for seed in part["seeds"]]
    if len(seeds) != len(set(seeds)):
        raise SystemExit("two of the files have the same seed; give those of other seeds.")
    settings = [{**part["settings"], "versions": None} for part in parts]
    if any(other != settings[0] for other in settings):
        raise SystemExit("the files are of other settings; give those of the same.")
    return {**parts[0], "seeds": sorted(seeds), "runs": rows}


def command() -> str:
    """Return the command, with placeholders for the folders of this machine."""
    words = " ".join(["python benchmarks/any_level.py", *sys.argv[1:]])
    return re.sub(r"(--data|--out)[ =]\S+", lambda match: f"{match[1]} DIR", words)


def run(options: argparse.Namespace) -> Json:
    """Train what is missing, and return and write all rows."""
    if options.data is None or options.out is None:
        raise SystemExit(f"--data (or the variable {VARIABLE}) and --out are needed to train.")
    seeds, names, percents = options.seeds, options.sets, options.percents
    # Seed by seed, so that a command that is cut short leaves whole seeds.
    places = [Place(name, part, seed) for seed in seeds for name in names for part in percents]
    mine = begin(options.out)
    train_all(places, options.out, Path(options.data), options.jobs)
    content = collected(places, options.out, mine)
    write_atomically(options.out / "any-level.json", json.dumps(content) + "\n")
    return content


def percentage(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 100:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 99. Got {text!r}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get(VARIABLE), help="the folder of the sets")
    parser.add_argument("--out", type=Path, help="where rows go, and any-level.json in the end")
    parser.add_argument(
        "--from", dest="files", type=Path, nargs="+", help="only print the table of these files"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--percents", type=percentage, nargs="+", default=[10, 30], help="fine labels"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="how many trainings at a time")
    options = parser.parse_args()
    print(report(together(options.files) if options.files else run(options)))


if __name__ == "__main__":
    main()
