"""Fine-tuning a pretrained encoder of sentences with few of each class, with and without levels.

    python benchmarks/mechanism_pretrained.py banking77 --data DIR --encoder FOLDER --per-class 8

The folder holds a BERT and its tokenizer as Hugging Face stores them. Its lower layers stay as
they are, so what they make of each sentence is computed once; the upper ones and a new final
layer are trained. Hierarchies come from the fine-tuned baseline, and from the pretrained encoder:
the mean features of each class, or its name.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mechanism import note, records
from mechanism_tables import Record, tables
from mechanism_tasks import Task
from mechanism_training import Variant
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModel, AutoTokenizer

from coarse2fine import Hierarchy
from coarse2fine.data.load import load_data
from coarse2fine.data.sampling import sample

RECIPE = {"rate": 1e-4, "head_rate": 3e-3, "batch": 16, "epochs": 12, "patience": 12, "decay": 0}
VARIANTS = {
    "adaptive": Variant("adaptive, patience 2", patience=2),
    "one-each": Variant("one epoch a level", each=1),
    "share-50": Variant("half of the weight on the classes", patience=2, class_share=0.5),
    "features": Variant("hierarchy of features, patience 2", patience=2, clusters="features"),
    "names": Variant("hierarchy of names, patience 2", patience=2, clusters="names"),
    "names-one": Variant("hierarchy of names, one epoch a level", each=1, clusters="names"),
}


class Upper(nn.Module):
    """The upper layers of an encoder, the mean over the tokens, and a final layer.

    Args:
        lower: What the lower layers made of each sentence, (L, D); the first are
            the names of the classes.
        layers: The upper layers.
        num_classes: K.
    """

    def __init__(self, lower: list[Tensor], layers: nn.ModuleList, num_classes: int) -> None:
        super().__init__()
        self.lower, self.layers = lower, layers
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(lower[0].shape[1], num_classes)

    def features(self, rows: Tensor) -> Tensor:
        """Return the mean over the tokens of sentences, given by their places in `lower`."""
        parts = [self.lower[row] for row in rows.flatten().tolist()]
        is_token = pad_sequence([torch.ones(len(part)) for part in parts], batch_first=True)
        x = through(self.layers, pad_sequence(parts, batch_first=True), is_token)
        return (x * is_token[..., None]).sum(1) / is_token.sum(1, keepdim=True)

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(self.features(rows)))
        return logits


def through(layers: nn.ModuleList, x: Tensor, is_token: Tensor) -> Tensor:
    """Return what layers of a BERT make of tokens (N, L, D)."""
    mask = torch.where(is_token[:, None, None] > 0, 0.0, torch.finfo(x.dtype).min)
    for layer in layers:
        x = layer(x, mask)
        x = x[0] if isinstance(x, tuple) else x  # as older versions of transformers return it
    return x


@dataclass(frozen=True)
class Encoder:
    """A pretrained encoder, cut in two."""

    folder: Path
    frozen: int

    def load(self) -> Any:
        return AutoModel.from_pretrained(self.folder, local_files_only=True).eval()

    @torch.no_grad()
    def lower(self, sentences: Sequence[str]) -> list[Tensor]:
        """Return what the lower layers make of each sentence, (L, D)."""
        model, found = self.load(), []
        tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
        for start in range(0, len(sentences), 32):
            batch = list(sentences[start : start + 32])
            words = tokenizer(
                batch, padding=True, truncation=True, max_length=32, return_tensors="pt"
            )
            is_token = words["attention_mask"]
            x = model.embeddings(words["input_ids"])
            x = through(model.encoder.layer[: self.frozen], x, is_token)
            lengths = is_token.sum(1).tolist()
            found += [one[:length].clone() for one, length in zip(x, lengths, strict=True)]
        return found

    def upper(self) -> nn.ModuleList:
        return nn.ModuleList(self.load().encoder.layer[self.frozen :])


def load(arguments: argparse.Namespace, name: str, seed: int) -> tuple[Task, Any]:
    """Return the sentences of a seed, and the hierarchies that the encoder gives.

    Sentences are places in a list of what the lower layers made of them.
    """
    data = sample(load_data(name, folder=arguments.data), seed=seed)
    count = arguments.classes or len(data.class_names)
    names = [one.replace("_", " ") for one in data.class_names[:count]]
    rng, sentences, parts = np.random.RandomState(1000 + seed), list(names), {}
    # The whole test set would take longer than training does.
    sizes = {
        "train": arguments.per_class,
        "val": arguments.val_per_class,
        "test": arguments.test_per_class,
    }
    for part, size in sizes.items():
        split = getattr(data, part)
        targets = split.targets.numpy()
        rows = [rng.permutation(np.flatnonzero(targets == k))[:size] for k in range(count)]
        taken = split.take(np.concatenate(rows))
        places = len(sentences) + torch.arange(len(taken))[:, None]
        parts[part] = places, taken.targets
        sentences += taken.sentences
    encoder = Encoder(arguments.encoder, arguments.frozen)
    lower, layers = encoder.lower(sentences), encoder.upper()
    task = Task(
        name,
        "pretrained",
        seed,
        parts,
        RECIPE,
        lambda: Upper(lower, copy.deepcopy(layers), count),
    )
    return task, hierarchies(task, count)


@torch.no_grad()
def hierarchies(task: Task, num_classes: int) -> dict[str, Hierarchy]:
    """Return hierarchies by the means of the training sentences, and by the names."""
    network: Any = task.network().eval()
    (places, targets), classes = task.parts["train"], range(num_classes)
    means = [network.features(places[targets == k]).mean(0) for k in classes]
    of_names = network.features(torch.arange(num_classes))
    vectors = {"features": torch.stack(means), "names": of_names}
    return {kind: Hierarchy.from_embeddings(of.numpy()) for kind, of in vectors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", help="clinc150, banking77 or trec")
    parser.add_argument("--data", type=Path, help="the folder of the sets")
    parser.add_argument("--encoder", type=Path, required=True, help="the folder of the encoder")
    parser.add_argument("--frozen", type=int, default=3, help="how many lower layers are kept")
    parser.add_argument("--classes", type=int, help="how many classes, by name; all by default")
    parser.add_argument("--per-class", type=int, default=8, help="sentences of each class")
    parser.add_argument("--val-per-class", type=int, default=5, help="the same, to validate on")
    parser.add_argument("--test-per-class", type=int, default=20, help="the same, to test on")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--json", type=Path, help="also write what was found to this file")
    arguments = parser.parse_args()
    each = arguments.per_class, arguments.val_per_class, arguments.test_per_class
    arguments.sizes = dict(zip(("train", "val", "test"), each, strict=True))
    torch.set_num_threads(1)
    found: list[Record] = []
    for name in arguments.sets:
        for seed in arguments.seeds:
            task, made = load(arguments, name, seed)
            for record in records(task, [VARIANTS[key] for key in arguments.variants], made):
                note(record, found, task.recipe, arguments)
    print(f"\n{tables(found)}")


if __name__ == "__main__":
    main()
