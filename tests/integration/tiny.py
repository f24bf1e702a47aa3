"""A tiny experiment whose trainings can be held in the middle, to be killed there.

It looks for its data, and for a file ``hold``, in the current directory.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coarse2fine import fit
from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant
from coarse2fine.methods.plain import Plain

DATA, HOLD = "tiny.csv", "hold"
BATCHES_UNTIL_HELD = 12  # of five an epoch: in the third, when two have been noted
SETTINGS: dict[str, Any] = {
    "data": DATA,
    "model": "tiny:Net",
    "epochs": 4,
    "patience": 0,
    "batch_size": 34,  # of an odd last batch
    "learning_rate": 0.02,
    "curriculum_epochs": 2,
}
METHODS = ("continuous", "spl", "nbdt", "tiny:Doubled")
VARIANTS = tuple(Variant(method.replace(":", "."), method) for method in METHODS)
SETTING = Setting("tiny", SETTINGS, VARIANTS)
TINY = Experiment("Tiny", {"full": Scale("a few rows", (SETTING,))}, num_seeds=2)


class Net(nn.Module):
    """With dropout and batch norm, so that every kind of state matters."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.body, self.norm = nn.Linear(4, 16), nn.BatchNorm1d(16)
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(16, num_classes)
        self.batches = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.batches += self.training
        if self.batches == BATCHES_UNTIL_HELD and self.training:
            wait_while_held()
        logits: Tensor = self.head(self.drop(self.norm(self.body(inputs)).relu()))
        return logits


class Doubled(Plain):
    """A method of one's own."""

    def forward(self, *args: Any) -> Tensor:
        loss: Tensor = super().forward(*args)
        return 2 * loss


def wait_while_held() -> None:
    """Say which process is held, and wait for as long as it is."""
    note = Path(f"{os.getpid()}.held")
    while Path(HOLD).exists():
        note.touch()
        time.sleep(0.01)
    note.unlink(missing_ok=True)


def held(folder: Path) -> list[int]:
    """Return the processes that are held."""
    return [int(path.stem) for path in folder.glob("*.held")]


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while it is read
        return False


def compare(
    folder: Path,
    threads: int,
    methods: tuple[str, ...] = METHODS,
    seeds: tuple[int, ...] = (0, 1),
) -> Path:
    """Let `fit` train by the same settings, in this process, and return where."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    write_data(folder)
    others = {name: value for name, value in SETTINGS.items() if name != "data"}
    fit(folder / DATA, **others, methods=methods, seeds=seeds, out=folder / "fit")
    torch.set_num_threads(before)
    return folder / "fit"


def prepared(folder: Path) -> Path:
    """Return a folder with data, in which trainings are held in the middle."""
    write_data(folder)
    (folder / HOLD).touch()
    return folder


def write_data(folder: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(240, 4, generator=generator)
    classes = (inputs @ torch.randn(4, 6, generator=generator)).argmax(1)
    lines = ["a,b,c,d,label"]
    for row, label in zip(inputs.tolist(), classes.tolist(), strict=True):
        lines.append(",".join([*map("{:.4f}".format, row), f"class {label}"]))
    (folder / DATA).write_text("\n".join(lines) + "\n")
