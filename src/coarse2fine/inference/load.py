"""A classifier from a run or an export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.sets.imagenet import SHARE
from ..runs.best import described, find_best
from ..runs.directory import BEST, Run
from ..runs.find import SEED, runs_of_seed, seed_folder
from ..runs.restore import Trained, load_trained
from ..runs.result import RunResult
from .classifier import Classifier
from .folder import exported_levels, exported_run, is_export, load_export
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
        path: Of a run, of an export, or of a comparison, of which the run is taken that
            validates best.
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
    run, trained = load_chosen(Path(path), method, seed, model)
    hierarchy = hierarchy_of(run)
    return Classifier(
        trained.model,
        preprocessing_of(trained, text),
        trained.class_names,
        hierarchy,
        described(run),
        exported_levels(run.path, hierarchy),
    )


def load_chosen(
    path: Path,
    method: str | None = None,
    seed: int | None = None,
    model: str | Callable[..., nn.Module] | None = None,
) -> tuple[RunResult, Trained]:
    """Return the run or export that is meant, and its model; see `load_classifier`."""
    if is_export(path) and method is None and seed is None:
        return exported_run(path), load_export(path, model)
    run = find_best(path, method, seed)
    return run, load_trained(run.path, model)


def preprocessing_of(trained: Trained, text: str | None = None) -> Preprocessing:
    """Return how the inputs of a trained model are made.

    Args:
        trained: The model.
        text: The column of the text in tables. Defaults to None: that of the training.
    """
    config, target = trained.config, trained.config.target
    return Preprocessing(
        kind=trained.kind,
        input_shape=trained.input_shape,
        transform=trained.transform,
        columns=trained.columns,
        text=text or config.text,
        target=target if target is None or isinstance(target, str) else target[-1],
        share=SHARE if config.data == "imagenet" else 1.0,
    )


def hierarchy_of(run: RunResult) -> Hierarchy | None:
    """Return the hierarchy of a run or, as a baseline has none, of another run of its seed.

    Args:
        run: A run, or an export of one.
    """
    names = Run(run.path).config.data.class_names
    for path in (run.path, *(other for other in _companions(run) if Run(other).is_done)):
        if Run(path).has_hierarchy:
            return Run(path).hierarchy().for_classes(names)
    return None


def _companions(run: RunResult) -> list[Path]:
    """Return the compared runs of the same seed; none where a run lies by itself."""
    folder = run.path.resolve().parent
    if run.path.name == BEST:
        folder = seed_folder(folder, run.seed)
    is_compared = SEED.fullmatch(folder.name) and folder.is_dir()
    return list(runs_of_seed(folder).values()) if is_compared else []
