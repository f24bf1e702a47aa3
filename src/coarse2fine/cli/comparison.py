"""Run `fit` for a person or a program to watch, and report what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..runs.config import Config
from ..runs.directory import comparison_settings, is_begun_comparison
from ..runs.result import Result
from ..training.fit import fit
from ..training.progress import JsonLines, TensorBoard, TerminalProgress, Watcher, Watchers
from .process import is_first, say, show


class Beginning(Watcher):
    """Shows the settings, all filled in, when the first training begins.

    Args:
        as_json: Whether as a line of JSON.

    Attributes:
        path: The directory that holds all trainings; None before the first begins.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.path: Path | None = None

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:  # noqa: ARG002
        """Note where everything is, and show the settings."""
        if self.path is not None:
            return
        self.path = next(folder.parent for folder in path.parents if folder.name == f"seed-{seed}")
        settings = comparison_settings(self.path)
        if self.as_json:
            show(json.dumps({"event": "config", "path": str(self.path), "config": settings}))
        else:
            say(f"{Config.from_dict(settings)}\n\nin {self.path}:")


def compare(
    data: str, *, as_json: bool = False, tensorboard: bool = False, **options: Any
) -> Result:
    """Return the result of `fit`, after telling a person or a program how it goes.

    Args:
        data: See `fit`.
        as_json: Whether to tell in lines of JSON. Defaults to False.
        tensorboard: Whether to write for TensorBoard too. Defaults to False.
        **options: See `fit`.
    """
    beginning = Beginning(as_json=as_json)
    watchers: list[Watcher] = []
    if is_first():
        watchers = [beginning, JsonLines() if as_json else TerminalProgress()]
        watchers += [TensorBoard()] if tensorboard else []
    watcher = Watchers(watchers)
    try:
        return fit(data, watcher=watcher, **options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_how_to_go_on(beginning.path or options.get("out"))) from None
    finally:
        watcher.close()


def report(result: Result, *, as_json: bool) -> None:
    """Show what came out, and where it lies."""
    if as_json:
        content = {"event": "result", "path": str(result.path), **result.to_dict()}
        show(json.dumps(content))
        return
    show(f"{result}\n")
    levels = result.level_table()
    if levels:
        show(f"test accuracy at each level of the first seed's hierarchy:\n{levels}\n")
    path = result.path
    show(f"{path} holds it all; c2f report {path} shows it.")


def _how_to_go_on(path: Path | None) -> str:
    if path is None or not is_begun_comparison(path):
        return "stopped before training began"
    return f"stopped; the same command goes on from the last checkpoint in {path}"
