"""Small data, models and trainings that the tests of training share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coarse2fine import Config, Hierarchy, Result, RunResult, fit
from coarse2fine._util.seeds import seed_of
from coarse2fine.checkpoints import load_tensors
from coarse2fine.data import Batches, Data, Source, Split, Transform, sample
from coarse2fine.methods import find_method
from coarse2fine.methods.base import Plan
from coarse2fine.training.job import Job
from coarse2fine.training.labels import label_nodes
from coarse2fine.training.processes import launch
from coarse2fine.training.progress import Watcher
from coarse2fine.training.trainer import Trainer

NAMES = ("cat", "dog", "fox", "car", "bus", "van")
TIMINGS = ("seconds", "images_per_second", "hierarchy_seconds")


def table(count: int = 200, seed: int = 0) -> Split:
    """Ten columns around a centre a class; the centres lie in two groups, and overlap."""
    rng = torch.Generator().manual_seed(seed)
    fixed = torch.Generator().manual_seed(99)
    centres = 0.7 * torch.randn(6, 10, generator=fixed)
    centres += torch.randn(2, 10, generator=fixed).repeat_interleave(3, 0)
    targets = torch.randint(6, (count,), generator=rng)
    return Split(centres[targets] + 1.5 * torch.randn(count, 10, generator=rng), targets, NAMES)


def table_source(count: int = 200) -> Source:
    return Source("table", table(count), test=table(60, seed=1))


def image_data(count: int = 60) -> Data:
    """Noise of 8×8 pixels in three colours, brighter for higher classes."""
    rng = torch.Generator().manual_seed(0)
    targets = torch.randint(6, (count,), generator=rng)
    pixels = torch.randint(0, 100, (count, 3, 8, 8), generator=rng) + 30 * targets.view(-1, 1, 1, 1)
    split = Split(pixels.to(torch.uint8), targets, NAMES)
    return sample(Source("image", split), val_share=0.25)


class Net(nn.Module):
    """An encoder and a head."""

    def __init__(self, num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(16, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encoder(inputs))
        return logits


def dropping(num_classes: int) -> Net:
    return Net(num_classes, dropout=0.3)


class SmallNet(nn.Module):
    """A smaller model, whose final layer has another name."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.classify = nn.Linear(10, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.classify(inputs)
        return logits


class ConvNet(nn.Module):
    """A convolution with running statistics, which are state beside the weights."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(self.conv(images)).relu().mean((2, 3)))
        return logits


CONFIG = Config(
    model="studies:Net",
    epochs=4,
    patience=0,
    batch_size=32,
    optimiser="adam",
    learning_rate=0.02,
    momentum=0.9,
    weight_decay=0.0,
    milestones=(),
    augment=False,
    normalise=False,
    val_share=0.2,
    accelerator="cpu",
    devices=1,
)


def settings(**changes: Any) -> Config:
    return replace(CONFIG, **changes)


def hierarchy() -> Hierarchy:
    return Hierarchy.from_levels([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3]], NAMES)


def class_vectors() -> Any:
    """Six classes in space, as a baseline's final layer might have them."""
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(7)).numpy()


class InterruptionError(Exception):
    """Stands for whatever ends a training early."""


class Interrupting(Watcher):
    """Ends a training in the middle of an epoch: after its metrics, before its checkpoint."""

    def __init__(self, epoch: int) -> None:
        self.at = epoch

    def epoch(self, metrics: dict[str, Any]) -> None:
        if metrics["epoch"] == self.at:
            raise InterruptionError


