"""Mixup and label smoothing: the loss takes class probabilities at every level.

Each image is a mixture of two, and its target says how much of each: a row of probabilities
over the 30 classes, digits in three colours. Such targets go into the loss as they are.

    python examples/mixup.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

EPOCHS, T = 40, 10  # in all, and of the curriculum
COLOURS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.5, 0.5]])

torch.manual_seed(0)
digits = load_digits()
images = torch.from_numpy(digits.images / 16).float()
x = torch.einsum("nhw,kc->nkchw", images, COLOURS)  # every digit in every colour
y = torch.from_numpy(digits.target)[:, None] + 10 * torch.arange(3)
train_x, train_y = x[:200].flatten(0, 1), y[:200].flatten()
test_x, test_y = x[200:].flatten(0, 1), y[200:].flatten()


def mixup(inputs, targets):
    probabilities = F.one_hot(targets, 30).float()
    other, share = torch.randperm(len(inputs)), torch.rand(())
    return inputs.lerp(inputs[other], share), probabilities.lerp(probabilities[other], share)


def train(criterion, curriculum=None):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 30),
    )  # fmt: skip
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(train_y)).split(16):
            inputs, probabilities = mixup(train_x[batch], train_y[batch])
            optimiser.zero_grad()
            criterion(model(inputs), probabilities).backward()
            optimiser.step()
        if curriculum:
            curriculum.step()
    return model, (model(test_x).argmax(1) == test_y).float().mean().item()


baseline, without = train(nn.CrossEntropyLoss(label_smoothing=0.1))
hierarchy = Hierarchy.from_classifier(baseline)
criterion = CoarseToFineLoss(hierarchy, label_smoothing=0.1)
curriculum = Curriculum(criterion, epochs=T)
_, with_it = train(criterion, curriculum)

print(f"test accuracy {without:.1%} without, {with_it:.1%} with the curriculum")
print(f"levels of {hierarchy.num_clusters} clusters from epochs {(0, *curriculum.boundaries)}")
