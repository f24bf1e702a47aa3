"""Fine-tuning: a pretrained network gets a new final layer, without and with the curriculum.

The network is pretrained on the digits 0 to 4 in three colours, then fine-tuned on the digits
5 to 9, of which it sees few. Both times fine-tuning begins with the same weights, goes on for
as many epochs, and changes the pretrained layers ten times more slowly than the new one.

    python examples/fine_tuning.py
"""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy, replace_head

EPOCHS, T = 40, 10  # of fine-tuning, and of the curriculum
COLOURS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.5, 0.5]])

digits = load_digits()
images, labels = torch.from_numpy(digits.images / 16).float(), torch.from_numpy(digits.target)
x = torch.einsum("nhw,kc->nkchw", images, COLOURS)  # every digit in every colour
y = (labels % 5)[:, None] + 5 * torch.arange(3)  # 15 classes, the old or the new
old, new = torch.where(labels < 5)[0], torch.where(labels >= 5)[0]
test_x, test_y = x[new[60:]].flatten(0, 1), y[new[60:]].flatten()


def train(model, rows, epochs, backbone_lr, criterion, curriculum=None):
    torch.manual_seed(0)
    inputs, targets = x[rows].flatten(0, 1), y[rows].flatten()
    backbone = {"params": model[:-1].parameters(), "lr": backbone_lr}
    optimiser = torch.optim.Adam([backbone, {"params": model[-1].parameters()}], lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(targets)).split(16):
            optimiser.zero_grad()
            criterion(model(inputs[batch]), targets[batch]).backward()
            optimiser.step()
        if curriculum:
            curriculum.step()
    return (model(test_x).argmax(1) == test_y).float().mean().item()


torch.manual_seed(0)
layers = nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Flatten()
pretrained = nn.Sequential(*layers, nn.Linear(64 * 4 * 4, 15))
train(pretrained, old, 3, 3e-3, nn.CrossEntropyLoss())
replace_head(pretrained, num_classes=15)

baseline, model = copy.deepcopy(pretrained), copy.deepcopy(pretrained)
without = train(baseline, new[:60], EPOCHS, 3e-4, nn.CrossEntropyLoss())
hierarchy = Hierarchy.from_classifier(baseline)
criterion = CoarseToFineLoss(hierarchy)
curriculum = Curriculum(criterion, epochs=T)
with_it = train(model, new[:60], EPOCHS, 3e-4, criterion, curriculum)

print(f"test accuracy {without:.1%} without, {with_it:.1%} with the curriculum")
print(f"levels of {hierarchy.num_clusters} clusters from epochs {(0, *curriculum.boundaries)}")
