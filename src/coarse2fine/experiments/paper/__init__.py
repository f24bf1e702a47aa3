"""The experiments of the paper, declared, and what they have in common.

`published` has the paper's own figures.
"""

from __future__ import annotations

from ..declaration import Variant

AS_PAPER = {"stratify": False}  # a plain random 20% is for validation
CONTINUOUS = Variant("continuous", label="C2F")
STAGED_CURRICULUM = Variant("staged", label="C2F staged")
