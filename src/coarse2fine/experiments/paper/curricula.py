"""What the paper's experiments have in common: its two curricula, and how it divides samples."""

from __future__ import annotations

from ..declaration import Variant

AS_PAPER = {"stratify": False}  # a plain random 20% is for validation
CONTINUOUS = Variant("continuous", label="C2F")
STAGED_CURRICULUM = Variant("staged", label="C2F staged")
