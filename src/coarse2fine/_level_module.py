"""What all losses with a level have in common: hierarchy, level, warnings and state."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ._candidates import Spans, node_slices, spans_at
from ._loss_checks import Options
from ._marginal import Partition
from ._tally import Tally
from ._util.arrays import check_whole
from .hierarchy import Hierarchy

_CALLER = 5  # frames from a warning in `_notice` up to whoever calls the loss


@dataclass
class Usage:
    """How a loss has been used since a curriculum took charge of it.

    Args:
        most_turns: How often training may go on after an evaluation before somebody must have
            called the curriculum's `step`. Defaults to None: it is not expected.
        losses: How many losses to train by have been computed.
        turns: How often training went on after an evaluation.
        was_evaluation: Whether the last loss was one of an evaluation.
    """

    most_turns: int | None = None
    losses: int = 0
    turns: int = 0
    was_evaluation: bool = False

    def note(self, is_training: bool) -> None:
        """Count a loss, and warn where `step` seems to have been forgotten."""
        self.losses += is_training
        self.turns += is_training and self.was_evaluation
        self.was_evaluation = not is_training
        if self.most_turns is not None and self.turns > self.most_turns:
            self.warn(f"though training has gone on after {self.turns} evaluations")

    def warn(self, why: str) -> None:
        """Say, once, that the level has never changed."""
        self.most_turns = None
        warnings.warn(
            f"The step of a Curriculum has never been called, {why}, so the model is trained at "
            f"the coarsest level alone; call its step after each epoch.",
            stacklevel=_CALLER + 2,
        )


class LevelLoss(nn.Module):
    """A loss that trains at one level of a hierarchy, which a `Curriculum` can set.

    A subclass has the options of torch's cross-entropy as attributes, and calls `_begin` at the
    end of its `__init__`.
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    _level: Tensor
    _clusters: Tensor | None
    _slices: tuple[Tensor, Tensor]

    def _begin(self, hierarchy: Hierarchy | None) -> None:
        """Set up all that a loss with a level keeps."""
        self.register_buffer("_level", torch.zeros((), dtype=torch.int64), persistent=False)
        self._usage = Usage()
        self._tally: Tally | None = None  # of what is evaluated, while somebody wants to know
        self._has_warned = False
        self.hierarchy = hierarchy

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The levels, if there are any yet; setting others goes back to the coarsest level."""
        return self._hierarchy

    @hierarchy.setter
    def hierarchy(self, hierarchy: Hierarchy | None) -> None:
        if not isinstance(hierarchy, Hierarchy | None):
            raise TypeError(f"hierarchy must be a Hierarchy. Got {type(hierarchy).__name__}.")
        self._hierarchy = hierarchy
        # Not a buffer: code that averages or copies models pairs up their buffers, and this one
        # would come and go, and change its shape, with the hierarchy.
        self._clusters = None
        if hierarchy is not None:
            self._clusters = torch.from_numpy(np.stack(hierarchy.levels))
            self._slices = node_slices(hierarchy.nodes)
            self._move()
        self._prepared_levels: dict[int, tuple[Partition, Spans]] = {}
        self.level = 0

    @property
    def level(self) -> int:
        """The level in force, from 0, the coarsest; -1 may be set for the finest."""
        return self._current

    @level.setter
    def level(self, level: int) -> None:
        depth, level = self._depth, check_whole(level, "level")
        if not -depth <= level < depth:
            raise ValueError(f"level must lie in 0..{depth - 1}, or be -1. Got {level}.")
        # Kept twice. Eager code reads the int: reading the tensor would wait for the device in
        # every step. Compiled code reads the tensor: an int would be a constant of the graph,
        # which every change of level would compile again.
        self._current = level % depth
        self._level.fill_(self._current)

    @property
    def _options(self) -> Options:
        return Options(self.weight, self.ignore_index, self.reduction, self.label_smoothing)

    def _count(self, tally: Tally, input: Tensor, target: Tensor) -> None:
        """Count how often the most probable cluster is the target's in a batch of the loss."""
        tally.note(input, target, self.ignore_index)

    def _count_evaluated(self, input: Tensor, target: Tensor) -> None:
        """The same, where somebody wants to know of what is evaluated."""
        if self._tally is not None and not self.training:
            self._count(self._tally, input, target)

    def _notice(self) -> None:
        """Count this loss, and warn of one that looks like validation but is not in eval mode."""
        is_training = self.training and torch.is_grad_enabled()
        self._usage.note(is_training)
        is_coarse = self._current < self._depth - 1
        if is_coarse and self.training and not is_training and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"The loss was computed without gradients but in training mode, at level "
                f"{self._current} of 0..{self._depth - 1}, so it says little about the classes; "
                f"call criterion.eval() before validation and criterion.train() after it, as "
                f"model.eval() does not reach a loss outside the model.",
                stacklevel=_CALLER,
            )

    def extra_repr(self) -> str:
        """Return what `print` shows."""
        if self.hierarchy is None:
            return "no hierarchy yet"
        return f"classes={self.hierarchy.num_classes}, level={self.level} of 0..{self._depth - 1}"

    @property
    def _depth(self) -> int:
        return 1 if self.hierarchy is None else len(self.hierarchy.levels)

    def _prepared(self, clusters: Tensor, level: int) -> tuple[Partition, Spans]:
        """Return what a level needs, prepared when first used on a device and then kept."""
        level %= len(clusters)
        found = self._prepared_levels.get(level)
        if found is None or found[0].clusters.device != clusters.device:
            found = Partition(clusters[level]), spans_at(*self._slices, clusters[level])
            self._prepared_levels[level] = found
        return found

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> LevelLoss:
        # What moves a module (to, cuda, ...) calls this; it moves buffers, and the levels are none.
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._move()
        return self

    def _move(self) -> None:
        """Bring the levels to where the level's buffer is; `fn` may also change dtypes."""
        if self._clusters is not None:
            device = self._level.device
            self._clusters = self._clusters.to(device)
            places, own = self._slices
            self._slices = places.to(device), own.to(device)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        # The level is in the metadata rather than among the tensors, so that the keys are those
        # of torch's cross-entropy.
        super()._save_to_state_dict(destination, prefix, keep_vars)
        metadata = getattr(destination, "_metadata", None)
        if metadata is not None:  # a dict that the caller gave need not have any
            metadata[prefix[:-1]]["level"] = self._current

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *args: Any
    ) -> None:
        # 0.1 had the level among the tensors. A state without one leaves the level as it is. Set
        # through the property, so that the tensor follows and a level that does not exist is
        # refused. Without a hierarchy a level means nothing; it is set along with the hierarchy.
        key = f"{prefix}_level"
        level = state_dict.get(key, local_metadata.get("level", self._current))
        if self.hierarchy is not None:
            self.level = int(level) if isinstance(level, Tensor) else level
        others = {name: value for name, value in state_dict.items() if name != key}
        super()._load_from_state_dict(others, prefix, local_metadata, *args)
