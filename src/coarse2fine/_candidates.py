"""Targets that are sets of classes: nodes of a hierarchy, and masks of candidates.

At a level a class stands for its whole cluster, so a set is widened to the clusters it touches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ._marginal import LARGE_SHARE, along_classes
from .nodes import Nodes


class Spans(NamedTuple):
    """The nodes of a hierarchy at a level, each a slice of the classes in a certain order.

    No shape depends on the level, so that torch.compile needs no new graph for another one.

    Args:
        places: Where in the order each class stands.
        own: Where each node begins and ends, of shape (nodes, 2).
        level: The same of the coarser of each node and its cluster at the level.
    """

    places: Tensor
    own: Tensor
    level: Tensor

    def outside(self, target: Tensor, input: Tensor) -> Tensor:
        """Return which classes are not in each target at the level."""
        return _outside(self.level, self.places, target, input)

    def edges(self, target: Tensor) -> tuple[Tensor, ...]:
        """Return where each target begins and ends at the level."""
        return _edges(self.level, target)

    def is_everything(self, target: Tensor) -> Tensor:
        """Return which targets are all classes at the level."""
        starts, stops = self.edges(target)
        return stops - starts == len(self.places)

    def members(self, target: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the classes of each target at the level, in slots; see `Partition.members`.

        Of targets that are all classes only one is returned. None where another target has so
        many that a mask is better.
        """
        starts, stops = (edge.reshape(-1) for edge in self.edges(target))
        sizes = (stops - starts).masked_fill(stops - starts == len(self.places), 1)
        width = int(sizes.max()) if len(sizes) else 1
        if width > LARGE_SHARE * len(self.places):
            return None
        order = torch.zeros(len(self.places) + width, dtype=torch.int64, device=target.device)
        order.scatter_(0, self.places, torch.arange(len(self.places), device=target.device))
        slots = torch.arange(width, device=target.device)
        is_empty = slots >= sizes[:, None]
        empty = torch.zeros(is_empty.shape, dtype=torch.float32, device=target.device)
        members, empty = order[starts[:, None] + slots], empty.masked_fill_(is_empty, -torch.inf)
        shape = *target.shape, width
        return members.view(shape).movedim(-1, 1), empty.view(shape).movedim(-1, 1)

    def weights(self, weight: Tensor, target: Tensor, input: Tensor) -> Tensor:
        """Return the mean weight of the classes of each target itself."""
        return mean_weights(weight, ~_outside(self.own, self.places, target, input))


def node_slices(nodes: Nodes) -> tuple[Tensor, Tensor]:
    """Return the first two parts of `Spans`, which are the same at all levels."""
    places = torch.from_numpy(np.argsort(nodes.order))
    return places, torch.from_numpy(np.stack([nodes.starts, nodes.stops], axis=1))


def class_spans(clusters: Tensor) -> Spans:
    """Return the spans of a level without a hierarchy, whose only nodes are the classes."""
    places = torch.argsort(torch.argsort(clusters, stable=True))
    return spans_at(places, torch.stack([places, places + 1], dim=1), clusters)


def spans_at(places: Tensor, own: Tensor, clusters: Tensor) -> Spans:
    """Widen nodes to the clusters that they touch.

    Args:
        places: See `Spans`.
        own: See `Spans`.
        clusters: The cluster of each class; those of a cluster stand side by side.
    """
    # As many columns as there are classes, since the number of clusters may be no shape.
    starts = torch.full_like(places, len(places)).scatter_reduce(0, clusters, places, "amin")
    stops = torch.zeros_like(places).scatter_reduce(0, clusters, places + 1, "amax")
    ordered = torch.empty_like(clusters).scatter(0, places, clusters)
    first, last = ordered[own[:, 0]], ordered[own[:, 1] - 1]
    return Spans(places, own, torch.stack([starts[first], stops[last]], dim=1))


def check_nested(nodes: Nodes, clusters: Tensor) -> None:
    """Raise a `ValueError` where clusters are no level of the nodes' hierarchy."""
    if len(clusters) != nodes.num_classes:
        raise ValueError(
            f"the nodes are of {nodes.num_classes} classes, and clusters has {len(clusters)}."
        )
    ordered = clusters.cpu().numpy()[nodes.order]
    pieces = 1 + np.count_nonzero(np.diff(ordered))
    if pieces != len(np.unique(ordered)):
        raise ValueError("clusters must be a level of the hierarchy that the nodes belong to.")


def widened(mask: Tensor, clusters: Tensor) -> Tensor:
    """Return a mask of all classes whose cluster has a class in `mask`."""
    index = along_classes(clusters, mask).expand_as(mask)
    counts = torch.zeros(mask.shape, dtype=torch.int32, device=mask.device)
    return counts.scatter_add(1, index, mask.int()).gather(1, index) > 0


def mean_weights(weight: Tensor, mask: Tensor) -> Tensor:
    """Return the mean weight of the classes in each set."""
    total = torch.where(mask, along_classes(weight, mask), 0).sum(dim=1)
    return total / mask.sum(dim=1)


def check_mask(mask: Tensor) -> None:
    """Raise a `ValueError` that names the first row of a mask without any class."""
    is_empty = ~mask.any(dim=min(1, mask.dim() - 1))
    if is_empty.any():
        row = tuple(is_empty.nonzero()[0].tolist())
        place = f"[{', '.join(map(str, row))}]" if row else ""
        raise ValueError(f"target{place} has no candidate class; a mask needs at least one a row.")


def _outside(edges: Tensor, places: Tensor, target: Tensor, input: Tensor) -> Tensor:
    starts, stops = (edge.unsqueeze(1) for edge in _edges(edges, target))
    places = along_classes(places, input)
    return (places < starts) | (places >= stops)


def _edges(edges: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    # index_select refuses negative indices, which plain indexing would wrap around.
    found = edges.index_select(0, target.reshape(-1))
    return found.view(*target.shape, 2).unbind(-1)
