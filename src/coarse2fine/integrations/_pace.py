"""How an adaptive curriculum goes from epoch to epoch in another library.

While the library validates, the loss counts hits at the level, as it sees logits and targets
anyway. The step after an epoch is made when the next one begins: until then early stopping, logs
and checkpoints see the level that was trained, whoever is called first after a validation.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

import torch

from .._tally import Tally
from ..curriculum import Curriculum
from ..hierarchy import Hierarchy


class Pace:
    """Steps an adaptive curriculum by what the library's own validation shows.

    The step after an epoch is made when the next one begins. Until then the curriculum is at
    the level that was trained, for all that ask, and checkpoints have the accuracy; so it does
    not matter who comes first after a validation.

    Args:
        curriculum: With patience.
        epoch: The library's epoch at which training begins.
        remedy: What to do where an epoch is not validated.

    Attributes:
        epoch: The library's epoch that is trained.
        accuracy: At the level, after the last validation in that epoch; None before the first.
    """

    def __init__(self, curriculum: Curriculum, epoch: int, remedy: str) -> None:
        self.curriculum = curriculum
        self.epoch = epoch
        self.accuracy: float | None = None
        self._remedy = remedy
        self._is_resumed = False
        # That many validations without a step are no sign of a forgotten one here.
        curriculum.criterion._usage.most_turns = None

    def begin_epoch(self, epoch: int) -> None:
        """Make the step after the epoch before; an epoch may be begun more than once."""
        if epoch > self.epoch:
            self._step()
        self.epoch, self._is_resumed = epoch, False

    def _step(self) -> None:
        if self.accuracy is None and not self.curriculum.is_finest:
            if not self._is_resumed:
                raise ValueError(self.complaint())
            warnings.warn(
                f"The checkpoint was written between the end of epoch {self.epoch} and its "
                f"validation, so that this epoch does not count for the curriculum.",
                stacklevel=4,
            )
            return
        self.curriculum.step(self.accuracy)
        self.accuracy = None

    def complaint(self) -> str:
        """Return what is wrong where the epoch's accuracy is needed and not there."""
        return (
            f"with patience the curriculum needs the validation accuracy after each epoch, and "
            f"there is none of epoch {self.epoch}; {self._remedy}, or give epochs=T in place of "
            f"patience."
        )

    def tally(self, device: torch.device | str) -> Tally | None:
        """Return what counts hits at the level in force; None at the finest, which needs none."""
        if self.curriculum.is_finest:
            return None
        hierarchy = cast(Hierarchy, self.curriculum.criterion.hierarchy)
        clusters = torch.tensor(hierarchy.levels[self.curriculum.level], device=device)
        return Tally(clusters, hierarchy.nodes)

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to go on, as plain values."""
        own = {"trained": self.epoch, "accuracy": self.accuracy}
        return self.curriculum.state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` returned."""
        self.curriculum.load_state_dict(state)
        self.epoch, self.accuracy, self._is_resumed = state["trained"], state["accuracy"], True
