"""The loss of targets that are sets of classes, from features, in tiles of the logits.

A block of samples goes over all classes twice. The first time gives each sample the log-sum-exp
over all classes and over its set, and so its loss. The second time turns the logits, tile by
tile, into their gradient and multiplies it at once into those of features and weight. A tile
stays in the processor's cache for all that is done to its entries one by one, so that next to
nothing is left beside the matrix products.

Between the two the logits of a block are kept, if memory allows for a block of enough samples:
that is three matrix products, and the weight's gradient is read and written once a block. With
more classes the blocks would be so small that this reading and writing takes longer than a
matrix product. Then there is one tile's memory only, the logits are computed twice, and blocks
are as large as one likes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ._linear_layer import Gradients, Layer
from ._linear_sets import Columns, Sets, Within, running_log_sum
from ._shards import Shards

# Of a tile, for each thread: 1 MiB in float32, as large as a level-2 cache often is.
TILE_ENTRIES = 2**18
# Of the logits that are kept: 64 MiB in float32.
KEPT_ENTRIES = 2**24
# Logits are kept for no fewer samples. With b samples in a block, computing the logits again
# takes 2bE operations a class, and reading and writing the weight's gradient moves 8E bytes;
# on CPUs of today, of 10 to 20 operations a byte, they are even at about 64.
FEWEST_ROWS = 64
MOST_ROWS = 256  # larger blocks gain no speed
MOST_ROWS_AGAIN = 1024  # where logits are computed again


class Plan(NamedTuple):
    """How the logits are divided.

    Args:
        rows: The samples of a block.
        columns: The classes of a tile.
        is_kept: Whether the logits of a block are kept rather than computed again.
    """

    rows: int
    columns: int
    is_kept: bool


def make_plan(samples: int, classes: int) -> Plan:
    """Return the plan for so many samples and classes.

    Args:
        samples: N.
        classes: K.

    Examples:
        >>> make_plan(2048, 100_000)[::2]
        (158, True)
        >>> make_plan(512, 1_000_000)[::2]
        (512, False)
    """
    fitting = KEPT_ENTRIES // classes
    is_kept = fitting >= min(samples, FEWEST_ROWS)
    most = max(1, min(fitting, MOST_ROWS)) if is_kept else MOST_ROWS_AGAIN
    rows = math.ceil(samples / math.ceil(samples / most)) if samples else 1
    columns = TILE_ENTRIES * torch.get_num_threads() // rows
    return Plan(rows, min(max(columns, 1), classes), is_kept)


def slices(length: int, step: int) -> list[slice]:
    """Return slices of `step` that together are all of `length`."""
    return [slice(at, min(at + step, length)) for at in range(0, length, step)]


def tiled_losses(
    layer: Layer, sets: Sets, grads: Gradients, scale: Tensor | None, shards: Shards
) -> Tensor:
    """Return -log of the probability of each sample's set, and add up the gradients.

    Args:
        layer: What gives the logits.
        sets: One for each sample; equal ones should stand side by side.
        grads: Those to add to.
        scale: What each loss is multiplied by for the gradients; None if there are to be none.
        shards: Where the classes are. `layer`, `sets` and `grads` are of those of this process.
    """
    samples, classes = len(layer.input), len(layer.weight)
    plan = make_plan(samples, shards.largest)  # the same blocks in all processes
    tiles = slices(classes, plan.columns)
    is_kept = plan.is_kept and scale is not None
    memory = Memory(layer.input, plan, classes, is_kept=is_kept)
    walk = Pass(layer, sets, grads, scale, tiles, Columns(sets.order, tiles), memory, shards)
    losses = [walk.block_losses(rows) for rows in slices(samples, plan.rows)]
    return torch.cat([layer.input.new_empty(0), *losses])


class Memory:
    """Memory for logits that is used again and again.

    Args:
        like: Gives type and device.
        plan: How large a tile is.
        classes: How many there are.
        is_kept: Whether there is room for the logits of a whole block.
    """

    def __init__(self, like: Tensor, plan: Plan, classes: int, *, is_kept: bool) -> None:
        # With one tile, its room is that of the whole block.
        self.is_kept = is_kept or plan.columns >= classes
        columns = classes if is_kept else plan.columns
        self._logits = like.new_empty(plan.rows * columns)
        self._scratch = like.new_empty(plan.rows * plan.columns)

    def tile(self, rows: int, tile: slice) -> Tensor:
        """Return the room for the logits of some samples in a tile."""
        start = rows * tile.start if self.is_kept else 0
        columns = tile.stop - tile.start
        return self._logits[start : start + rows * columns].view(rows, columns)

    def scratch(self, rows: int, tile: slice) -> Tensor:
        """Return a second room of the same shape, for a moment."""
        columns = tile.stop - tile.start
        return self._scratch[: rows * columns].view(rows, columns)


@dataclass
class Pass:
    """A pass over the logits; see `tiled_losses`.

    Args:
        layer: See `tiled_losses`, as for all up to `scale`.
        sets: One for each sample.
        grads: Those to add to.
        scale: What each loss is multiplied by.
        tiles: Of the classes.
        columns: Of the tiles.
        memory: For the logits of a block.
        shards: See `tiled_losses`.
    """

    layer: Layer
    sets: Sets
    grads: Gradients
    scale: Tensor | None
    tiles: list[slice]
    columns: Columns
    memory: Memory
    shards: Shards

    def block_losses(self, rows: slice) -> Tensor:
        """Return the losses of a block of samples, and add their gradients."""
        within = Within(self.sets.of(rows), self.tiles, self.columns)
        count = rows.stop - rows.start
        total = self.layer.input.new_full((count,), -torch.inf)
        for at, tile in enumerate(self.tiles):
            logits = self.layer.logits(rows, tile, self.memory.tile(count, tile))
            within.note(at, logits)
            total = running_log_sum(total, logits, self.memory.scratch(count, tile))
        own = within.log_sum() if self.tiles else total
        if self.shards.group is not None:
            total, whole = self.shards.log_sums(torch.stack([total, own]))
            if self.tiles:
                within.widen(own, whole)
            own = whole
        losses = total - own
        if self.scale is not None:
            self.grads.begin(rows, self.scale[rows])
            self._add_gradients(rows, within, total)
            self.grads.end()
        return losses

    def _add_gradients(self, rows: slice, within: Within, total: Tensor) -> None:
        for at, tile in enumerate(self.tiles):
            logits = self.memory.tile(len(total), tile)
            if not self.memory.is_kept:
                self.layer.logits(rows, tile, logits)
            within.slope(at, logits, total)
            self.grads.add(tile, logits)
