"""Batches on a device: normalised, augmented and dealt out to processes as whole tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .._util.seeds import seed_of
from .dataloader import loaded
from .split import Split

# Inputs up to this size are kept on the device for good.
_RESIDENT_BYTES = 2 << 30


@dataclass(frozen=True)
class Transform:
    """What happens to a batch of inputs before the model sees it.

    Bytes become floats from 0 to 1 first; `mean` and `std` are in that scale.

    Args:
        mean: Subtracted, one a channel or column. Defaults to none.
        std: Divided by, one a channel or column. Defaults to none.
        padding: In training, images are padded by so many black pixels and cropped at
            random to their own size. Defaults to 0.
        flip: In training, half of the images are mirrored. Defaults to False.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    padding: int = 0
    flip: bool = False

    def normalise(self, inputs: Tensor) -> Tensor:
        """Return the inputs as the model takes them, in the layout they have."""
        is_bytes = inputs.dtype == torch.uint8
        if is_bytes:
            inputs = inputs.float().div_(255)
        if not self.mean:
            return inputs
        shape = (-1,) + (1,) * (inputs.dim() - 2)
        mean, std = (inputs.new_tensor(value).view(shape) for value in (self.mean, self.std))
        if inputs.dim() == 4 and inputs.stride(1) == 1:
            # Pixel by pixel, torch would go through three numbers at a time.
            mean, std = (torch.empty_like(inputs[:1]).copy_(value) for value in (mean, std))
        # Bytes were copied already; what is given as floats must stay as it is.
        return (inputs.sub_(mean) if is_bytes else inputs.sub(mean)).div_(std)

    def augment(self, images: Tensor, draws: Tensor) -> Tensor:
        """Return the images cropped and mirrored at random.

        Args:
            images: Of shape (N, C, H, W).
            draws: Random numbers from 0 to 1 of shape (N, 3): row, column, mirror.
        """
        if self.padding:
            images = _crop(images, self.padding, draws[:, :2])
        if self.flip:
            images = torch.where((draws[:, 2] < 0.5).view(-1, 1, 1, 1), images.flip(-1), images)
        return images

    @property
    def is_random(self) -> bool:
        """Whether training sees other inputs than evaluation."""
        return bool(self.padding or self.flip)


@dataclass(frozen=True)
class Batch:
    """The part of a batch that one process computes.

    Args:
        inputs: As the model takes them.
        targets: Their classes.
        rows: Their rows in the split.
        total: How many samples the whole batch has.
        share: What the mean loss over these is multiplied by, so that the mean over the
            processes is that of the whole batch; 0 where this process has nothing to do.
    """

    inputs: Tensor
    targets: Tensor
    rows: Tensor
    total: int
    share: float

    def split(self, parts: int) -> list[Batch]:
        """Return the batch in so many parts, as equal as can be."""
        if parts == 1:
            return [self]
        fields = (self.inputs, self.targets, self.rows)
        scale = self.share / len(self.rows)
        return [
            Batch(inputs, targets, rows, self.total, len(rows) * scale)
            for inputs, targets, rows in zip(
                *(field.tensor_split(parts) for field in fields), strict=True
            )
            if len(rows)
        ]


