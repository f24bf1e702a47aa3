"""The paper's two curricula, as its experiments compare them."""

from __future__ import annotations

from .declaration import Variant

CONTINUOUS = Variant("continuous", label="C2F")
STAGED_CURRICULUM = Variant("staged", label="C2F staged")
