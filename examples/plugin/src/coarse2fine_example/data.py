"""Points on rings, made when they are asked for."""

from __future__ import annotations

import torch

from coarse2fine.data import Source, Split

NAMES = ("inner left", "inner right", "outer left", "outer right")
COUNT = 400


def load_rings() -> Source:
    """Return points on two rings, each divided into a left and a right half.

    A loader may take ``folder``, where data on this machine is, and ``image_size``, the side that
    images are brought to; it is given those that it names.
    """
    rng = torch.Generator().manual_seed(0)
    targets = torch.arange(COUNT) % len(NAMES)
    side = torch.where(targets % 2 == 0, torch.pi, 0.0)
    angle = side + torch.pi * (torch.rand(COUNT, generator=rng) - 0.5)
    radius = 1 + targets // 2 + 0.1 * torch.randn(COUNT, generator=rng)
    points = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    return Source("table", Split(points, targets, NAMES), columns=("x", "y"))
