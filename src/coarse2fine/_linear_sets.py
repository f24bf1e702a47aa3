"""The classes that count as right, in the tiles of a fused loss.

Each sample has a set of them: its target's cluster, or a wider node. Two ways to find them do
the same. `Entries` lists them one by one, which suits sets that are small beside all classes;
`Masks` looks at every class of a tile.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

# Entries are used where the sets have up to this share of all classes. One takes up to 50 bytes
# while they are sorted, a logit 4, so that they never need much more memory than the logits.
SMALL_SHARE = 1 / 32


class Sets(NamedTuple):
    """A set of classes for each sample, as a slice of the classes in a certain order.

    Args:
        order: The classes, those of a set side by side.
        places: Where in the order each class stands.
        starts: Where each sample's set begins.
        stops: Where it ends, exclusive.
    """

    order: Tensor
    places: Tensor
    starts: Tensor
    stops: Tensor

    def of(self, rows: slice) -> Sets:
        """Return those of some of the samples."""
        return self._replace(starts=self.starts[rows], stops=self.stops[rows])


class Within(Protocol):
    """What is known of the sets of a block of samples."""

    def note(self, at: int, logits: Tensor) -> None:
        """Look at the logits of the tile with the number `at`."""

    def log_sum(self) -> Tensor:
        """Return the log-sum-exp over each sample's set, once all tiles have been noted."""

    def slope(self, at: int, logits: Tensor, total: Tensor) -> None:
        """Turn a tile's logits into the derivatives of the losses, in place.

        They are the softmax over all classes minus the softmax within the set, see `_marginal`.
        """


def within(sets: Sets, tiles: list[slice]) -> Within:
    """Return the way that suits the sizes of the sets of a block."""
    sizes = sets.stops - sets.starts
    count = int(sizes.sum())
    most = SMALL_SHARE * len(sizes) * len(sets.order)
    if count == len(sizes) or count <= most:
        return Entries(sets, sizes, count, tiles)
    return Masks(sets, tiles)


class Entries:
    """The classes of the sets of a block, as a list of rows and columns."""

    def __init__(self, sets: Sets, sizes: Tensor, count: int, tiles: list[slice]) -> None:
        self._rows_count = len(sizes)
        rows = torch.repeat_interleave(sizes, output_size=count)
        firsts = sizes.cumsum(0) - sizes
        places = torch.arange(count, device=sizes.device) + (sets.starts - firsts)[rows]
        # Sorted, so that those of a tile are a slice.
        classes, by_class = sets.order[places].sort()
        self._rows = rows[by_class]
        starts = torch.tensor([tile.start for tile in tiles], device=sizes.device)
        self._columns = classes - starts[torch.searchsorted(starts, classes, right=True) - 1]
        edges = torch.searchsorted(classes, starts).tolist()
        self._parts = [slice(*pair) for pair in zip(edges, [*edges[1:], count], strict=True)]
        self._values: list[Tensor] = []

    def note(self, at: int, logits: Tensor) -> None:
        self._values.append(logits[self._rows[self._parts[at]], self._columns[self._parts[at]]])

    def log_sum(self) -> Tensor:
        values, rows = torch.cat(self._values), self._rows
        if len(values) == self._rows_count:  # a class each: its softmax within the set is 1
            self._shares = torch.ones_like(values)
            return torch.empty_like(values).index_copy_(0, rows, values)
        largest = values.new_full((self._rows_count,), -torch.inf)
        largest = largest.scatter_reduce_(0, rows, values, "amax")
        largest.clamp_min_(torch.finfo(values.dtype).min)  # as -inf - -inf is NaN
        shares = values.sub_(largest[rows]).exp_()
        total = torch.zeros_like(largest).index_add_(0, rows, shares)
        tiny = torch.finfo(values.dtype).tiny  # where all are -inf the shares are 0
        self._shares = shares.div_(total.clamp_min(tiny)[rows])
        return total.log_().add_(largest)

    def slope(self, at: int, logits: Tensor, total: Tensor) -> None:
        logits.sub_(total[:, None]).exp_()
        part = self._parts[at]
        index = self._rows[part], self._columns[part]
        logits.index_put_(index, -self._shares[part], accumulate=True)


class Masks:
    """The classes of the sets of a block, as a mask of each tile."""

    def __init__(self, sets: Sets, tiles: list[slice]) -> None:
        self._places = [sets.places[tile] for tile in tiles]
        self._starts, self._stops = sets.starts[:, None], sets.stops[:, None]
        self._total = torch.tensor(-torch.inf, device=sets.starts.device)

    def note(self, at: int, logits: Tensor) -> None:
        inside = torch.where(self._outside(at), -torch.inf, logits)
        self._total = running_log_sum(self._total, inside, inside)

    def log_sum(self) -> Tensor:
        return self._total

    def slope(self, at: int, logits: Tensor, total: Tensor) -> None:
        # A set that is all -inf has a softmax of 0.
        own = self.log_sum().clamp_min(torch.finfo(logits.dtype).min)
        shares = (logits - own[:, None]).exp_().masked_fill_(self._outside(at), 0)
        logits.sub_(total[:, None]).exp_().sub_(shares)

    def _outside(self, at: int) -> Tensor:
        places = self._places[at]
        return (places < self._starts) | (places >= self._stops)


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
