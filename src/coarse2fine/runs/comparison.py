"""The directory of a comparison: whether it may be gone on with, and what it holds in the end."""

from __future__ import annotations

from pathlib import Path

from ..errors import RunError
from ..methods import PLAIN
from .begun import has_format, methods_trained, stored_epochs
from .best import keep_best
from .config import Config, settings_affecting
from .directory import COMPARISON, CONFIG, RESULT, VERSION
from .find import seed_folder, seed_folders
from .guards import check_same
from .result import Result
from .writer import provenance, write_json


class ComparisonWriter:
    """The directory of a comparison: its settings, the runs of each seed, and its result.

    Args:
        path: The directory.
        config: Every setting filled in.
        is_writer: Whether this process writes.
    """

    def __init__(self, path: Path, config: Config, is_writer: bool) -> None:
        self.path, self.config, self.is_writer = path, config, is_writer
        self._content = {"format": COMPARISON, "version": VERSION, **provenance(config)}

    def begin(self) -> None:
        """Store the settings, or check that they are as before; seeds and epochs may be added."""
        is_longer = (stored_epochs(self.path) or 0) < (self.config.epochs or 0)
        if (self.path / CONFIG).is_file():
            self._check_same(is_longer)
        if not self.is_writer:
            return
        write_json(self.path / CONFIG, self._content)
        are_there = all(seed_folder(self.path, seed).is_dir() for seed in self.config.seeds)
        if is_longer or not are_there:
            (self.path / RESULT).unlink(missing_ok=True)  # it lacks what is to come

    def _check_same(self, is_longer: bool) -> None:
        """Raise a `RunError` where something was trained that other settings have a say in."""
        methods = methods_trained(self.path) if has_format(self.path, COMPARISON) else None
        if methods == set():
            return
        others = settings_affecting("comparison", "curriculum") if methods == {PLAIN} else ()
        longer = ("epochs",) if is_longer else ()
        check_same(self.path, self._content, but=("seeds", "workers", *others, *longer))
        left = seed_folders(self.path).keys() - set(self.config.seeds)
        if is_longer and left:
            raise RunError(
                f"{self.path} also has the seeds {', '.join(map(str, sorted(left)))}, trained for "
                f"fewer than {self.config.epochs} epochs; give them too by seeds= to resume all, "
                f"or choose another folder."
            )

    def finish(self, result: Result) -> None:
        """Store what came out, and a copy of the run to use."""
        if self.is_writer:
            keep_best(self.path, result.best)
            write_json(self.path / RESULT, {**self._content, **result.to_dict()})
