"""Hierarchies by an encoder and by a short training, to be started by torchrun."""

import sys

import torch
from killing import SETTINGS, Net, hurry, samples

from coarse2fine import fit


def encode(batch):
    return torch.cat([batch, batch.abs()], 1)


SOURCES = {
    "features": {"hierarchy": "features", "encoder": encode},
    "short": {"hierarchy_epochs": 2},
}

if __name__ == "__main__":
    hurry()
    for name, source in SOURCES.items():
        options = {**SETTINGS, "epochs": 3, "curriculum_epochs": 2, "baseline": False, **source}
        fit(samples(), model=Net, out=f"{sys.argv[1]}/{name}", **options)
