"""Lightning Fabric, by which processes train; where it is missing, how to install it."""

from __future__ import annotations

from ..errors import require

require("lightning_fabric", "train")

# ruff: noqa: E402
from lightning_fabric import Fabric, is_wrapped
from lightning_fabric.strategies import STRATEGY_REGISTRY
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.fsdp import FSDPStrategy

__all__ = ["STRATEGY_REGISTRY", "DDPStrategy", "FSDPStrategy", "Fabric", "is_wrapped"]
