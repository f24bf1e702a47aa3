"""Show a person or a program how `fit` goes, and what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..runs.config import Config
from ..runs.directory import is_begun_comparison
from ..runs.result import Result
from ..runs.tables import level_rows, told
from ..training.progress import JsonLines, TensorBoard, Watcher, Watchers
from ..training.terminal import TerminalProgress
from .process import is_first, say, show


class Beginning(Watcher):
    """Shows the settings, all filled in, when the first training begins.

    Args:
        as_json: Whether as a line of JSON.

    Attributes:
        path: The directory that holds all trainings; None before it is known.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.path: Path | None = None
        self._config: Config | None = None

    def compare(self, path: Path, config: Config) -> None:
        """Note where everything is, and the settings."""
        self.path, self._config = path, config

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:  # noqa: ARG002
        """Show the settings, once."""
        config, self._config = self._config, None
        if config is None:
            return
        if self.as_json:
            content = {"event": "config", "path": str(self.path), "config": config.to_dict()}
            show(json.dumps(content))
        else:
            say(f"{config}\n\nin {self.path}:")


@contextmanager
def watching(
    out: Path | None, *, as_json: bool = False, tensorboard: bool = False
) -> Iterator[Watcher]:
    """Give what tells a person or a program how `fit` goes, and say how to resume after a stop.

    Args:
        out: Where it is kept, if that is known.
        as_json: Whether to tell in lines of JSON. Defaults to False.
        tensorboard: Whether to write for TensorBoard too. Defaults to False.
    """
    beginning = Beginning(as_json=as_json)
    watchers: list[Watcher] = []
    if is_first():
        watchers = [beginning, JsonLines() if as_json else TerminalProgress()]
        watchers += [TensorBoard()] if tensorboard else []
    watcher = Watchers(watchers)
    try:
        yield watcher
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_how_to_go_on(beginning.path or out)) from None
    finally:
        watcher.close()


def report(result: Result, *, as_json: bool) -> None:
    """Show what came out, and where it lies."""
    if as_json:
        content = {"event": "result", "path": str(result.path), **result.to_dict()}
        show(json.dumps(content))
        return
    show(*told(result), "")
    levels = level_rows(result)
    if levels:
        show("test accuracy at each level of the first seed's hierarchy:", levels, "")
    path = result.path
    commands = f"c2f report {path} shows it, c2f predict {path} … uses the best model"
    show(f"{path} holds it all; {commands}.")


def _how_to_go_on(path: Path | None) -> str:
    if path is None or not is_begun_comparison(path):
        return "stopped before training began"
    return f"stopped; the same command resumes from the last checkpoint in {path}"
