"""Goes through functions and commands without a library, and prints what each ends in.

python extras_walk.py FOLDER PLAN, where PLAN is the JSON of {library: [entry, …]}. Each library
is left out in a process of its own, forked from one that has torch.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch


class Without:
    """A finder of modules to which some libraries are not installed.

    It stands in the place of the real one, so that asking for them finds nothing.
    """

    def __init__(self, finder: Any, libraries: Sequence[str]) -> None:
        self.finder, self.libraries = finder, libraries

    def find_spec(self, fullname: str, *rest: Any) -> Any:
        is_missing = fullname.partition(".")[0] in self.libraries
        return None if is_missing else self.finder.find_spec(fullname, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)


SHORT: dict[str, Any] = {
    "epochs": 2,
    "curriculum_epochs": 1,
    "batch_size": 16,
    "accelerator": "cpu",
}
PAIR = torch.arange(120.0).view(60, 2), torch.arange(60) % 3
ARGUMENTS = {
    "demo": [],
    "data": ["rows.csv"],
    "train": ["rows.csv", "--epochs", "2", "--curriculum-epochs", "1", "--batch-size", "16"],
    "train --dry-run": ["rows.csv"],
    "train --tensorboard": ["rows.csv", "--epochs", "2", "--curriculum-epochs", "1"],
    "runs": ["RUN"],
    "report": ["RUN"],
    "figure": ["curves", "RUN"],
    "hierarchy": ["RUN"],
    "hierarchy edit": ["hierarchy.json", "--no-browser"],
    "hierarchy compare": ["RUN/seed-0/baseline", "RUN/seed-0/continuous"],
    "evaluate": ["RUN", "rows.csv"],
    "predict": ["RUN", "rows.csv"],
    "export": ["RUN", "--out", "exported"],
    "export --onnx": ["RUN"],
    "paper": ["shapes-metrics", "--scale", "small", "--dry-run"],
}


def new_folder() -> str:
    return tempfile.mkdtemp(dir=".")


def attribute(name: str) -> None:
    import coarse2fine

    getattr(coarse2fine, name)


def fit(data: Any) -> None:
    from coarse2fine import fit

    fit(data, out=new_folder(), **SHORT)


def load(data: str) -> None:
    from coarse2fine.data import load_data

    load_data(data, image_size=8)


def hub() -> None:
    from coarse2fine.data.sources.hub import load_hub

    load_hub("hub")


def plot(what: str) -> None:
    from coarse2fine import Hierarchy, Result

    (Hierarchy.load("hierarchy.json") if what == "hierarchy" else Result.load("RUN")).plot()


def report() -> None:
    from coarse2fine import write_report

    write_report(["RUN"], "page.html")


def classify() -> None:
    from coarse2fine import load_classifier

    load_classifier("RUN").predict([[1.0, 2.0]])


def pretrained() -> None:
    import coarse2fine.inference.hub  # noqa: F401


def approximate_clustering() -> None:
    from coarse2fine import cluster_embeddings

    cluster_embeddings(torch.rand(9, 3), approximate=True)


def dask() -> None:
    from coarse2fine.executors import workers

    with workers("tcp://127.0.0.1:1"):
        pass


def integration(name: str) -> None:
    __import__(f"coarse2fine.integrations.{name}")


def command(words: str) -> None:
    """Run c2f; its errors are exit code 2 and a line, which is raised as it is."""
    with contextlib.suppress(ImportError):
        from coarse2fine import editor
        from coarse2fine.cli import demo

        demo.DATA, demo.SEEDS = "shapes:120", "1"
        demo.SETTINGS = {**SHORT, "image_size": 24, "epochs": 4, "max_levels": 2}
        editor.EditorServer.serve_forever = lambda *_, **__: None  # type: ignore[method-assign]
    from coarse2fine.cli import main

    name, _, option = words.partition(" --")
    sys.argv = ["c2f", *name.split(), *ARGUMENTS[words], *([f"--{option}"] if option else [])]
    if name in ("train", "demo"):
        sys.argv += ["--out", new_folder()]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(said.getvalue().splitlines()[-1]) from None


ENTRIES: dict[str, Callable[[], None]] = {
    "fit on tensors": lambda: fit(PAIR),
    "fit on a table": lambda: fit("rows.csv"),
    "load a folder of images": lambda: load("photos"),
    "load images in parquet": lambda: load("images.parquet"),
    "load from the hub": hub,
    "Hierarchy.plot": lambda: plot("hierarchy"),
    "Result.plot": lambda: plot("result"),
    "write_report": report,
    "predict in Python": classify,
    "a classifier of the hub": pretrained,
    "a Dask cluster": dask,
    "approximate clustering": approximate_clustering,
    **{
        f"integrations.{name}": lambda name=name: integration(name)  # type: ignore[misc]
        for name in ("lightning", "transformers", "sklearn", "keras", "torchmetrics")
    },
    **{f"c2f {words}": lambda words=words: command(words) for words in ARGUMENTS},  # type: ignore[misc]
}


def ending(entry: str) -> list[str]:
    """Return the type and the message of what an entry ends in; none if it ends well."""
    try:
        ENTRIES[entry]() if entry in ENTRIES else attribute(entry)
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return []


def walked(libraries: str, entries: Sequence[str]) -> dict[str, list[str]]:
    """Return what entries end in without some libraries, from a process that has never had them."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        sys.meta_path[:] = [Without(finder, libraries.split()) for finder in sys.meta_path]  # type: ignore[misc]
        with os.fdopen(writing, "w") as pipe:
            json.dump({entry: ending(entry) for entry in entries}, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found: dict[str, list[str]] = json.load(pipe)
    os.waitpid(child, 0)
    return found


if __name__ == "__main__":
    os.chdir(Path(sys.argv[1]))
    os.environ["KERAS_BACKEND"] = "torch"
    torch.set_num_threads(1)
    plan = json.loads(sys.argv[2])
    print(json.dumps({libraries: walked(libraries, plan[libraries]) for libraries in plan}))  # noqa: T201
