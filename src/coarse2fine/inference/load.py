"""A classifier from a run, or from an exported folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.sets.imagenet import SHARE
from ..errors import RunError
from ..runs.best import described, find_best
from ..runs.directory import BEST, Run
from ..runs.find import SEED, runs_of_seed
from ..runs.restore import Trained, load_trained
from ..runs.result import RunResult
from .classifier import Classifier
from .folder import is_export, load_export
from .preprocessing import Preprocessing

if TYPE_CHECKING:
    from torch import nn

    from ..hierarchy import Hierarchy


def load_classifier(
    path: str | Path,
    method: str | None = None,
    seed: int | None = None,
    model: str | Callable[..., nn.Module] | None = None,
    *,
    text: str | None = None,
) -> Classifier:
    """Return a trained model with its preprocessing, class names and hierarchy.

    Args:
        path: Of a run, of a comparison, of which the run is taken that validates best, or of a
            folder that `export_model` wrote.
        method: Of a comparison's runs, such as ``"baseline"``. Defaults to None: the one that
            validates best.
        seed: Of a comparison's runs. Defaults to None: the one that validates best.
        model: What makes the model, a callable or ``package.module:callable``. Defaults to
            None: the run says it, which is enough where the model is one of ours or was
            trained by this process.
        text: The column of the text in tables. Defaults to None: that of the training, or
            one that is called so.

    Raises:
        RunError: There is no such run, it is not done, or its model cannot be made again.
    """
    path = Path(path)
    if is_export(path):
        if method is not None or seed is not None:
            raise RunError(f"{path} is one exported model: it has no method or seed to choose.")
        trained, found = load_export(path, model), Run(path)
        hierarchy = found.hierarchy() if found.has_hierarchy else None
        description = f"the exported model {path}"
    else:
        run = find_best(path, method, seed)
        trained = load_trained(run.path, model)
        hierarchy, description = _hierarchy(run), described(run)
    names = trained.class_names
    if hierarchy is not None:
        hierarchy = hierarchy.for_classes(names)
    preprocessing = preprocessing_of(trained, text)
    return Classifier(trained.model, preprocessing, names, hierarchy, description)


def preprocessing_of(trained: Trained, text: str | None = None) -> Preprocessing:
    """Return how the inputs of a trained model are made.

    Args:
        trained: The model.
        text: The column of the text in tables. Defaults to None: that of the training.
    """
    config = trained.config
    return Preprocessing(
        kind=trained.kind,
        input_shape=trained.input_shape,
        transform=trained.transform,
        columns=trained.columns,
        text=text or config.text,
        target=config.target,
        share=SHARE if config.data == "imagenet" else 1.0,
    )


def _hierarchy(run: RunResult) -> Hierarchy | None:
    """Return the hierarchy of a run or, as a baseline has none, of another run of its seed."""
    for path in (run.path, *_companions(run)):
        if Run(path).has_hierarchy and Run(path).is_done:
            return Run(path).hierarchy()
    return None


def _companions(run: RunResult) -> list[Path]:
    """Return the compared runs of the same seed; none where a run lies by itself."""
    folder = run.path.resolve().parent
    if run.path.name == BEST:
        folder /= f"seed-{run.seed}"
    is_compared = SEED.fullmatch(folder.name) and folder.is_dir()
    return list(runs_of_seed(folder).values()) if is_compared else []
