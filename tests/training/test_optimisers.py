"""Optimisers, their learning rate, and their state as named tensors."""

import pytest
import torch
from studies import Net, settings
from torch import nn

from coarse2fine.training.state import flat_state, learning_rate, make_optimiser, nested_state


@pytest.mark.parametrize(
    ("name", "kind"),
    [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)],
)
def test_the_optimiser_is_the_one_named_with_its_settings(name, kind):
    config = settings(optimiser=name, learning_rate=0.3, weight_decay=0.01, momentum=0.7)
    found = make_optimiser(config, Net(6).parameters())
    assert type(found) is kind
    assert (found.defaults["lr"], found.defaults["weight_decay"]) == (0.3, 0.01)
    assert found.defaults.get("momentum", 0.7) == 0.7


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_adam_takes_the_steps_of_torchs_own_on_the_cpu(name):
    config = settings(optimiser=name, learning_rate=0.1, weight_decay=0.2)
    torch.manual_seed(0)
    weights, gradients = torch.randn(7, 5), torch.randn(20, 7, 5)
    ours, theirs = (nn.Parameter(weights.clone()) for _ in range(2))
    plain = getattr(torch.optim, "AdamW" if name == "adamw" else "Adam")
    optimisers = (
        make_optimiser(config, [ours]),
        plain([theirs], lr=0.1, weight_decay=0.2, fused=False, foreach=False),
    )
    for gradient in gradients:
        for parameter, optimiser in zip((ours, theirs), optimisers, strict=True):
            parameter.grad = gradient.clone()
            optimiser.step()
    torch.testing.assert_close(ours, theirs)
    assert (ours - weights).abs().max() > 0.5


def test_weights_with_channels_last_are_not_updated_in_one_call():
    convolution = nn.Conv2d(2, 3, 3)
    assert make_optimiser(settings(), convolution.parameters()).defaults["fused"]
    convolution.to(memory_format=torch.channels_last)
    assert not make_optimiser(settings(), convolution.parameters()).defaults["fused"]


def test_frozen_weights_are_left_out():
    model = Net(6)
    model.encoder.requires_grad_(False)
    (group,) = make_optimiser(settings(), model.parameters()).param_groups
    assert [id(p) for p in group["params"]] == [id(p) for p in model.head.parameters()]


@pytest.mark.parametrize(
    ("milestones", "epochs", "falls"),
    [
        ((3 / 7, 5 / 7), 7, (3, 5)),
        ((3 / 7, 5 / 7), 200, (86, 143)),
        ((0.5,), 5, (2,)),
        ((), 9, ()),
        ((0.2, 0.2), 10, (2, 2)),
    ],
)
def test_the_rate_is_divided_by_ten_after_each_milestone(milestones, epochs, falls):
    config = settings(milestones=milestones, learning_rate=0.1)
    for epoch in range(epochs):
        wanted = 0.1 / 10 ** sum(epoch >= fall for fall in falls)
        assert learning_rate(config, epoch, epochs) == pytest.approx(wanted)


def test_the_state_comes_back_from_named_tensors():
    state = {
        "head.weight": {"step": torch.tensor(3.0), "exp_avg": torch.ones(2)},
        "blocks/0.bias": {"step": 4, "momentum_buffer": None},
    }
    groups = [{"lr": 0.1, "params": ["head.weight", "blocks/0.bias"]}]
    flat = flat_state(state)
    assert all(isinstance(tensor, torch.Tensor) for tensor in flat.values())
    joined = nested_state(flat, groups)
    assert joined["param_groups"] == groups
    assert joined["state"].keys() == state.keys()
    assert torch.equal(joined["state"]["head.weight"]["exp_avg"], torch.ones(2))
    assert joined["state"]["head.weight"]["step"] == 3
    assert joined["state"]["blocks/0.bias"] == {"step": torch.tensor(4)}
