"""The classes that count as right, in the tiles of a fused loss.

Each sample has a set of them: its target's cluster, or a wider node. Small sets are lists of
entries. Samples with the same large set are neighbours, and take its columns from their rows
all at once. Either way the work is in proportion to the sizes of the sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

# A set is small with up to this share of all classes. An entry takes up to 50 bytes while they
# are sorted, a logit 4, so that they never need much more memory than the logits.
SMALL_SHARE = 1 / 32


class Sets(NamedTuple):
    """A set of classes for each sample, as a slice of the classes in a certain order.

    Args:
        order: The classes, those of a set side by side.
        starts: Where each sample's set begins.
        stops: Where it ends, exclusive.
    """

    order: Tensor
    starts: Tensor
    stops: Tensor

    def of(self, rows: slice) -> Sets:
        """Return those of some of the samples."""
        return self._replace(starts=self.starts[rows], stops=self.stops[rows])

    def within(self, classes: slice) -> Sets:
        """Return what they have of a slice of all classes, numbered from its first one."""
        if classes == slice(0, len(self.order)):
            return self
        is_in = (self.order >= classes.start) & (self.order < classes.stop)
        before = torch.cat([is_in.new_zeros(1), is_in]).cumsum(0)
        return Sets(self.order[is_in] - classes.start, before[self.starts], before[self.stops])


class Columns:
    """The classes of large sets as columns of each tile, found once for all blocks.

    Args:
        order: See `Sets`.
        tiles: Of the classes.
    """

    def __init__(self, order: Tensor, tiles: list[slice]) -> None:
        self._order = order
        self._edges = _starts(tiles, order.device)
        self._known: dict[tuple[int, int], tuple[Tensor, ...]] = {}

    def of(self, start: int, stop: int) -> tuple[Tensor, ...]:
        """Return the columns in each tile of the set from `start` to `stop`."""
        if (start, stop) not in self._known:
            classes = self._order[start:stop].sort().values
            ends = torch.searchsorted(classes, self._edges)
            columns = classes - self._edges[_tile_of(classes, self._edges)]
            self._known[start, stop] = torch.tensor_split(columns, ends[1:].cpu())
        return self._known[start, stop]


class Within:
    """The sets of a block of samples, which looks at the tiles of their logits one by one.

    Args:
        sets: Those of the block; equal ones should stand side by side.
        tiles: Of the classes.
        columns: Of the same tiles.
    """

    def __init__(self, sets: Sets, tiles: list[slice], columns: Columns) -> None:
        sizes = sets.stops - sets.starts
        is_large = sizes > max(1, SMALL_SHARE * len(sets.order))
        self._entries = Entries(sets, sizes.masked_fill(is_large, 0), tiles)
        self._groups = [
            (rows, columns.of(start, stop)) for rows, start, stop in _groups(sets, is_large)
        ]
        nothing = torch.tensor(-torch.inf, device=sizes.device)
        self._totals = [nothing] * len(self._groups)

    def note(self, at: int, logits: Tensor) -> None:
        """Look at the logits of the tile with the number `at`."""
        self._entries.note(at, logits)
        for number, (rows, columns) in enumerate(self._groups):
            if len(columns[at]):
                inside = logits[rows].index_select(1, columns[at])
                self._totals[number] = running_log_sum(self._totals[number], inside, inside)

    def log_sum(self) -> Tensor:
        """Return the log-sum-exp over each sample's set, once all tiles have been noted."""
        found = self._entries.log_sum()
        for (rows, _), total in zip(self._groups, self._totals, strict=True):
            found[rows] = total
        return found

    def widen(self, own: Tensor, whole: Tensor) -> None:
        """Let the softmax within each set go over more than the classes that are here.

        Args:
            own: What `log_sum` returned.
            whole: The log-sum-exp over all classes of each set.
        """
        self._entries.widen(own, whole)
        self._totals = [whole[rows] for rows, _ in self._groups]

    def slope(self, at: int, logits: Tensor, total: Tensor) -> None:
        """Turn a tile's logits into the derivatives of the losses, in place.

        They are the softmax over all classes minus the softmax within the set, see `_marginal`.
        """
        shares = [self._shares(at, number, logits) for number in range(len(self._groups))]
        logits.sub_(total[:, None]).exp_()
        self._entries.subtract(at, logits)
        for (rows, columns), share in zip(self._groups, shares, strict=True):
            index = columns[at].expand(share.shape)
            logits[rows].scatter_add_(1, index, share)

    def _shares(self, at: int, number: int, logits: Tensor) -> Tensor:
        """Return the softmax within the set of a group in a tile, negated."""
        rows, columns = self._groups[number]
        # A set that is all -inf has a softmax of 0.
        total = self._totals[number].clamp_min(torch.finfo(logits.dtype).min)
        inside = logits[rows].index_select(1, columns[at])
        return inside.sub_(total[:, None]).exp_().neg_()


