"""Models and samples of several finished runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..data import Data, Source, load_data
from ..errors import RunError
from .config import GIVEN, Config
from .directory import DataFacts, Run
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
        self._sources: dict[str, Source] = {}

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
        source = self._source(config, facts)
        found = divided_as_in_training(source, config, facts.fingerprint)
        if found is None:
            raise RunError(f"the data {config.data} are not those that the run was trained with.")
        return found

    def _source(self, config: Config, facts: DataFacts) -> Source:
        """Return the samples before they are divided, which several runs may share."""
        options: dict[str, Any] = {
            # Labels that make a tree by themselves are matched by name.
            "class_names": None if config.has_tree_of_labels else facts.class_names,
            "image_size": config.image_size,
            "target": config.target,
            "text": config.text,
            "columns": facts.columns or None,
        }
        key = json.dumps([config.data, options, facts.labels], sort_keys=True)
        if key not in self._sources:
            self._sources[key] = load_data(
                config.data, folder=self._folder, hierarchy=facts.tree, **options
            )
        return self._sources[key]
