"""An experiment one of whose trainings needs more memory than there is, while a file says so."""

from pathlib import Path

import tiny
import torch

from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant
from coarse2fine.methods.plain import Plain


class Hungry(Plain):
    def forward(self, *args):
        if Path("short").exists():
            torch.empty(1 << 46, dtype=torch.uint8)
        return super().forward(*args)


VARIANTS = (Variant("spl", "spl"), Variant("hungry", "short_of_memory:Hungry"))
SETTING = Setting("tiny", tiny.SETTINGS, VARIANTS)
SWEEP = Experiment("Tiny", {"full": Scale("a few rows", (SETTING,))}, num_seeds=1)
