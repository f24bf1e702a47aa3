"""The curriculum in Lightning: a callback, and early stopping that waits for the finest level.

Trainer(callbacks=[CoarseToFineCallback("baseline.ckpt", epochs=10)])
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from ..checkpoints import read_lightning_checkpoint
from ..curriculum import Curriculum, equal_shares
from ..errors import require
from ..heads import find_head
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ..runs.hierarchies import MATRICES
from ._curriculum import Source, curriculum_from, hierarchy_from, warn_if_cut_short

try:
    from lightning.pytorch import callbacks
except ModuleNotFoundError:  # the same library goes by an older name too
    callbacks = require("pytorch_lightning.callbacks", "lightning")

# Of the files that a hierarchy is read from, those which Lightning does not write.
_OTHERS = (".json", ".safetensors", *MATRICES)

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class CoarseToFineCallback(callbacks.Callback):
    """Trains a LightningModule from coarse to fine, by the Trainer's epoch.

    The module needs a `CoarseToFineLoss`, usually one without a hierarchy, which by itself is
    plain cross-entropy: so the same module without this callback is the baseline. The
    hierarchy is made on rank zero when training starts, and given to all. It is kept in the
    checkpoints, and a resumed training goes on with the one it finds there. The level of each
    epoch is logged as ``curriculum_level``.

    Args:
        hierarchy: The path of a checkpoint of the same LightningModule, trained without this
            callback; or anything else that a hierarchy is read from: a `Hierarchy`, a trained
            classifier, a K×K matrix of distances, the path of a hierarchy's file
            (``.json``), of a taxonomy, a matrix, a safetensors file or a run.
        epochs: T, the length of the curriculum in epochs.
        boundaries: Instead, the epochs at which the levels 1, 2, ... begin.
        criterion: The name of the loss in the module, where there are several. Defaults to
            None.
        head: The name of the classifier's final layer, where it cannot be found. Defaults to
            None.

    Attributes:
        curriculum: The `Curriculum`, from the start of training on.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> callback = CoarseToFineCallback(hierarchy, epochs=10)
        >>> # Trainer(max_epochs=30, callbacks=[callback]).fit(module)
    """

    def __init__(
        self,
        hierarchy: Source,
        epochs: int | None = None,
        *,
        boundaries: Iterable[int] | None = None,
        criterion: str | None = None,
        head: str | None = None,
    ) -> None:
        if (epochs is None) == (boundaries is None):
            raise ValueError("give exactly one of epochs and boundaries.")
        self.hierarchy = hierarchy
        self.epochs = epochs
        self.boundaries = None if boundaries is None else tuple(boundaries)
        self.criterion = criterion
        self.head = head
        self.curriculum: Curriculum | None = None
        self._kept: tuple[Hierarchy, tuple[int, ...]] | None = None  # in checkpoints

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Forget what an earlier training, or a checkpoint that was only validated, left."""
        if stage == "fit":
            self.curriculum = self._kept = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Give the loss its hierarchy; by now every strategy has restored its checkpoint."""
        criterion = _find_criterion(pl_module, self.criterion)
        if self._kept:
            hierarchy, begins = self._kept
            self.curriculum = curriculum_from(hierarchy, boundaries=begins, criterion=criterion)
            self._warn_if_restored_otherwise(self.curriculum)
        else:
            hierarchy = _from_rank_zero(trainer, lambda: self._make_hierarchy(pl_module))
            self.curriculum = curriculum_from(
                hierarchy, self.epochs, boundaries=self.boundaries, criterion=criterion
            )
            self._kept = hierarchy, self.curriculum.boundaries
        is_endless = trainer.max_epochs in (None, -1)
        if trainer.is_global_zero and not (is_endless or trainer.fast_dev_run):  # type: ignore[attr-defined]
            warn_if_cut_short(trainer.max_epochs or 0, self.curriculum, "max_epochs")
        # A training that is resumed within an epoch has no start of this epoch.
        self.on_train_epoch_start(trainer, pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Set the level of the epoch, and log it."""
        curriculum = cast(Curriculum, self.curriculum)  # made when training started
        curriculum.step(trainer.current_epoch)
        pl_module.log("curriculum_level", float(curriculum.level), sync_dist=True)

    def state_dict(self) -> dict[str, Any]:
        """Return the hierarchy and the boundaries of the levels as plain values."""
        if self._kept is None:  # training has not started
            return {}
        hierarchy, boundaries = self._kept
        return {"hierarchy": hierarchy.to_dict(), "boundaries": list(boundaries)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the hierarchy and the boundaries of a checkpoint in place of those given."""
        if state_dict:
            hierarchy = Hierarchy.from_dict(state_dict["hierarchy"])
            self._kept = hierarchy, tuple(state_dict["boundaries"])

    @property
    def state_key(self) -> str:
        """The name of the state in checkpoints: one for each loss."""
        name = type(self).__qualname__
        return name if self.criterion is None else f"{name}(criterion={self.criterion!r})"

    def _warn_if_restored_otherwise(self, curriculum: Curriculum) -> None:
        levels = len(curriculum.boundaries) + 1
        given = self.boundaries if self.epochs is None else equal_shares(self.epochs, levels)
        if given != curriculum.boundaries:
            warnings.warn(
                f"The checkpoint's levels begin at the epochs {curriculum.boundaries}, not at "
                f"{given} as given here; training goes on with those of the checkpoint.",
                stacklevel=3,
            )

    def _make_hierarchy(self, pl_module: LightningModule) -> Hierarchy:
        source = self.hierarchy
        if isinstance(source, str | os.PathLike) and _is_checkpoint(Path(source)):
            return _hierarchy_of_checkpoint(Path(source), pl_module, self.head)
        return hierarchy_from(source, head=self.head)


class CoarseToFineEarlyStopping(callbacks.EarlyStopping):
    """Early stopping that checks nothing before the finest level.

    At a coarse level the model is not yet asked for the classes, so what is measured on them
    may well stand still. It takes what Lightning's ``EarlyStopping`` takes and, without a
    `CoarseToFineCallback`, does what that does: a baseline may have it too.
    """

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check after an epoch of the finest level."""
        if _is_finest(trainer):
            super().on_train_epoch_end(trainer, pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check after a validation at the finest level."""
        if _is_finest(trainer):
            super().on_validation_end(trainer, pl_module)


def _is_finest(trainer: Trainer) -> bool:
    every = trainer.callbacks  # type: ignore[attr-defined]  # set where mypy cannot see it
    found = (one for one in every if isinstance(one, CoarseToFineCallback))
    return all(one.curriculum is None or one.curriculum.is_finest for one in found)


def _find_criterion(pl_module: LightningModule, name: str | None) -> CoarseToFineLoss:
    modules = pl_module.named_modules()
    losses = {path: module for path, module in modules if isinstance(module, CoarseToFineLoss)}
    kind, known = type(pl_module).__name__, ", ".join(map(repr, losses))
    if not losses:
        raise ValueError(
            f"{kind} has no CoarseToFineLoss; set self.criterion = CoarseToFineLoss() in its "
            f"__init__ and let training_step use it."
        )
    if name is None and len(losses) > 1:
        raise ValueError(f"{kind} has several CoarseToFineLoss, {known}; choose one by criterion=.")
    if name is not None and name not in losses:
        raise ValueError(f"{kind} has no CoarseToFineLoss called {name!r}, but {known}.")
    return next(iter(losses.values())) if name is None else losses[name]


def _from_rank_zero(trainer: Trainer, make: Callable[[], Hierarchy]) -> Hierarchy:
    """Return on every rank what `make` returns on rank zero; where that fails, fail everywhere."""
    try:
        made = make() if trainer.is_global_zero else None
    except Exception as error:
        # The other ranks are waiting, and would for ever.
        trainer.strategy.broadcast(f"{type(error).__name__}: {error}")
        raise
    content = trainer.strategy.broadcast(None if made is None else made.to_dict())
    if isinstance(content, str):
        raise RuntimeError(f"rank zero could not make the hierarchy: {content}")
    return Hierarchy.from_dict(content)


# --------------------------------------------------------------- a baseline's checkpoint


def _is_checkpoint(path: Path) -> bool:
    """Whether a path is a Lightning checkpoint's, which may have any suffix but those of others."""
    return not path.is_dir() and path.suffix.lower() not in _OTHERS


def _hierarchy_of_checkpoint(path: Path, pl_module: LightningModule, head: str | None) -> Hierarchy:
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
