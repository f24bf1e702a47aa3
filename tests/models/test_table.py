"""The classifier of rows of numbers."""

import torch
import torch.nn.functional as F

from coarse2fine import find_head
from coarse2fine.models.table import TableMLP


def test_the_head_is_found():
    name, layer = find_head(TableMLP(num_classes=5, in_features=7, width=32))
    assert name == "head"
    assert (layer.in_features, layer.out_features) == (32, 5)


def test_there_are_two_hidden_layers():
    model = TableMLP(num_classes=2, in_features=3, width=4).eval()
    (w1, b1), (w2, b2), (w3, b3) = (
        (layer.weight, layer.bias) for layer in model.modules() if hasattr(layer, "weight")
    )
    x = torch.randn(6, 3)
    by_hand = ((x @ w1.T + b1).relu() @ w2.T + b2).relu() @ w3.T + b3
    torch.testing.assert_close(model(x), by_hand)


def test_dropout_works_in_training_only():
    model = TableMLP(num_classes=2, in_features=3, dropout=0.5)
    x = torch.randn(6, 3)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_what_is_not_linear_can_be_learned():
    x = torch.randn(128, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    model = TableMLP(num_classes=2, in_features=2)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()
    model.eval()
    assert (model(x).argmax(dim=1) == y).float().mean() > 0.95