def train(
    path: Path,
    method: str = "plain",
    *,
    data: Data | None = None,
    model: Any = Net,
    seed: int = 0,
    levels: Hierarchy | None = None,
    length: int | None = 3,
    watcher: Watcher | None = None,
    checkpoint_seconds: float = float("inf"),
    **changes: Any,
) -> RunResult:
    """Train in this process; methods have what they need from above unless it is given."""
    config = settings(**{"seeds": (seed,), **changes})
    if data is None:
        data = sample(table_source(), val_share=config.val_share or 0.0, seed=seed)
    needs = find_method(method).needs
    plan = Plan(
        6,
        config.epochs,
        config.patience,
        hierarchy=(levels or hierarchy()) if "hierarchy" in needs else None,
        curriculum_epochs=length if "length" in needs else None,
        stage_epochs=config.stage_epochs,
        num_samples=len(data.train),
        class_vectors=class_vectors() if "class_vectors" in needs else None,
        labels=label_nodes(data.train),
    )
    name = "baseline" if method == "plain" else method
    job = Job(path, name, method, data, config, model, plan)
    return Trainer(launch(config), job, watcher, checkpoint_seconds).train()


def fresh(outputs: int = 6, *, stage: int = 0, seed: int = 0, make: Any = Net) -> Any:
    """A model as the loop begins with it; one with fewer outputs has the same encoder."""
    torch.manual_seed(seed_of("weights", seed))
    whole = make(6)
    if stage == 0 and outputs == 6:
        return whole
    torch.manual_seed(seed_of("head", seed, stage))
    model = make(outputs)
    if hasattr(model, "encoder"):
        model.encoder.load_state_dict(whole.encoder.state_dict())
    return model


def by_hand(
    model: nn.Module,
    optimiser: Any,
    data: Data,
    loss: Callable[..., Tensor],
    *,
    clusters: Any = None,
    stage: int = 0,
    epochs: int = 4,
    first: int = 0,
    seed: int = 0,
    batch_size: int = 32,
    begin: Callable[[int], None] = lambda _: None,
) -> tuple[float, int, dict[str, Tensor]]:
    """Train as anyone would, and return the best accuracy, its epoch and its weights."""
    owner = torch.arange(6) if clusters is None else torch.tensor(clusters)
    best: tuple[float, int, dict[str, Tensor]] = (-1.0, 0, {})
    for epoch in range(epochs):
        begin(epoch)
        torch.manual_seed(seed_of("layers", seed, stage, epoch, 0))
        model.train()
        for batch in Batches(data.train, Transform(), batch_size).shuffled((seed, stage, epoch)):
            optimiser.zero_grad()
            loss(model(batch.inputs), batch, epoch).backward()
            optimiser.step()
        model.eval()
        hits = model(data.val.inputs).argmax(1) == owner[data.val.targets]
        accuracy = hits.double().mean().item()
        if epoch >= first and accuracy > best[0]:
            best = (accuracy, epoch + 1, {k: v.clone() for k, v in model.state_dict().items()})
    return best


def pair(split: Split) -> tuple[Any, Tensor]:
    return split.inputs, split.targets


TRAIN, TEST = pair(table()), pair(table(60, seed=1))


def compare(path: Path | None, data: Any = TRAIN, test: Any = TEST, **changes: Any) -> Result:
    """The whole method for a few epochs, of which T is 2, on the table above."""
    given = {
        "class_names": NAMES,
        "model": Net,
        "epochs": 5,
        "patience": 0,
        "batch_size": 32,
        "learning_rate": 0.02,
        "curriculum_epochs": 2,
        "max_levels": 2,
        "accelerator": "cpu",
        "devices": 1,
        "checkpoint_seconds": float("inf"),
    }
    return fit(data, test, out=path, **{**given, **changes})


def weights(run: RunResult) -> dict[str, Tensor]:
    return load_tensors(run.path / "checkpoint" / "model.safetensors")


def method_state(run: RunResult) -> dict[str, Tensor]:
    """What the method has learned beside the model; nothing for most."""
    path = run.path / "checkpoint" / "method.safetensors"
    return load_tensors(path) if path.exists() else {}


def metrics(path: Path) -> list[dict[str, Any]]:
    """The metrics of every epoch, but for how long it took."""
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in TIMINGS} for line in lines]


def outcome(run: RunResult) -> dict[str, Any]:
    """The result, but for how long it took."""
    return {name: value for name, value in run.to_dict().items() if name not in TIMINGS}


def same_tensors(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Whether names and values are equal to the bit."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
