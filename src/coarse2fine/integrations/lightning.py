"""The curriculum in Lightning: a callback, and early stopping that waits for the finest level.

Trainer(callbacks=[CoarseToFineCallback("baseline.ckpt", patience=5)])
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .._level_module import LevelLoss
from ..curriculum import Curriculum, equal_shares
from ..errors import require
from ..hierarchy import Hierarchy
from ._curriculum import (
    HierarchySource,
    check_one_length,
    curriculum_from,
    hierarchy_from,
    warn_if_coarse,
    warn_if_cut_short,
)
from ._lightning_baseline import hierarchy_of_checkpoint, is_checkpoint
from ._pace import Pace

try:
    from lightning.pytorch import callbacks
except ModuleNotFoundError:  # the same library goes by an older name too
    callbacks = require("pytorch_lightning.callbacks", "lightning")

_REMEDY = (
    "let validation_step compute its loss by the module's CoarseToFineLoss, and the Trainer "
    "validate after every epoch"
)

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class CoarseToFineCallback(callbacks.Callback):
    """Trains a LightningModule from coarse to fine, by the Trainer's epoch.

    The module needs a `CoarseToFineLoss`, usually one without a hierarchy, which by itself is
    plain cross-entropy: so the same module without this callback is the baseline. The
    hierarchy is made on rank zero when training starts, and given to all. It is kept in the
    checkpoints, and a resumed training goes on with the one it finds there. The level of each
    epoch is logged as ``curriculum_level``.

    With `patience`, a level lasts as long as it teaches. The validation accuracy at the level
    is that of the logits and targets which the loss is given in the Trainer's validations; the
    last one in an epoch counts. The coarse levels take at most half of ``max_epochs``.

    Args:
        hierarchy: The path of a checkpoint of the same LightningModule, trained without this
            callback; or anything else that a hierarchy is read from: a `Hierarchy`, a trained
            classifier, a K×K matrix of distances, the path of a hierarchy's file
            (``.json``), of a taxonomy, a matrix, a safetensors file or a run.
        epochs: T, the length of the curriculum in epochs.
        boundaries: Instead, the epochs at which the levels 1, 2, ... begin.
        patience: Instead, leave a coarse level once its validation accuracy has not improved
            for so many epochs.
        criterion: The name of the loss in the module, where there are several. Defaults to
            None.
        head: The name of the classifier's final layer, where it cannot be found. Defaults to
            None.

    Attributes:
        curriculum: The `Curriculum`, from the start of training on.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> callback = CoarseToFineCallback(hierarchy, patience=5)
        >>> # Trainer(max_epochs=30, callbacks=[callback]).fit(module)
    """

    def __init__(
        self,
        hierarchy: HierarchySource,
        epochs: int | None = None,
        *,
        boundaries: Iterable[int] | None = None,
        patience: int | None = None,
        criterion: str | None = None,
        head: str | None = None,
    ) -> None:
        check_one_length(epochs=epochs, boundaries=boundaries, patience=patience)
        self.hierarchy = hierarchy
        self.epochs = epochs
        self.boundaries = None if boundaries is None else tuple(boundaries)
        self.patience = patience
        self.criterion = criterion
        self.head = head
        self.curriculum: Curriculum | None = None
        self._pace: Pace | None = None  # with patience, from the start of training on
        self._kept: dict[str, Any] = {}  # what a checkpoint holds

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Forget what an earlier training, or a checkpoint that was only validated, left."""
        if stage == "fit":
            self.curriculum, self._pace, self._kept = None, None, {}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Give the loss its hierarchy; by now every strategy has restored its checkpoint."""
        criterion = _find_criterion(pl_module, self.criterion)
        if self._kept:
            hierarchy = Hierarchy.from_dict(self._kept["hierarchy"])
        else:
            hierarchy = _from_rank_zero(trainer, lambda: self._make_hierarchy(pl_module))
        if self.patience is None:
            self._begin_fixed(trainer, hierarchy, criterion)
        else:
            self._begin_adaptive(trainer, hierarchy, criterion)
        # A training that is resumed within an epoch has no start of this epoch.
        self.on_train_epoch_start(trainer, pl_module)

    def _begin_fixed(self, trainer: Trainer, hierarchy: Hierarchy, criterion: LevelLoss) -> None:
        epochs, boundaries = self.epochs, self.boundaries
        if "plateau" in self._kept:
            raise ValueError(
                "the checkpoint is one of a curriculum with patience; give that to the callback "
                "too, or start anew."
            )
        if self._kept:
            epochs, boundaries = None, tuple(self._kept["boundaries"])
        curriculum = curriculum_from(hierarchy, epochs, boundaries=boundaries, criterion=criterion)
        self.curriculum = curriculum
        if self._kept:
            self._warn_if_restored_otherwise(curriculum)
        if trainer.is_global_zero and _total(trainer) is not None:
            warn_if_cut_short(trainer.max_epochs or 0, curriculum, "max_epochs")

    def _begin_adaptive(self, trainer: Trainer, hierarchy: Hierarchy, criterion: LevelLoss) -> None:
        length: dict[str, Any] = {"patience": self.patience, "total_epochs": _total(trainer)}
        self.curriculum = curriculum_from(hierarchy, **length, criterion=criterion)
        self._pace = Pace(self.curriculum, trainer.current_epoch, _REMEDY)
        if self._kept:
            self._pace.load_state_dict(self._kept)
        if not trainer.enable_validation or (trainer.check_val_every_n_epoch or 1) > 1:
            raise ValueError(self._pace.complaint())

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Set the level of the epoch, and log it."""
        curriculum = cast(Curriculum, self.curriculum)  # made when training started
        if self._pace is None:
            curriculum.step(trainer.current_epoch)
        else:
            self._pace.begin_epoch(trainer.current_epoch)
        pl_module.log("curriculum_level", float(curriculum.level), sync_dist=True)

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count, with patience, what the model gets right at the level in force."""
        if self._pace is not None and _is_in_training(trainer):
            self._pace.curriculum.criterion._tally = self._pace.tally(pl_module.device)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the accuracy over all processes for when the next epoch begins."""
        if self._pace is None or not _is_in_training(trainer):
            return
        criterion = self._pace.curriculum.criterion
        tally, criterion._tally = criterion._tally, None
        if tally is not None:
            self._pace.accuracy = tally.accuracy()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Warn where training has ended before the classes."""
        if trainer.is_global_zero and not trainer.fast_dev_run:  # type: ignore[attr-defined]
            warn_if_coarse(cast(Curriculum, self.curriculum))

    def state_dict(self) -> dict[str, Any]:
        """Return the hierarchy and where the curriculum is, as plain values."""
        if self._pace is not None:
            return self._pace.state_dict()
        if self.curriculum is None:  # training has not started
            return self._kept
        hierarchy = cast(Hierarchy, self.curriculum.criterion.hierarchy)
        return {"hierarchy": hierarchy.to_dict(), "boundaries": list(self.curriculum.boundaries)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the curriculum of a checkpoint in place of the one given."""
        self._kept = state_dict

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
        if isinstance(source, str | os.PathLike) and is_checkpoint(Path(source)):
            return hierarchy_of_checkpoint(Path(source), pl_module, self.head)
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


def _is_in_training(trainer: Trainer) -> bool:
    """Whether a validation is one of `fit`; when that only tries it, training has not started."""
    return trainer.state.fn == "fit"


def _total(trainer: Trainer) -> int | None:
    """Return how many epochs training takes; None where nobody can tell, or it is only tried."""
    is_endless = trainer.max_epochs in (None, -1)
    return None if is_endless or trainer.fast_dev_run else trainer.max_epochs  # type: ignore[attr-defined]


def _find_criterion(pl_module: LightningModule, name: str | None) -> LevelLoss:
    modules = pl_module.named_modules()
    losses = {path: module for path, module in modules if isinstance(module, LevelLoss)}
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
