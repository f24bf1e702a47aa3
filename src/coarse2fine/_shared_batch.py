"""The samples of all processes that the classes of a layer are divided among."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ._shards import Shards, answering


class Batch(NamedTuple):
    """The samples of all processes, one process after the other.

    Args:
        shards: Where the classes are.
        counts: How many samples each process has.
    """

    shards: Shards
    counts: list[int]

    @property
    def own(self) -> slice:
        """The samples of this process."""
        if self.shards.group is None:
            return slice(0, self.counts[0])
        rank = dist.get_rank(self.shards.group)
        start = sum(self.counts[:rank])
        return slice(start, start + self.counts[rank])

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all samples from those of each process."""
        group = self.shards.group
        if group is None:
            return own
        # Of one length, as Gloo wants it.
        sent = own.new_zeros(max(self.counts), *own.shape[1:])
        sent[: len(own)] = own
        found = [torch.empty_like(sent) for _ in self.counts]
        with answering(self.shards):
            dist.all_gather(found, sent, group)
        return torch.cat([rows[:count] for rows, count in zip(found, self.counts, strict=True)])

    def hand_back(self, parts: Tensor) -> Tensor:
        """Return the sum over the processes of the gradients of this process's features.

        It is multiplied by the number of processes, by which DDP divides what follows from it.
        """
        group = self.shards.group
        if group is None:
            return parts
        own = self.counts[dist.get_rank(group)]
        found = parts.new_empty(len(self.counts) * own, *parts.shape[1:])
        with answering(self.shards):
            dist.all_to_all_single(
                found, parts.contiguous(), [own] * len(self.counts), self.counts, group
            )
        return found.view(len(self.counts), own, *parts.shape[1:]).sum(dim=0) * len(self.counts)

    def own_columns(self, rows: Tensor) -> Tensor:
        """Return the columns of this process's classes of all samples.

        Args:
            rows: All columns of this process's samples.
        """
        group = self.shards.group
        if group is None:
            return rows
        as_sent = rows.to(torch.uint8) if rows.dtype == torch.bool else rows
        parts = [as_sent[:, part].reshape(-1) for part in self.shards.parts]
        width = self.shards.own.stop - self.shards.own.start
        found = as_sent.new_empty(sum(self.counts), width)
        with answering(self.shards):
            dist.all_to_all_single(
                found.view(-1),
                torch.cat(parts),
                [count * width for count in self.counts],
                [len(part) for part in parts],
                group,
            )
        return found.to(rows.dtype)

    def all_columns(self, parts: Tensor) -> Tensor:
        """Return all classes' columns of this process's samples.

        Args:
            parts: The columns of this process's classes, of all samples.
        """
        group = self.shards.group
        if group is None:
            return parts
        own = self.counts[dist.get_rank(group)]
        widths = [part.stop - part.start for part in self.shards.parts]
        found = parts.new_empty(own * self.shards.classes)
        with answering(self.shards):
            dist.all_to_all_single(
                found,
                parts.contiguous().view(-1),
                [own * width for width in widths],
                [count * parts.shape[1] for count in self.counts],
                group,
            )
        blocks = torch.split(found, [own * width for width in widths])
        return torch.cat([it.view(own, width) for it, width in zip(blocks, widths, strict=True)], 1)
