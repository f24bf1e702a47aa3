"""A comparison that was begun: what has been trained in it, and what is left if it fails.

Settings decide which runs may go on only where something has been trained. Before that, a
directory holds nothing but settings, which the next command may replace, and which are removed
where a command fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._util.files import parse_json, writing
from .checkpoint import has_checkpoints
from .directory import CHECKPOINT, COMPARISON, CONFIG, HIERARCHY, METRICS, RUN, Run
from .find import runs_begun
from .guards import LOCK, locked


def is_trained(path: Path) -> bool:
    """Whether a run directory holds anything to go on from or to look at."""
    run = Run(path)
    return run.is_done or run.epochs_done > 0 or has_checkpoints(path / CHECKPOINT)


def methods_trained(path: Path) -> set[str]:
    """Return by which methods anything has been trained in a comparison.

    Whoever goes on with a run whose config is damaged says so; here its method has no name.
    """
    configs = [_content(run / CONFIG) for run in runs_begun(path) if is_trained(run)]
    return {str(found.get("method", "")) if isinstance(found, dict) else "" for found in configs}


def has_format(path: Path, kind: str) -> bool:
    """Whether a directory has a config that this package wrote.

    Args:
        path: The directory.
        kind: ``RUN`` or ``COMPARISON``.
    """
    content = _content(path / CONFIG)
    return isinstance(content, dict) and content.get("format") == kind


def stored_epochs(path: Path) -> int | None:
    """Return the most epochs that a run or comparison was begun with; None where none are said."""
    content = _content(path / CONFIG)
    settings = content.get("config") if isinstance(content, dict) else None
    epochs = settings.get("epochs") if isinstance(settings, dict) else None
    return epochs if type(epochs) is int else None


@contextmanager
def kept_once_trained(path: Path) -> Iterator[None]:
    """Keep a comparison's directory for this process, and remove it if nothing was trained there.

    Args:
        path: The directory; made where it does not exist.
    """
    made = [place for place in (path, *path.parents) if not place.exists()]
    try:
        with locked(path):
            try:
                yield
            except BaseException:
                _remove_untrained(path)
                raise
    except BaseException:
        _remove_empty(made)
        raise


def _remove_untrained(path: Path) -> None:
    """Remove the runs that were only begun, and the comparison if it has no others."""
    runs = runs_begun(path)
    for run in runs:
        if has_format(run, RUN) and not is_trained(run):
            _remove_files(run / name for name in (METRICS, HIERARCHY, LOCK, CONFIG))
            _remove_empty((run / CHECKPOINT, run, run.parent, run.parent.parent))
    if has_format(path, COMPARISON) and not any(map(is_trained, runs)):
        _remove_files((path / CONFIG, path / LOCK))


def _remove_files(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(PermissionError) if os.name == "nt" else writing(file):  # a lock that is held
            file.unlink(missing_ok=True)


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # it holds something else, or is gone already
            folder.rmdir()


def _content(file: Path) -> Any:
    try:
        return parse_json(file) if file.is_file() else None
    except ValueError:  # whoever goes on with it says what is wrong
        return None
