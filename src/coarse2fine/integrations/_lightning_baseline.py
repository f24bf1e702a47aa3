"""A hierarchy from a Lightning checkpoint of a baseline."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from ..checkpoints import read_lightning_checkpoint
from ..heads import find_head
from ..hierarchy import Hierarchy
from ..runs.matrices import MATRICES
from ._curriculum import hierarchy_from

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule

# Of the files that a hierarchy is read from, those which Lightning does not write.
_OTHERS = (".json", ".safetensors", *MATRICES)


def is_checkpoint(path: Path) -> bool:
    """Whether a path is a Lightning checkpoint's, which may have any suffix but those of others."""
    return not path.is_dir() and path.suffix.lower() not in _OTHERS


def hierarchy_of_checkpoint(path: Path, pl_module: LightningModule, head: str | None) -> Hierarchy:
    """Return the hierarchy of a baseline's final layer; nothing else of it is kept."""
    # The new module is of the same class, so it tells which layer is the final one. That is surer
    # than a look at the file alone, and a checkpoint of another module is noticed.
    name, layer = find_head(pl_module, head)
    layer = copy.deepcopy(layer)
    stored = read_lightning_checkpoint(path)
    expected = {f"{name}.{key}": value for key, value in layer.state_dict().items()}
    _check_weights(path, stored, expected)
    weights = {key.removeprefix(f"{name}."): stored[key] for key in expected}
    layer.load_state_dict(weights, assign=True)  # takes them whole, on whatever device it is
    return hierarchy_from(layer)


def _check_weights(path: Path, stored: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for key, value in expected.items():
        if key not in stored:
            raise ValueError(
                f"{path} has no {key!r}, which belongs to the final layer here; name another "
                f"layer by head=, or load the baseline and give that module in place of the path."
            )
        if stored[key].shape != value.shape:
            raise ValueError(
                f"{path} holds {key!r} with the shape {tuple(stored[key].shape)}, but here it has "
                f"{tuple(value.shape)}; the baseline must have the same classes and features."
            )
