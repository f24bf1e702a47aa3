"""Weights from anyone's files, safely: nothing but tensors is ever unpickled."""

from __future__ import annotations

import pickle
import pickletools
import re
import tarfile
import warnings
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from ._util.arrays import check_stored
from ._util.files import check_is_file, decode_json
from ._util.text import brief
from .heads import NAMES, find_head

Tensors = dict[str, Tensor]
Shapes = Mapping[str, tuple[int, ...]]
# Where training scripts put the weights in what they save.
STATE_DICTS = ("state_dict", "model_state_dict", "model")
# Weight norm and spectral norm store the weight under other names. They only scale what lies
# there, row by row or as a whole, and distances look at the directions of the rows alone.
_UNSCALED = re.compile(r"\.(weight_v|weight_orig|parametrizations\.weight\.original1?)$")
# Before it, even weights_only=True could run code: CVE-2025-32434 and CVE-2026-24747.
_SAFE_TORCH = TorchVersion("2.10")
# torch refuses an unknown name with a message in which it looks for a pattern. That takes the
# square of the name's length, so a name of a few megabytes would keep it busy for days.
_LONGEST_NAME = 500
# What files of before torch 1.6 are made of, one pickle each: the magic number, the version, the
# system, the content and its keys.
_PICKLES = 5


def load_tensors(path: Path) -> Tensors:
    """Read a safetensors file, with one sentence that names it where it cannot be read."""
    check_is_file(path)
    try:
        return load_file(path)
    except Exception as error:  # types that torch lacks lead it to raise whatever
        raise ValueError(f"{path}: not readable as safetensors: {brief(error)}") from None


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


def read_state_dict(path: Path) -> Tensors:
    """Return the tensors of a file that torch.save wrote, unpickling nothing else.

    Args:
        path: Holds a state dict, or a dict with one under one of `STATE_DICTS`.
    """
    check_is_file(path)
    _check_torch(path)
    try:
        content = _unpickled(path)
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


def read_lightning_checkpoint(path: Path) -> Tensors:
    """Return the weights of a checkpoint that Lightning wrote, unpickling nothing else.

    Args:
        path: Has the weights of the whole LightningModule under ``"state_dict"``.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path} to make the hierarchy from; it should be a Lightning "
            f"checkpoint or, ending in .json or .safetensors, a saved hierarchy."
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is not a Lightning checkpoint, or not all of one; the name of a saved "
            f"hierarchy must end in .json or .safetensors."
        )
    _check_torch(path)
    try:
        content = _unpickled(path)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} holds Python objects, such as hyperparameters, that could run any code, so it "
            f"is not read; if you trust it, load the baseline by load_from_checkpoint(..., "
            f"weights_only=False) and give that module in place of the path."
        ) from error
    except Exception as error:  # broken data leads torch to raise whatever
        reason = brief(error) or type(error).__name__
        raise ValueError(f"{path} is not a Lightning checkpoint: {reason}") from error
    if not isinstance(content, dict) or not isinstance(content.get("state_dict"), dict):
        raise ValueError(f"{path} is not a Lightning checkpoint: it has no 'state_dict'.")
    return dict(content["state_dict"])


# --------------------------------------------------------------- which tensor is the final layer's


def head_weight(path: Path, shapes: Shapes, head: str | None, *, is_ordered: bool) -> str:
    """Return which tensor of a state dict is the weight of the final layer.

    Args:
        path: The file, for errors.
        shapes: Of the tensors, by name.
        head: The name of the final layer, or None.
        is_ordered: Whether the tensors are in the order of the model's layers.
    """
    # A file has tensors, not layers. Those with the shape of a linear layer's weight stand for one
    # in an empty model, so that the rules of `find_head` are the same for files and for models.
    # Embeddings and attention have such shapes too; `_check_is_last` is there for them.
    weights = {_UNSCALED.sub(".weight", name): name for name in shapes}
    layers = {
        name.removesuffix("weight").removesuffix("."): shapes[key]
        for name, key in weights.items()
        if name.rpartition(".")[2] == "weight" and _is_linear(shapes[key])
    }
    if not is_ordered:  # safetensors are sorted by name, but numbers still tell the order
        layers = dict(sorted(layers.items(), key=lambda item: _natural_key(item[0])))
    model, names = _skeleton(layers)
    try:
        _, layer = find_head(model, head and head.removesuffix(".weight"))
    except ValueError as error:
        raise ValueError(f"{path}: {brief(error)}") from None
    found = names[layer]
    if head is None:
        _check_is_last(path, found, layers, shapes, is_ordered)
    return weights[f"{found}.weight" if found else "weight"]


def _skeleton(layers: Shapes) -> tuple[nn.Module, dict[nn.Module, str]]:
    """Return empty modules called as the layers are, and the layers' names."""
    names: dict[nn.Module, str] = {}
    root = nn.Module()
    for name, (outputs, inputs, *_) in layers.items():
        layer = nn.Linear(inputs, outputs, device="meta")  # takes no memory, however large
        names[layer] = name
        if not name:  # the state dict of a linear layer by itself
            return layer, names
        *above, last = name.split(".")
        # Not by add_module, which refuses what is an attribute of every module, such as "type".
        module = root
        for part in above:
            module = module._modules.setdefault(part, nn.Module()) or module
        module._modules[last] = layer
    return root, names


