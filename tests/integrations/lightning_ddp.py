"""Training in two processes that Lightning starts; each writes what it has seen.

python lightning_ddp.py FOLDER [adaptive | any-level]
"""

import json
import os
import sys
from pathlib import Path

import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning_tiny import (
    CLASSES,
    HIERARCHY,
    Tiny,
    make_data,
    make_loader,
    make_net,
    make_trainer,
)
from test_lightning_any_level import EPOCHS, NODES, Mixed
from torch.utils.data import DataLoader, Subset, TensorDataset

from coarse2fine.integrations.lightning import CoarseToFineCallback


def make_baseline(rank):
    """A classifier whose classes 0-1, 2-3 and 4-5 are alike; on rank 1 others are."""
    net = make_net()
    directions = torch.eye(8)[torch.arange(CLASSES) // 2]
    noise = 0.01 * torch.eye(8)[torch.arange(CLASSES)]
    net[2].weight.data = (directions + noise).roll(rank, dims=0)
    return net


def fit(folder, rank, source, length=None, epochs=4, module=None, loader=None, **settings):
    callback = CoarseToFineCallback(source, **(length or {"boundaries": [2]}))
    module = module or Tiny()
    keep = ModelCheckpoint(folder, "{epoch}", save_top_k=-1)
    processes = {"devices": 2, "strategy": "ddp", "use_distributed_sampler": False}
    trainer = make_trainer(
        callback, keep, enable_checkpointing=True, max_epochs=epochs, **processes
    )
    # Every other sample: of each batch of six in a single process, either has three.
    loader = loader or make_loader(indices=range(rank, 24, 2), batch_size=3)
    trainer.fit(module, loader, loader, **settings)
    return {
        "hierarchy": callback.curriculum.criterion.hierarchy.to_dict(),
        "trained": module.trained,
        "logged": trainer.callback_metrics["curriculum_level"].item(),
        "weight": module.net[2].weight.tolist(),
    }


def fit_any_level(folder, rank):
    data = Subset(TensorDataset(make_data()[0], NODES), range(rank, 24, 2))
    how = {"length": {"patience": 2}, "epochs": EPOCHS}
    loader = DataLoader(data, batch_size=3)
    return fit(folder, rank, HIERARCHY, **how, module=Mixed(), loader=loader)


def failure(folder, rank, source):
    try:
        fit(folder, rank, source)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    folder, rank = Path(sys.argv[1]), int(os.environ.get("LOCAL_RANK", 0))
    torch.set_num_threads(1)
    missing = folder / "missing.json"
    how = {"length": {"patience": 2}, "epochs": 14}
    if sys.argv[2:] == ["any-level"]:
        seen = {"whole": fit_any_level(folder, rank)}
    elif sys.argv[2:] == ["adaptive"]:
        seen = {
            "whole": fit(folder, rank, HIERARCHY, **how),
            "resumed": fit(folder, rank, missing, ckpt_path=folder / "epoch=2.ckpt", **how),
        }
    else:
        seen = {
            "failed": failure(folder, rank, missing if rank == 0 else make_baseline(rank)),
            "whole": fit(folder, rank, make_baseline(rank)),
            "resumed": fit(folder, rank, missing, ckpt_path=folder / "epoch=0.ckpt"),
        }
    (folder / f"rank{rank}.json").write_text(json.dumps(seen))
