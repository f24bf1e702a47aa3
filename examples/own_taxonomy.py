"""A taxonomy of your own: a tree of the classes is all it needs, no baseline.

Digits are learned first as those with and without loops, then as four kinds, then one by one.

    python examples/own_taxonomy.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy, level_accuracies

EPOCHS, T = 12, 6  # in all, and of the curriculum
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TAXONOMY = {
    "loops": {"one loop": ["zero", "six", "nine"], "two loops": ["eight"]},
    "no loops": {"straight": ["one", "four", "seven"], "curved": ["two", "three", "five"]},
}

torch.manual_seed(0)
digits = load_digits()
x, y = torch.from_numpy(digits.data / 16).float(), torch.from_numpy(digits.target)
train_x, train_y, test_x, test_y = x[:1000], y[:1000], x[1000:], y[1000:]

# The names say which output of the model is which class of the tree.
hierarchy = Hierarchy.from_taxonomy(TAXONOMY, class_names=NAMES)
criterion = CoarseToFineLoss(hierarchy)
curriculum = Curriculum(criterion, epochs=T)
print(hierarchy)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(EPOCHS):
    for batch in torch.randperm(len(train_y)).split(32):
        optimiser.zero_grad()
        criterion(model(train_x[batch]), train_y[batch]).backward()
        optimiser.step()
    accuracies = level_accuracies(model(test_x).argmax(1), test_y, hierarchy)
    shown = ", ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    print(f"epoch {epoch}, level {curriculum.level}: accuracy at each level {shown}")
    curriculum.step()