def _check_is_last(
    path: Path, found: str, layers: Shapes, shapes: Shapes, is_ordered: bool
) -> None:
    """Refuse to guess which layer is the final one where neither names nor an order tell.

    A wrong layer would give a hierarchy that looks well and means nothing, so it is better to
    ask. What a file does not tell is what a layer's outputs go to; widths tell a part of it: a
    final layer has as many outputs as there are classes, which seldom is what another layer
    takes in.
    """
    read = {inputs for _, inputs, *_ in layers.values()}
    unread = [name for name, (outputs, *_) in layers.items() if outputs not in read]
    # Embeddings are unread as well, but have no bias, which final layers mostly have.
    likely = [name for name in unread if f"{name}.bias" in shapes] or unread or list(layers)
    # A name such as "fc" may be that of a hidden layer. In a file with an order `find_head` has
    # seen to that; in one without, no unread layer may take in what this one gives.
    is_named = bool(set(found.split(".")) & set(NAMES)) and (
        is_ordered or all(layers[name][1] != layers[found][0] for name in unread)
    )
    # Only an nn.Sequential numbers all its layers, and the last of those is the final one.
    is_numbered = all(part.isdecimal() for name in layers for part in name.split("."))
    is_alone = found in likely and (is_ordered or len(likely) == 1)
    if not (is_named or is_numbered or is_alone):
        listed = ", ".join(map(repr, dict.fromkeys([*likely, found])))
        raise ValueError(
            f"{path}: the final layer could be any of {brief(listed)}; say which: "
            f"head={brief(likely[-1])!r}."
        )


def _is_linear(shape: tuple[int, ...]) -> bool:
    """Whether a weight is that of a linear layer or a 1×1 convolution."""
    return 2 <= len(shape) <= 5 and set(shape[2:]) <= {1}


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts layers by number, so that 10 comes after 2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in name.split(".")]


# ----------------------------------------------------------------------------------------- pickles


def _check_torch(path: Path) -> None:
    """Refuse to read a pickle by a torch that could be made to run code by one.

    This is no fault of the file, so it is said before anything is said about that.
    """
    if TorchVersion(torch.__version__) < _SAFE_TORCH:
        raise ValueError(
            f"{path} is not read, as torch {torch.__version__} has known holes through which such "
            f"a file can run code; update it to {_SAFE_TORCH} or later, or save the weights as "
            f"safetensors."
        )


def _unpickled(path: Path) -> Any:
    """Return what torch.save wrote, if that is tensors and plain values.

    Raises:
        pickle.UnpicklingError: For anything else, which unpickling could run as code.
        Exception: Whatever broken data leads torch to raise.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are for who wrote the file
        if tarfile.is_tarfile(path):  # torch would make a temporary folder, only to refuse it
            raise ValueError("it is a tar archive")
        _check_pickles(path)
        # Mapped into memory, a file costs only what is looked at: the final layer.
        is_mapped = zipfile.is_zipfile(path)
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_mapped)


def _check_pickles(path: Path) -> None:
    """Refuse a file that torch would take too much time or memory to read.

    ``weights_only`` keeps code from being run. It does not keep a file of a few bytes from
    claiming gigabytes, which a zip may do by compressing them; torch.save compresses nothing,
    so no honest file holds more than its own size. Nor does it keep names from being longer
    than any module's, see `_LONGEST_NAME`. Opcodes are read here, and none is carried out.
    """
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            for _ in range(_PICKLES):
                _check_names(file)
        return
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > path.stat().st_size:
            raise ValueError("it claims to hold more than there is")
        for member in archive.infolist():
            if member.filename.endswith("data.pkl"):
                _check_names(BytesIO(archive.read(member)))


def _check_names(file: IO[bytes]) -> None:
    for code, argument, _ in pickletools.genops(file):
        if code.name in ("GLOBAL", "INST") and len(str(argument)) > _LONGEST_NAME:
            raise ValueError(f"it asks for {str(argument)[:40]}…")
