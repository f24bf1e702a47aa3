"""Use what was trained: the model of a finished run, or the final layer of any checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from .._files import parse_json
from ..data import Batches, Data, Kind, Source, Split, Transform, sample
from ..errors import RunError
from ..heads import NAMES, find_head
from ..models import build_model
from .checkpoint import load_tensors
from .config import Config
from .identity import structure_for
from .result import BASELINE, RunResult
from .run import CHECKPOINT, CONFIG, MODEL

# Where training scripts put the weights in what they save.
STATE_DICTS = ("state_dict", "model_state_dict", "model")
# Weight norm and spectral norm only scale these, and distances look at directions alone.
_UNSCALED = re.compile(r"\.(weight_v|weight_orig|parametrizations\.weight\.original1?)$")
Shapes = Mapping[str, tuple[int, ...]]


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
            workers=self.config.workers,
            channels_last=device.type == "cpu",
        )
        model = self.model.to(device).eval()
        found = [model(batch.inputs).float().cpu() for batch in batches.in_order()]
        return torch.cat(found) if found else torch.zeros(0, len(self.class_names))


def load_trained(path: Path) -> Trained:
    """Return the model of a finished run.

    Raises:
        RunError: Where the directory is not a run, it is not done, or its model was given
            as a Python object and cannot be imported.
    """
    RunResult.load(path)
    try:
        content = parse_json(path / CONFIG)
        config, data = Config.from_dict(content["config"]), content["data"]
        names, shape = tuple(data["class_names"]), tuple(data["input_shape"])
        transform = Transform(**{name: _frozen(value) for name, value in data["transform"].items()})
        others = (tuple(data["columns"]), shape, transform, data["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path / CONFIG} cannot be used: {str(error).rstrip('.')}.") from None
    weights = load_tensors(path / CHECKPOINT / MODEL)
    try:
        name, _, known = str(config.model).partition("#")
        model = build_model(name, len(names), shape, data["kind"])
        if known and structure_for(name, len(names), shape, data["kind"]) != known:
            raise ValueError(f"what {name} makes now is another model")
        model.load_state_dict(weights)
    except (ValueError, TypeError, RuntimeError) as error:
        raise RunError(
            f"{path}: its model {config.model!r} cannot be made again ({error}); load the "
            f"weights in {path / CHECKPOINT / MODEL} into a model of your own."
        ) from None
    return Trained(path, model.eval(), config, data["kind"], names, *others)


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
    seeds = {int(folder.name[5:]): folder for folder in path.glob("seed-*[0-9]")}
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
        return state[_head_weight(path, shapes, head, is_ordered=True)].flatten(1), None
    try:
        with safe_open(path, framework="pt") as file:  # only the final layer is read
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            vectors = file.get_tensor(_head_weight(path, shapes, head, is_ordered=False))
            names = json.loads((file.metadata() or {}).get("class_names", "null"))
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not readable as safetensors: {error}") from None
    return vectors.flatten(1), names


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file that torch.save wrote, unpickling nothing else.

    Args:
        path: Holds a state dict, or a dict with one under one of `STATE_DICTS`.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, LookupError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
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
    found = ", ".join(map(str, whole)) or type(content).__name__
    raise ValueError(
        f"{path} holds no state dict, neither itself nor under {', '.join(STATE_DICTS)}. Got "
        f"{found}."
    )


def _head_weight(path: Path, shapes: Shapes, head: str | None, *, is_ordered: bool) -> str:
    """Return which tensor of a state dict is the weight of the final layer."""
    weights = {_UNSCALED.sub(".weight", name): name for name in shapes}
    layers = {
        name.removesuffix("weight").removesuffix("."): shapes[key]
        for name, key in weights.items()
        if name.rpartition(".")[2] == "weight" and _is_linear(shapes[key])
    }
    if not is_ordered:
        layers = dict(sorted(layers.items(), key=lambda item: _by_number(item[0])))
    model, names = _skeleton(layers)
    try:
        _, layer = find_head(model, head and head.removesuffix(".weight"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    found = names[layer]
    if head is None:
        _check_is_last(path, found, layers, shapes, is_ordered)
    return weights[f"{found}.weight" if found else "weight"]


def _skeleton(layers: Shapes) -> tuple[nn.Module, dict[nn.Module, str]]:
    """Return empty modules called as the layers are, and the layers' names."""
    names: dict[nn.Module, str] = {}
    root = nn.Module()
    for name, (outputs, inputs, *_) in layers.items():
        layer = nn.Linear(inputs, outputs, device="meta")
        names[layer] = name
        if not name:  # the state dict of a linear layer by itself
            return layer, names
        *above, last = name.split(".")
        module = root
        for part in above:
            module = module._modules.setdefault(part, nn.Module()) or module
        module._modules[last] = layer
    return root, names


def _check_is_last(
    path: Path, found: str, layers: Shapes, shapes: Shapes, is_ordered: bool
) -> None:
    """Refuse to guess which layer is the final one where neither names nor an order tell."""
    read = {inputs for _, inputs, *_ in layers.values()}
    unread = [name for name, (outputs, *_) in layers.items() if outputs not in read]
    likely = [name for name in unread if f"{name}.bias" in shapes] or unread or list(layers)
    # A layer that nobody reads may read this one, whatever this one is called.
    is_named = bool(set(found.split(".")) & set(NAMES)) and (
        is_ordered or all(layers[name][1] != layers[found][0] for name in unread)
    )
    is_numbered = all(part.isdecimal() for name in layers for part in name.split("."))
    is_alone = found in likely and (is_ordered or len(likely) == 1)
    if not (is_named or is_numbered or is_alone):
        listed = ", ".join(map(repr, dict.fromkeys([*likely, found])))
        raise ValueError(
            f"{path}: the final layer could be any of {listed}; say which: head={likely[-1]!r}."
        )


def _is_linear(shape: tuple[int, ...]) -> bool:
    """Whether a weight is that of a linear layer or a 1×1 convolution."""
    return 2 <= len(shape) <= 5 and set(shape[2:]) <= {1}


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts layers by number, so that 10 comes after 2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in name.split(".")]
