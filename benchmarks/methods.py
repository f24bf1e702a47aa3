"""What the comparison methods add to an epoch of plain training, on the paper's CNN."""

from __future__ import annotations

import tempfile

import torch
from loss import middle_level
from measure import Row, compare
from training import CLASSES, make_plan, make_trainer

from coarse2fine.methods import build_method
from coarse2fine.training.trainer import Trainer

# The most that an epoch may take, against one of plain training.
LIMITS = {"dp-l": 1.05, "dp-li": 1.05, "multitask": 1.05, "nbdt": 1.05}


def rows() -> list[Row]:
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        plain = make_trainer(folder)
        return [
            *(method_row(name, limit, plain) for name, limit in LIMITS.items()),
            pass_row(plain),
        ]


def method_row(name: str, limit: float, plain: Trainer) -> Row:
    """An epoch by a method."""
    vectors = torch.randn(CLASSES, 64, generator=torch.Generator().manual_seed(0)).numpy()
    plan = make_plan(hierarchy=middle_level(CLASSES), class_vectors=vectors)
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder, build_method(name, plan))
        found = compare(trainer._train_batches, plain._train_batches, repeats=5)
    detail = f"{found.ours:.2f} s against {found.peer:.2f} s"
    what = f"an epoch by {name}, against one of plain training"
    return Row.at_most(what, found.ratio, limit, "×", detail)


def pass_row(plain: Trainer) -> Row:
    """What self-paced learning does before an epoch, until all samples count."""
    found = compare(plain._sample_losses, plain._train_batches, repeats=5)
    detail = f"{found.ours:.2f} s beside {found.peer:.2f} s"
    what = "the losses of all samples, as spl needs them, beside an epoch"
    return Row.at_most(what, found.ratio, 0.4, "×", detail)