class Entries:
    """The classes of small sets, as a list of rows and columns.

    Args:
        sets: Those of the block.
        sizes: How many classes they have; 0 for sets to leave out.
        tiles: Of the classes.
    """

    def __init__(self, sets: Sets, sizes: Tensor, tiles: list[slice]) -> None:
        count = int(sizes.sum())
        self._sizes = sizes
        rows = torch.repeat_interleave(sizes, output_size=count)
        firsts = sizes.cumsum(0) - sizes
        places = torch.arange(count, device=sizes.device) + (sets.starts - firsts)[rows]
        # Sorted, so that those of a tile are a slice.
        classes, by_class = sets.order[places].sort()
        self._rows = rows[by_class]
        starts = _starts(tiles, sizes.device)
        self._columns = classes - starts[_tile_of(classes, starts)]
        edges = torch.searchsorted(classes, starts).tolist()
        self._parts = [slice(*pair) for pair in pairwise([*edges, count])]
        self._values: list[Tensor] = []

    def note(self, at: int, logits: Tensor) -> None:
        """Look at the logits of the tile with the number `at`."""
        self._values.append(logits[self._rows[self._parts[at]], self._columns[self._parts[at]]])

    def log_sum(self) -> Tensor:
        """Return the log-sum-exp over each sample's set; -inf for those left out."""
        values, rows = torch.cat(self._values), self._rows
        if (self._sizes == 1).all():  # the softmax within a class is 1
            self._shares = torch.ones_like(values)
            return torch.empty_like(values).index_copy_(0, rows, values)
        limits = torch.finfo(values.dtype)
        largest = values.new_full((len(self._sizes),), -torch.inf)
        largest = largest.scatter_reduce_(0, rows, values, "amax")
        largest.clamp_min_(limits.min)  # as -inf - -inf is NaN
        shares = values.sub_(largest[rows]).exp_()
        total = torch.zeros_like(largest).index_add_(0, rows, shares)
        self._shares = shares.div_(total.clamp_min(limits.tiny)[rows])
        return total.log_().add_(largest)

    def widen(self, own: Tensor, whole: Tensor) -> None:
        """See `Within.widen`."""
        smallest = torch.finfo(own.dtype).min  # as -inf - -inf is NaN
        part = (own.clamp_min(smallest) - whole.clamp_min(smallest)).exp_()
        self._shares.mul_(part[self._rows])

    def subtract(self, at: int, probabilities: Tensor) -> None:
        """Subtract the softmax within the sets from a tile's softmax, in place."""
        part = self._parts[at]
        index = self._rows[part], self._columns[part]
        probabilities.index_put_(index, -self._shares[part], accumulate=True)


def _groups(sets: Sets, is_large: Tensor) -> Iterator[tuple[slice, int, int]]:
    """Yield runs of samples with the same large set: rows, and where the set starts and stops."""
    edges = torch.stack([sets.starts, sets.stops, is_large.long()], dim=1)
    found, counts = torch.unique_consecutive(edges, dim=0, return_counts=True)
    at = 0
    for (start, stop, large), count in zip(found.tolist(), counts.tolist(), strict=True):
        if large:
            yield slice(at, at + count), start, stop
        at += count


def _starts(tiles: list[slice], device: torch.device) -> Tensor:
    """Return where each tile begins."""
    return torch.tensor([tile.start for tile in tiles], dtype=torch.int64, device=device)


def _tile_of(classes: Tensor, starts: Tensor) -> Tensor:
    """Return the number of the tile of each class."""
    return torch.searchsorted(starts, classes, right=True) - 1


def running_log_sum(before: Tensor, logits: Tensor, scratch: Tensor) -> Tensor:
    """Return the log-sum-exp of each row, together with that of the columns before.

    Args:
        before: The result for the columns before; -inf where there are none.
        logits: Of shape (rows, columns).
        scratch: Of the same shape, to be overwritten; may be `logits`.
    """
    largest = logits.amax(dim=1, keepdim=True)
    largest.clamp_min_(torch.finfo(logits.dtype).min)  # as -inf - -inf is NaN
    sums = torch.sub(logits, largest, out=scratch).exp_().sum(dim=1)
    return torch.logaddexp(before, sums.log_().add_(largest.squeeze(1)))
