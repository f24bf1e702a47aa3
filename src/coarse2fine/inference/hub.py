"""An exported model on the Hugging Face hub.

HubClassifier("photos-model").push_to_hub("you/photos")
classifier = HubClassifier.from_pretrained("you/photos")
"""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RunError, require
from ..runs.identity import Factory
from .classifier import Classifier
from .folder import export_files, is_export
from .load import load_classifier

for part in ("huggingface_hub", "huggingface_hub.hub_mixin"):  # imported only on use
    require(part, "hub")
from huggingface_hub import ModelHubMixin, snapshot_download  # noqa: E402


class HubClassifier(
    ModelHubMixin, library_name="coarse2fine", tags=["coarse2fine", "curriculum-learning"]
):
    """An exported model that goes to the hub and comes from there.

    It has `push_to_hub`, `save_pretrained` and `from_pretrained` of
    `huggingface_hub.ModelHubMixin`. Nothing that is downloaded is unpickled or imported. A model
    of your own is named to ``from_pretrained(..., model="package.module:callable")``.

    Args:
        folder: That `export_model` or ``c2f export`` wrote.

    Attributes:
        folder: The same; of a model from the hub its place in the cache.
    """

    # A downloaded config sets whatever arguments the constructor has, so it must never have one
    # that names code.
    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._factory: Factory | None = None
        if not is_export(self.folder):
            raise RunError(f"{folder} is not a folder that c2f export wrote.")

    @cached_property
    def classifier(self) -> Classifier:
        """The model with its preprocessing, class names and hierarchy."""
        return load_classifier(self.folder, model=self._factory)

    def predict(self, inputs: Any, batch_size: int | None = None) -> list[str]:
        """Return the name of the most probable class of each sample, see `Classifier.predict`."""
        return self.classifier.predict(inputs, batch_size)

    def predict_proba(self, inputs: Any, batch_size: int | None = None) -> NDArray[np.float32]:
        """Return the probability of each class, see `Classifier.predict_proba`."""
        return self.classifier.predict_proba(inputs, batch_size)

    def answer(self, inputs: Any, batch_size: int | None = None) -> list[str]:
        """Return the finest class or cluster that the model is sure of, see `Classifier.answer`."""
        return self.classifier.answer(inputs, batch_size)

    def _save_pretrained(self, save_directory: Path) -> None:
        for file in export_files(self.folder):
            if file.is_file():
                shutil.copyfile(file, save_directory / file.name)

    @classmethod
    def _from_pretrained(
        cls,
        *,
        model_id: str,
        model: Factory | None = None,
        folder: Any = None,  # noqa: ARG003, only a downloaded config could give it
        **download: Any,
    ) -> HubClassifier:
        found = Path(model_id)
        if not found.is_dir():
            names = [file.name for file in export_files(Path())]
            found = Path(snapshot_download(model_id, allow_patterns=names, **download))
        classifier = cls(found)
        classifier._factory = model
        return classifier
