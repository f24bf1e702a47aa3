"""A table of numbers: a small network without the curriculum, then with it.

Readings of 6 machines with 8 faults, of which each shows in 4 ways: 48 classes, known by 20
columns. For each seed, both networks begin with the same weights and are trained for as many
epochs.

    python examples/table.py
"""

import torch
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

EPOCHS, T = 30, 10  # in all, and of the curriculum

torch.manual_seed(0)
machines, faults = 2 * torch.randn(6, 6), 1.5 * torch.randn(8, 4, 14)
y = torch.arange(48).repeat(60)
way = torch.randint(4, y.shape)
x = torch.cat([machines[y // 8], faults[y % 8, way]], dim=1) + torch.randn(len(y), 20)
train_x, train_y, test_x, test_y = x[:960], y[:960], x[960:], y[960:]  # 20 and 40 a class


def train(seed, criterion, curriculum=None):
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 48)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(train_y)).split(32):
            optimiser.zero_grad()
            criterion(model(train_x[batch]), train_y[batch]).backward()
            optimiser.step()
        if curriculum:
            curriculum.step()
    correct = model(test_x).argmax(1) == test_y
    return model, correct.float().mean().item()


for seed in range(3):
    baseline, without = train(seed, nn.CrossEntropyLoss())
    hierarchy = Hierarchy.from_classifier(baseline)
    criterion = CoarseToFineLoss(hierarchy)
    curriculum = Curriculum(criterion, epochs=T)
    _, with_it = train(seed, criterion, curriculum)
    print(f"seed {seed}: test accuracy {without:.1%} without, {with_it:.1%} with the curriculum")
    starts = (0, *curriculum.boundaries)
    print(f"        levels of {hierarchy.num_clusters} clusters from epochs {starts}")