class Batches:
    """The batches of a split, for one process of several.

    All randomness is a function of the key given to `shuffled`, drawn for the whole batch
    and then dealt out, so that several processes train on what one would.

    Args:
        split: The samples.
        transform: See `Transform`.
        batch_size: Of all processes together.
        device: Where the batches go. Defaults to the CPU.
        rank: Which process this is. Defaults to 0.
        world: How many processes there are. Defaults to 1.
        workers: How many processes read lazy inputs. Defaults to 0: this one.
        channels_last: Whether images are laid out pixel by pixel. Defaults to False.
        augments_files: Whether images read from files are cropped and mirrored at random
            in training. Defaults to True.
    """

    def __init__(
        self,
        split: Split,
        transform: Transform,
        batch_size: int,
        *,
        device: torch.device | str = "cpu",
        rank: int = 0,
        world: int = 1,
        workers: int = 0,
        channels_last: bool = False,
        augments_files: bool = True,
    ) -> None:
        self.split, self.transform, self.batch_size = split, transform, batch_size
        self.device, self.rank, self.world, self.workers = device, rank, world, workers
        self._inputs: Any = split.inputs
        self._reads_at_random = augments_files or not getattr(split.inputs, "is_plain", False)
        self._format = torch.contiguous_format
        if isinstance(split.inputs, Tensor):
            if channels_last and split.inputs.dim() == 4:
                self._format = torch.channels_last
                self._inputs = split.inputs.contiguous(memory_format=self._format)
            if self._inputs.nbytes <= _RESIDENT_BYTES:
                self._inputs = self._inputs.to(device)
        elif channels_last and len(split) and split.sample(0).dim() == 3:
            self._format = torch.channels_last
        self._targets = split.targets.to(device)

    @property
    def is_channels_last(self) -> bool:
        """Whether the batches are images laid out pixel by pixel."""
        return self._format is torch.channels_last

    def shuffled(self, key: tuple[int, ...]) -> Iterator[Batch]:
        """Yield every sample once in an order that the key settles, augmented."""
        # On the CPU whatever the device, as every kind of device has another stream.
        generator = torch.Generator().manual_seed(seed_of("batches", *key))
        order = torch.randperm(len(self.split), generator=generator)
        augments = self.transform.is_random and isinstance(self._inputs, Tensor)
        for rows, raw in self._read(order, key if self._reads_at_random else None):
            inputs = raw.to(self.device)
            if augments:
                # For the whole batch: a process that drew for its part alone would be at
                # another place in the stream than one that trains by itself.
                draws = torch.rand(len(rows), 3, generator=generator)
                inputs = self.transform.augment(inputs, self._deal(draws).to(self.device))
            yield self._batch(rows, self.transform.normalise(inputs))

    def in_order(self) -> Iterator[Batch]:
        """Yield every sample once, in order and as it is."""
        for rows, raw in self._read(torch.arange(len(self.split)), None):
            yield self._batch(rows, self.transform.normalise(raw.to(self.device)))

    def _read(self, order: Tensor, key: tuple[int, ...] | None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each whole batch's rows, and the inputs of this process's part of it."""
        batches = list(torch.split(order, self.batch_size)) if len(order) else []
        if len(batches) > 1 and len(batches[-1]) == 1 < self.batch_size:  # too few for batch norm
            batches[-2:] = [torch.cat(batches[-2:])]
        if isinstance(self._inputs, Tensor):
            for rows in batches:
                yield rows, self._inputs[self._deal(rows).to(self._inputs.device)]
        else:
            parts = [self._deal(rows).tolist() for rows in batches]
            yield from zip(batches, loaded(self._inputs, parts, key, self.workers), strict=True)

    def _batch(self, rows: Tensor, inputs: Tensor) -> Batch:
        mine = self._deal(rows)
        is_idle = self.rank >= len(rows)
        share = 0.0 if is_idle else len(mine) * self.world / len(rows)
        inputs = inputs.contiguous(memory_format=self._format)
        targets = self._targets[mine.to(self._targets.device)]
        return Batch(inputs, targets, mine, len(rows), share)

    def _deal(self, rows: Tensor) -> Tensor:
        """Return this process's part; one with none computes the first row, without effect."""
        mine = rows[self.rank :: self.world]
        return mine if len(mine) else rows[:1]


def channel_statistics(inputs: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean and standard deviation of each channel or column.

    A column that never changes gets the deviation 1, so that it can be divided by.
    """
    if inputs.dtype == torch.uint8:
        channels = [channel.flatten() for channel in inputs.transpose(0, 1)]
        counts = torch.stack([channel.bincount(minlength=256) for channel in channels]).double()
        values = torch.arange(256).double() / 255
        mean = (counts @ values) / counts.sum(1)
        variance = (counts * (values - mean[:, None]) ** 2).sum(1) / counts.sum(1)
    else:
        flat = inputs.transpose(0, 1).flatten(1).double()
        mean, variance = flat.mean(1), flat.var(1, unbiased=False)
    std = variance.sqrt()
    # Less than rounding gives is no deviation.
    std = torch.where(std > 1e-12 + 1e-12 * mean.abs(), std, 1.0)
    return tuple(mean.tolist()), tuple(std.tolist())


def _crop(images: Tensor, padding: int, draws: Tensor) -> Tensor:
    count, _, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)
    corners = (draws * (2 * padding + 1)).long()
    rows = corners[:, 0, None] + torch.arange(height, device=images.device)
    columns = corners[:, 1, None] + torch.arange(width, device=images.device)
    each = torch.arange(count, device=images.device).view(-1, 1, 1)
    # Channels last: an advanced index beside a slice puts the indexed dimensions first.
    return padded[each, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
