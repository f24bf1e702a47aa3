"""Use what was trained: the model of a finished run, or the final layer of any checkpoint."""

from __future__ import annotations

import os
import re
import tarfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from .._arrays import check_stored
from .._files import check_is_file, decode_json, parse_json
from .._printable import brief
from ..data import Batches, Data, Kind, Source, Split, Transform, sample
from ..errors import RunError
from ..models import build_model
from .checkpoint import load_tensors
from .config import Config
from .final_layer import head_weight
from .identity import Factory, stored_config, stored_model, structure_for
from .model_checks import check_fits, check_kind
from .pickled import check_pickles
from .result import BASELINE, RunResult
from .run import CHECKPOINT, CONFIG, MODEL
from .stored import check_data, unchanged

SEED = re.compile(r"seed-(\d+)")  # what a comparison calls its folders
# Where training scripts put the weights in what they save.
STATE_DICTS = ("state_dict", "model_state_dict", "model")


# ----------------------------------------------------------------------------------- runs


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
    RunResult.load(path)
    try:
        content = parse_json(path / CONFIG)
        config, data = stored_config(content["config"]), content["data"]
        names, shape = tuple(data["class_names"]), tuple(data["input_shape"])
        transform = Transform(**{name: _frozen(value) for name, value in data["transform"].items()})
        others = (tuple(data["columns"]), shape, transform, data["fingerprint"])
        kind = data["kind"]
        check_kind(shape, names)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        text = brief(str(error).rstrip("."))
        raise RunError(f"{path / CONFIG} cannot be used: {text}.") from None
    check_data(path, data, CONFIG)
    weights = load_tensors(unchanged(path, f"{CHECKPOINT}/{MODEL}"))
    name, _, known = str(config.model).partition("#")
    factory = stored_model(path, str(config.model)) if model is None else model
    try:
        check_fits(factory, len(names), shape, kind, weights)
        made = build_model(factory, len(names), shape, kind)
        if known and structure_for(factory, len(names), shape, kind) != known:
            raise ValueError(f"what {name} makes now is another model")
        made.load_state_dict(weights)
    except (ValueError, TypeError, RuntimeError) as error:
        raise RunError(
            f"{path}: its model {brief(config.model)!r} cannot be made again ({brief(error)}); "
            f"load the weights in {path / CHECKPOINT / MODEL} into a model of your own."
        ) from None
    return Trained(path, made.eval(), config, kind, names, *others)


def divided_as_in_training(source: Source, config: Config, fingerprint: str) -> Data | None:
    """Return the samples of a training; None where these are other data.

    Args:
        source: What was loaded.
        config: What the run was trained with.
        fingerprint: Of its samples, see `Data.fingerprint`.
    """
    for val_share in (config.val_share or 0.0, 0.0):  # after a search for T nothing is kept back
        try:
            data = sample(
                source,
                train_size=config.train_size,
                val_share=val_share,
                test_share=config.test_share,
                seed=config.seeds[0],
            )
        except ValueError:  # data of another size, which cannot be divided like that
            return None
        if data.fingerprint() == fingerprint:
            return data
    return None


def find_run(path: Path, method: str | None = None, seed: int | None = None) -> Path:
    """Return the run directory that is meant by a run or by a comparison of several.

    Args:
        path: Of a run or a comparison.
        method: Of a comparison's runs, such as ``"baseline"``. Defaults to None: the first
            that is not the baseline.
        seed: Of a comparison's runs. Defaults to None: the first.
    """
    if not path.is_dir():
        raise RunError(f"there is no run {path}.")
    named = {folder: SEED.fullmatch(folder.name) for folder in path.iterdir() if folder.is_dir()}
    seeds = {int(match[1]): folder for folder, match in named.items() if match}
    if not seeds:
        if method is not None or seed is not None:
            raise RunError(f"{path} is not a comparison, so there is no method or seed to choose.")
        return path
    folder = _chosen("seed", min(seeds) if seed is None else seed, seeds, path)
    runs = {run.parent.name: run.parent for run in sorted(folder.glob(f"*/{CONFIG}"))}
    if not runs:
        raise RunError(f"{folder} holds no run yet.")
    compared = [name for name in runs if name != BASELINE and not name.startswith("hierarchy-")]
    first = compared[0] if compared else min(runs)
    return _chosen("method", first if method is None else method, runs, folder)


def _chosen(what: str, wanted: Any, found: Mapping[Any, Path], path: Path) -> Path:
    if wanted not in found:
        there = ", ".join(map(str, sorted(found)))
        raise RunError(f"{path} has no {what} {wanted}, but {there}.")
    return found[wanted]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --------------------------------------------------------------------- anyone's checkpoints


def read_class_vectors(path: Path, head: str | None = None) -> tuple[Tensor, list[str] | None]:
    """Return the weight of a checkpoint's final layer, and the class names where it has some.

    Args:
        path: A safetensors file, or one that torch.save wrote, see `read_state_dict`.
        head: The name of the final layer. Defaults to None: found by the rules of
            `find_head`.
    """
    if path.suffix.lower() != ".safetensors":
        state = read_state_dict(path)
        shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
        name = head_weight(path, shapes, head, is_ordered=True)
        check_stored(state[name], f"{path}: {brief(name)}")
        return state[name].flatten(1), None
    check_is_file(path)
    try:
        with safe_open(path, framework="pt") as file:  # only the final layer is read
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            vectors = file.get_tensor(head_weight(path, shapes, head, is_ordered=False))
            names = decode_json((file.metadata() or {}).get("class_names", "null").encode())
    except Exception as error:  # types that torch lacks lead it to raise whatever
        if isinstance(error, FileNotFoundError) or str(error).startswith(f"{path}: "):
            raise
        raise ValueError(f"{path}: not readable as safetensors: {brief(error)}") from None
    return vectors.flatten(1), names


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file that torch.save wrote, unpickling nothing else.

    Args:
        path: Holds a state dict, or a dict with one under one of `STATE_DICTS`.
    """
    check_is_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are for who wrote the file
            if tarfile.is_tarfile(path):  # torch would make a temporary folder, only to refuse it
                raise ValueError("it is a tar archive")
            check_pickles(path)
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # broken data leads torch to raise whatever
        reason = brief(str(error).strip().partition("\n")[0])
        raise ValueError(
            f"{path}: not readable as tensors alone; save model.state_dict() and nothing else "
            f"({reason})"
        ) from None
    whole = content if isinstance(content, Mapping) else {}
    for state in (whole, *(whole.get(name) for name in STATE_DICTS)):
        items = state.items() if isinstance(state, Mapping) else ()
        tensors = {str(name): x for name, x in items if isinstance(x, Tensor)}
        if tensors:
            return tensors
    found = brief(", ".join(map(str, whole))) or type(content).__name__
    raise ValueError(
        f"{path} holds no state dict, neither itself nor under {', '.join(STATE_DICTS)}. Got "
        f"{found}."
    )
