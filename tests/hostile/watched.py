"""Open hostile files by all that reads such files, and note what the interpreter is made to do.

    python tests/hostile/watched.py FOLDER FILES.json OUT.json

It is a process of its own, as an audit hook cannot be taken away again.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch import nn

from coarse2fine import Hierarchy, RunResult, write_report
from coarse2fine.checkpoints import read_class_vectors
from coarse2fine.cli.app import run as run_command
from coarse2fine.data import load_data
from coarse2fine.data.sets.cifar import load_cifar10, load_cifar100
from coarse2fine.data.sets.pickles import plain_values
from coarse2fine.data.sources.hub import load_hub
from coarse2fine.integrations.lightning import hierarchy_of_checkpoint
from coarse2fine.runs.checkpoint import load_checkpoint
from coarse2fine.runs.hierarchies import read_hierarchy
from coarse2fine.runs.restore import load_trained

# What starts a process, opens a connection, or finds what an unrestricted pickle names.
FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen",
             "socket.connect", "socket.bind", "pickle.find_class", "marshal.load",
             "webbrowser.open", "shutil.rmtree")  # fmt: skip
MARKER = "hostile-marker"
Reader = Callable[[Path], Any]


class Watch:
    """Notes what is forbidden, and what is written to outside the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.events, self.is_on = str(folder), [], False
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_on and (event in FORBIDDEN or self._is_hostile(event, arguments)):
            self.events.append(f"{event} {arguments!r}"[:200])

    def _is_hostile(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, int):  # it is open already
                return False
            writes = set("wax+") & set(mode or "") or (flags or 0) & (os.O_WRONLY | os.O_RDWR)
            return bool(writes) and not str(path).startswith((self.folder, os.devnull))
        if event == "exec":  # as every import does; ours tell of the marker
            return MARKER in repr(arguments[0].co_consts)
        return event == "import" and arguments[0].partition(".")[0] in ("evil", "hub", "script")

    @contextlib.contextmanager
    def on(self) -> Iterator[list[str]]:
        self.events, self.is_on = [], True
        try:
            yield self.events
        finally:
            self.is_on = False


class CommandError(Exception):
    """What a command of c2f said before it ended with the exit code of errors."""


def command(*words: Any) -> None:
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        code = run_command([str(word) for word in words])
    if code:
        raise CommandError(f"{code}: {output.getvalue().splitlines()[-1]}")


def readers(out: Path) -> dict[str, dict[str, Reader]]:
    """All that reads files, by what hostile files pose as."""
    page, export, figure = out / "page.html", out / "model.safetensors", out / "figure.svg"
    short = ("train", "shapes:60", "--epochs", 1)
    run: dict[str, Reader] = {
        "load_trained": load_trained,
        "RunResult.model": lambda path: RunResult.load(path).model(),
        "predictions": lambda path: RunResult.load(path).predictions(),
        "read_hierarchy": read_hierarchy,
        "load_checkpoint": lambda path: load_checkpoint(path / "checkpoint"),
        "write_report": lambda path: write_report(path, page),
        "c2f evaluate": lambda path: command("evaluate", path, "shapes:60"),
        "c2f export": lambda path: command("export", path, "--out", export),
        "c2f report": lambda path: command("report", path, "--out", page),
        "c2f figure": lambda path: command("figure", "curves", path, "--out", figure),
        "c2f hierarchy": lambda path: command("hierarchy", path),
        "c2f train --out": lambda path: command(*short, "--out", path),
    }  # fmt: skip
    foreign: dict[str, Reader] = {
        **{name: run[name] for name in ("load_trained", "RunResult.model", "read_hierarchy")},
        **{name: run[name] for name in ("write_report", "c2f evaluate", "c2f export")},
        "within": _within,
        "c2f train": lambda path: command(*short, "--hierarchy", path, "--out", out / "x"),
    }  # fmt: skip
    return {
        "pickle": {"plain_values": lambda path: plain_values(path.read_bytes(), str(path))},
        "cifar": {
            "load_cifar": lambda path: _cifar(path)(path),
            "without checksums": lambda path: _cifar(path)(path, checksums={}),
        },
        "checkpoint": {
            "read_class_vectors": read_class_vectors,
            "a named head": lambda path: read_class_vectors(path, "fc"),
            "read_hierarchy": read_hierarchy,
            "Lightning": lambda path: hierarchy_of_checkpoint(path, nn.Linear(3, 4), None),
        },
        "matrix": {name: run[name] for name in ("read_hierarchy", "c2f hierarchy")},
        "data": {"load_data": load_data},
        "hub": {"load_hub": lambda path: load_hub(str(path), folder=out / "hub")},
        "run": run,
        "model": foreign,
        "naive": {"pickle.loads": _naive},
        "other": {
            "read_hierarchy": read_hierarchy,
            "Hierarchy.load": Hierarchy.load,
            "load_data": load_data,
            "c2f hierarchy edit": lambda path: command("hierarchy", "edit", path, "--no-browser"),
            "c2f figure": lambda path: command("figure", "hierarchy", path, "--out", figure),
        },
    }  # fmt: skip


def _cifar(path: Path) -> Callable[..., Any]:
    return load_cifar10 if path.parent.name == "cifar10" else load_cifar100


def _within(path: Path) -> None:
    """Evaluate a run from within its own folder, where modules are looked for first."""
    before = Path.cwd()
    os.chdir(path)
    try:
        command("evaluate", ".", "shapes:60")
    finally:
        os.chdir(before)


def _naive(path: Path) -> None:
    """Load a pickle as one should not."""
    loaded = pickle.loads(path.read_bytes())
    if isinstance(loaded, subprocess.Popen):
        loaded.wait(timeout=60)


def outcome(watch: Watch, read: Reader, path: Path, marker: Path) -> dict[str, Any]:
    """What became of a file: the error, what was noted, memory taken, and whether it ran."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = None
    with watch.on() as events:
        try:
            read(path)
        except Exception as raised:
            error = raised
    found = {
        "error": type(error).__name__ if error else None,
        "message": str(error),
        "events": list(events),
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024,
        "ran": marker.exists(),
    }
    marker.unlink(missing_ok=True)
    return found


def main(folder: Path, files: Path, result: Path) -> None:
    (folder / "out").mkdir(exist_ok=True)
    marker, watch, found = folder / MARKER, Watch(folder), {}
    warnings.simplefilter("ignore")
    for kind, paths in json.loads(files.read_text()).items():
        for name, read in readers(folder / "out")[kind].items():
            for path in map(Path, paths):
                key = f"{kind} | {name} | {path.relative_to(folder)}"
                found[key] = outcome(watch, read, path, marker)
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
