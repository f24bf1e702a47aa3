"""Use what was trained: the model of a finished run, or the final layer of any checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._util.text import brief
from ..checkpoints import Tensors
from ..data import Batches, Data, Kind, Source, Split, Transform, sample
from ..errors import RunError
from ..models import build_model, is_ours
from .config import Config
from .directory import CONFIG, WEIGHTS, Run
from .identity import Factory, stored_config, stored_model, structure
from .result import RunResult


@dataclass(frozen=True)
class Trained:
    """A trained model and what is needed to use it.

    Args:
        path: The run directory.
        model: In evaluation mode.
        config: What it was trained with.
        kind: What its inputs are.
        class_names: What its outputs are.
        columns: The columns of a table.
        input_shape: Of one sample.
        transform: What its inputs go through first.
        fingerprint: Of the samples of its training, see `Data.fingerprint`.
    """

    path: Path
    model: nn.Module
    config: Config
    kind: Kind
    class_names: tuple[str, ...]
    columns: tuple[str, ...]
    input_shape: tuple[int, ...]
    transform: Transform
    fingerprint: str

    @torch.no_grad()
    def logits(self, split: Split, batch_size: int | None = None) -> Tensor:
        """Return the model's outputs (N, K) for samples, on a GPU where there is one.

        Args:
            split: The samples, whose inputs are like those of the training.
            batch_size: Defaults to None: as in training.
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        batches = Batches(
            split,
            self.transform,
            batch_size or self.config.batch_size or 1,
            device=device,
            workers=min(self.config.workers, os.cpu_count() or 1),  # as a stranger may have set it
            channels_last=device.type == "cpu",
        )
        model = self.model.to(device).eval()
        # Each batch's outputs leave the device at once: all of them, with many classes, may take
        # more room than it has. As float32, since numpy has no bfloat16.
        found = [model(batch.inputs).float().cpu() for batch in batches.in_order()]
        return torch.cat(found) if found else torch.zeros(0, len(self.class_names))


def load_trained(path: Path, model: Factory | None = None) -> Trained:
    """Return the model of a finished run.

    Args:
        path: The run directory.
        model: What makes its model, a callable or ``package.module:callable``. Defaults to
            None: what the run names, if that is ours or was trained by this process.

    Raises:
        RunError: Where it is not a run, not done, or its model cannot be made again.
    """
    # Read only to refuse what is not done: the result is written last, so where there is one, all
    # else is whole.
    RunResult.load(path)
    run = Run(path)

    def weights() -> Tensors:
        # Class names in another order would give every prediction a wrong name, and no error.
        run.check_data()
        return run.weights()

    return trained_from(run, path / WEIGHTS, weights, model)


def trained_from(
    run: Run, file: Path, read_weights: Callable[[], Tensors], model: Factory | None = None
) -> Trained:
    """Return the model that a config describes, with its weights.

    Args:
        run: Whose config it is.
        file: Has the weights, for messages.
        read_weights: Reads them, once the config was found to be of use.
        model: See `load_trained`.

    Raises:
        RunError: The config is of no use, or the model cannot be made again.
    """
    path, config_file = run.path, run.path / CONFIG
    # All of the config is checked before the weights are read, which may be gigabytes, and
    # before anything that it names is imported or built.
    try:
        facts = run.config.data
        config = stored_config(run.config.settings)
        transform = Transform(**{n: _frozen(value) for n, value in facts.transform.items()})
        _check_kind(facts.input_shape, facts.class_names)
    except (RunError, ValueError, KeyError, TypeError, AttributeError) as error:
        text = str(error).removeprefix(f"{config_file} ").removeprefix("is damaged: ")
        text = brief(text.removeprefix("cannot be used: ").rstrip("."))
        raise RunError(f"{config_file} cannot be used: {text}.") from None
    weights = read_weights()
    names, shape, kind = facts.class_names, facts.input_shape, facts.kind
    # A model that was given as a callable is stored as its name and a digest of its layers, as
    # two lambdas have one name.
    name, _, known = str(config.model).partition("#")
    factory = stored_model(path, str(config.model)) if model is None else model
    try:
        _check_fits(factory, len(names), shape, kind, weights)
        made = build_model(factory, len(names), shape, kind)
        if known and structure(factory, len(names), shape, kind) != known:
            raise ValueError(f"what {name} makes now is another model")
        made.load_state_dict(weights)
    # torch has a RuntimeError for weights that do not fit, and the user's code may raise the rest.
    except (ValueError, TypeError, RuntimeError) as error:
        raise RunError(
            f"{path}: its model {brief(config.model)!r} cannot be made again ({brief(error)}); "
            f"load the weights in {file} into a model of your own."
        ) from None
    return Trained(
        path, made.eval(), config, kind, names, facts.columns, shape, transform, facts.fingerprint
    )


def sampled(source: Source, config: Config, val_share: float) -> Data:
    """Return the samples of a training.

    Args:
        source: The samples before they are divided.
        config: The settings, whose first seed counts.
        val_share: The share that is kept for validation.
    """
    return sample(
        source,
        train_size=config.train_size,
        val_share=val_share,
        test_share=config.test_share,
        seed=config.seeds[0],
        stratify=config.stratify,
    )


def divided_as_in_training(source: Source, config: Config, fingerprint: str) -> Data | None:
    """Return the samples of a training; None where these are other data.

    Args:
        source: What was loaded.
        config: What the run was trained with.
        fingerprint: Of its samples, see `Data.fingerprint`.
    """
    # A run stores no list of its samples, since the seed gives them again from the same data. The
    # fingerprint tells whether it is the same: of other data, samples that the model was trained
    # on could come out as test samples.
    for val_share in (config.val_share or 0.0, 0.0):  # after a search for T nothing is kept back
        try:
            data = sampled(source, config, val_share)
        except ValueError:  # data of another size, which cannot be divided like that
            return None
        if data.fingerprint() == fingerprint:
            return data
    return None


def _frozen(value: Any) -> Any:
    # JSON has lists only, where a `Transform` has tuples, so that no one can change it.
    return tuple(value) if isinstance(value, list) else value


def _check_kind(shape: tuple[Any, ...], class_names: tuple[Any, ...]) -> None:
    """Raise a ValueError where a model cannot be for such data.

    Args:
        shape: Of one sample, as a file has it.
        class_names: As a file has them.
    """
    if len(class_names) < 2 or not all(isinstance(name, str) for name in class_names):
        raise ValueError("class_names must hold two or more strings")
    if not all(type(size) is int and size > 0 for size in shape):
        raise ValueError("input_shape must hold integers from 1 on")


def _check_fits(
    model: Any, num_classes: int, shape: tuple[int, ...], kind: Kind, weights: Mapping[str, Tensor]
) -> None:
    """Raise a ValueError where one of our models would have other weights than these.

    A run's config of a few bytes may ask for a model that no memory holds.

    Args:
        model: What makes it; anyone's own may do more than to make layers, and is let alone.
        num_classes: How many classes there are.
        shape: Of one sample.
        kind: What the data is.
        weights: What was stored.
    """
    if not is_ours(model):
        return
    with torch.device("meta"):  # which has shapes and no memory
        wanted = build_model(model, num_classes, shape, kind).state_dict()
    if {name: x.shape for name, x in wanted.items()} != {n: x.shape for n, x in weights.items()}:
        raise ValueError("the weights are those of another model")
