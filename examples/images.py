"""Images: a small network without the curriculum, then with it.

Digits in three colours, anywhere in the image: 30 classes, many of them alike. Both networks
begin with the same weights and are trained for as many epochs.

    python examples/images.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

EPOCHS, T = 30, 10  # in all, and of the curriculum
COLOURS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.5, 0.5]])

torch.manual_seed(0)
digits = load_digits()
x = torch.zeros(len(digits.images), 3, 3, 14, 14)  # digit, its three colours, an RGB image
for index, image in enumerate(torch.from_numpy(digits.images / 16).float()):
    for colour in range(3):
        row, column = torch.randint(7, (2,))
        place = x[index, colour, :, row : row + 8, column : column + 8]
        place.copy_(COLOURS[colour, :, None, None] * image)
y = torch.from_numpy(digits.target)[:, None] + 10 * torch.arange(3)
order = torch.randperm(len(x))
train_x, train_y = x[order[:600]].flatten(0, 1), y[order[:600]].flatten()
test_x, test_y = x[order[600:]].flatten(0, 1), y[order[600:]].flatten()


def train(criterion, curriculum=None):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 30),
    )  # fmt: skip
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(train_y)).split(32):
            optimiser.zero_grad()
            criterion(model(train_x[batch]), train_y[batch]).backward()
            optimiser.step()
        if curriculum:
            curriculum.step()
    with torch.no_grad():
        return model, (model(test_x).argmax(1) == test_y).float().mean().item()


baseline, without = train(nn.CrossEntropyLoss())
hierarchy = Hierarchy.from_classifier(baseline)
criterion = CoarseToFineLoss(hierarchy)
curriculum = Curriculum(criterion, epochs=T)
_, with_it = train(criterion, curriculum)

print(f"test accuracy {without:.1%} without, {with_it:.1%} with the curriculum")
print(f"levels of {hierarchy.num_clusters} clusters from epochs {(0, *curriculum.boundaries)}")
