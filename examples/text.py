"""Text: a small classifier without the curriculum, then with it.

Requests about cards, transfers, travel, music, weather and cooking: 30 intents, with about 15
sentences each to learn from. For each seed, both classifiers begin with the same weights and
are trained for as many epochs.

    python examples/text.py
"""

import csv
from pathlib import Path

import torch
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy
from coarse2fine.data import tokens

EPOCHS, T = 30, 10  # in all, and of the curriculum

with (Path(__file__).parent / "data" / "requests.csv").open(encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
# A number for each word, counted from 0, which fills up the shorter sentences.
words, x = tokens([row["text"] for row in rows]).unique(return_inverse=True)
intents = sorted({row["intent"] for row in rows})
y = torch.tensor([intents.index(row["intent"]) for row in rows])
torch.manual_seed(0)
train_rows, test_rows = torch.randperm(len(rows)).chunk(2)


def train(seed, criterion, curriculum=None):
    torch.manual_seed(seed)
    bag = nn.EmbeddingBag(len(words), 64, padding_idx=0)  # the mean of the words' embeddings
    model = nn.Sequential(bag, nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, len(intents)))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for batch in train_rows[torch.randperm(len(train_rows))].split(16):
            optimiser.zero_grad()
            criterion(model(x[batch]), y[batch]).backward()
            optimiser.step()
        if curriculum:
            curriculum.step()
    correct = model(x[test_rows]).argmax(1) == y[test_rows]
    return model, correct.float().mean().item()


for seed in range(3):
    baseline, without = train(seed, nn.CrossEntropyLoss())
    hierarchy = Hierarchy.from_classifier(baseline, class_names=intents)
    criterion = CoarseToFineLoss(hierarchy)
    curriculum = Curriculum(criterion, epochs=T)
    _, with_it = train(seed, criterion, curriculum)
    print(f"seed {seed}: test accuracy {without:.1%} without, {with_it:.1%} with the curriculum")
    starts = (0, *curriculum.boundaries)
    print(f"        levels of {hierarchy.num_clusters} clusters from epochs {starts}")
print(f"\nThe hierarchy of the last seed:\n{hierarchy}")
