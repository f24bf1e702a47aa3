"""The experiments of the paper, declared, and what they have in common.

`published` has the paper's own figures.
"""

from __future__ import annotations

from ..declaration import Variant

PAPER_CURRICULUM = {"linkage": "single", "curriculum_epochs": "reach-90"}
AS_PAPER = {"stratify": False, **PAPER_CURRICULUM}  # a plain random 20% is for validation
CONTINUOUS = Variant("continuous", label="C2F")
STAGED_CURRICULUM = Variant("staged", label="C2F staged")
