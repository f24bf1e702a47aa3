"""A training by the Trainer, in as many processes as it is started in; see test_transformers."""

import os
import sys
from pathlib import Path

import torch
from node_labels import mixed
from test_transformers import EPOCHS, HIERARCHY, K, make_trainer

from coarse2fine import Hierarchy
from coarse2fine.integrations.transformers import coarse_to_fine

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    rank, processes = (int(os.environ.get(name, d)) for name, d in (("RANK", 0), ("WORLD_SIZE", 1)))
    words = torch.randint(20, (24, 5), generator=torch.Generator().manual_seed(0))
    labels = torch.arange(24) % K
    if sys.argv[2:] == ["any-level"]:
        labels = mixed(labels, HIERARCHY)
    data = [{"input_ids": x, "labels": y} for x, y in zip(words, labels.tolist(), strict=True)]
    # The others' hierarchy is wrong: they are to take that of the first process.
    hierarchy = HIERARCHY if rank == 0 else Hierarchy.from_levels([[0, 1, 1, 1, 1, 1]])
    settings = {"per_device_train_batch_size": 8 // processes}
    length = {"epochs": EPOCHS}
    if sys.argv[2:]:  # adaptive
        length = {"patience": 2}
        settings |= {"eval_strategy": "epoch", "num_train_epochs": 14}
    loss, callback = coarse_to_fine(hierarchy, **length)
    trainer = make_trainer(folder, data, [callback], loss=loss, **settings)
    trainer.train()
    log = trainer.state.log_history
    torch.save(
        {
            "model": trainer.model.state_dict(),
            "hierarchy": callback.curriculum.criterion.hierarchy.to_dict(),
            "levels": [entry["curriculum_level"] for entry in log if "loss" in entry],
        },
        folder / f"weights-{rank}.pt",
    )
