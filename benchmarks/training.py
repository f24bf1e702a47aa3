"""The training loop on the paper's CNN: against a straightforward loop, and its own parts."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from loss import middle_level
from measure import Row, compare, in_a_fresh_process, seconds
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from coarse2fine._util.seeds import seed_of
from coarse2fine.data import Batches, Data, Split, Transform
from coarse2fine.methods import PLAIN
from coarse2fine.methods.base import Method, Plan
from coarse2fine.methods.continuous import Continuous
from coarse2fine.models import build_model
from coarse2fine.runs.config import Config
from coarse2fine.training.evaluation import evaluate
from coarse2fine.training.job import Job
from coarse2fine.training.processes import launch
from coarse2fine.training.recipes import recipe_for
from coarse2fine.training.trainer import Trainer

IMAGES, BATCH, CLASSES, EPOCHS, TURNS = 8_192, 512, 100, 4, 3
CODE = "import sys; sys.path.insert(0, sys.argv[1]); import training; training.{}()"


def data(images: int = IMAGES) -> Split:
    """Noise of the size of CIFAR: what the pixels show does not change the time."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8, generator=generator)
    targets = torch.randint(0, CLASSES, (images,), generator=generator)
    return Split(inputs, targets, tuple(map(str, range(CLASSES))))


def make_plan(**more: Any) -> Plan:
    return Plan(CLASSES, epochs=1_000, patience=0, num_samples=IMAGES, **more)


def make_trainer(folder: str, method: Method | None = None) -> Trainer:
    """Return a trainer before its first epoch, by plain training unless told otherwise."""
    config = Config(model="cnn", accelerator="cpu").with_recipe(recipe_for("cnn"))
    train = data()
    samples = Data("image", train, train.take([]), train.take([0]))
    job = Job(Path(folder), "baseline", PLAIN, samples, config, "cnn", make_plan())
    trainer = Trainer(launch(config), job)
    trainer.method = method or trainer.method
    trainer._begin()
    trainer.method.begin_epoch(0, 0, trainer._sample_losses)
    return trainer


def report(losses: list[float], times: list[float]) -> None:
    print(json.dumps({"speed": IMAGES / statistics.median(times[1:]), "losses": losses}))


def ours() -> None:
    """Train by our loop, and print its speed and losses."""
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder)
        losses: list[float] = []
        times = []
        for epoch in range(EPOCHS):
            trainer.progress.epoch = epoch
            times.append(seconds(lambda: losses.append(trainer._train_batches())))
        report(losses, times)


class StraightforwardCNN(nn.Module):
    """The paper's CNN as it reads: convolution, ReLU, pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3)
        self.conv3, self.head = nn.Conv2d(64, 64, 3), nn.Linear(1_024, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(F.relu(self.conv3(x)).flatten(1))


def peer() -> None:
    """Train by a straightforward loop from the same weights in the same order."""
    torch.set_num_threads(2)
    torch.manual_seed(seed_of("weights", 0))
    weights = build_model("cnn", CLASSES, (3, 32, 32)).state_dict()
    model = StraightforwardCNN()
    model.load_state_dict(weights)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    split = data()
    dataset = TensorDataset(split.inputs.float() / 255, split.targets)
    losses, times = [], []
    for epoch in range(EPOCHS):
        order = torch.Generator().manual_seed(seed_of("batches", 0, 0, epoch))
        rows = torch.randperm(IMAGES, generator=order).tolist()
        total = 0.0

        def train(rows: list[int] = rows) -> None:
            nonlocal total
            for images, targets in DataLoader(dataset, BATCH, sampler=rows):
                optimiser.zero_grad()
                loss = criterion(model(images), targets)
                loss.backward()
                optimiser.step()
                total += loss.item() * len(images)

        times.append(seconds(train))
        losses.append(total / IMAGES)
    report(losses, times)


def rows() -> list[Row]:
    return [loop_row(), *part_rows()]


def loop_row() -> Row:
    """Our loop against the straightforward one, by turns in processes of their own."""
    here = str(Path(__file__).parent)
    turns = [
        [in_a_fresh_process(CODE.format(who), here) for who in ("ours", "peer")]
        for _ in range(TURNS)
    ]
    for mine, theirs in turns:
        apart = max(abs(a - b) for a, b in zip(mine["losses"], theirs["losses"], strict=True))
        if apart > 1e-3:
            raise RuntimeError(f"the two loops are not the same mathematics: {apart} apart")
    ratio = statistics.median(mine["speed"] / theirs["speed"] for mine, theirs in turns)
    speeds = [statistics.median(turn[i]["speed"] for turn in turns) for i in (0, 1)]
    detail = f"{speeds[0]:,.0f} against {speeds[1]:,.0f} images a second"
    what = "training loop, the paper's CNN, batch 512, against a straightforward loop"
    return Row.at_least(what, ratio, 2.2, "×", detail)


def part_rows() -> list[Row]:
    """What the curriculum adds to an epoch, and how long evaluation takes beside one."""
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        plan = make_plan(hierarchy=middle_level(CLASSES), curriculum_epochs=900)
        plain, coarse = make_trainer(one), make_trainer(two, Continuous(plan))
        found = compare(coarse._train_batches, plain._train_batches, repeats=7)
        detail = f"{found.ours:.2f} s against {found.peer:.2f} s"
        what = "an epoch at a coarse level, against one of plain training"
        rows = [Row.at_most(what, found.ratio, 1.02, "×", detail)]
        # As in CIFAR-100 with a fifth for validation: 40,000 to train on, 10,000 to evaluate.
        val = Batches(data(IMAGES // 4), Transform(), BATCH, channels_last=True)
        found = compare(
            lambda: evaluate(plain.fabric, plain.model, val), plain._train_batches, repeats=5
        )
        detail = f"{found.ours:.2f} s beside {found.peer:.2f} s"
        what = "evaluation, beside an epoch of four times as many images"
        return [*rows, Row.at_most(what, found.ratio, 0.15, "×", detail)]


if __name__ == "__main__":
    sys.exit("run this by python benchmarks/run.py training")
