"""Models and samples of several finished runs."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from ..data import Data, Source, load_data
from ..errors import RunError
from .config import GIVEN
from .directory import Run
from .identity import Factory, stored_config
from .restore import Trained, divided_as_in_training, load_trained


class Restorer:
    """Makes the models of runs again, and reads their samples again, each source once.

    Args:
        folder: Where a named data set lies. Defaults to None: the environment variable
            COARSE2FINE_DATA.
        model: What makes the models, see `load_trained`. Defaults to None: what each run names.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None = None, model: Factory | None = None
    ) -> None:
        self._folder = None if folder is None else os.fspath(folder)
        self._model = model
        self._source = cache(self._load)

    def trained(self, path: Path) -> Trained:
        """Return the model of a finished run.

        Args:
            path: The run directory.

        Raises:
            RunError: As `load_trained`.
        """
        return load_trained(path, self._model)

    def data(self, run: Run) -> Data:
        """Return the samples of a run, divided as in its training.

        Args:
            run: A run, or an export of one.

        Raises:
            RunError: The data cannot be read again, or are not the same any more: then samples
                of the training could be among those of the test.
            ValueError: As `load_data`, as for the next three; or settings that are damaged.
            TypeError: As `load_data`.
            OSError: As `load_data`.
            MissingExtraError: As `load_data`.
        """
        config, facts = stored_config(run.config.settings), run.config.data
        if config.data == GIVEN:
            raise RunError("the data were Python objects, which cannot be read again.")
        source = self._source(
            config.data,
            config.image_size,
            config.target,
            config.text,
            facts.class_names,
            facts.columns,
        )
        found = divided_as_in_training(source, config, facts.fingerprint)
        if found is None:
            raise RunError(f"the data {config.data} are not those that the run was trained with.")
        return found

    def _load(
        self,
        data: str,
        image_size: int | None,
        target: str | None,
        text: str | None,
        class_names: tuple[str, ...],
        columns: tuple[str, ...],
    ) -> Source:
        return load_data(
            data,
            class_names=class_names,
            folder=self._folder,
            image_size=image_size,
            target=target,
            text=text,
            columns=columns or None,
        )
