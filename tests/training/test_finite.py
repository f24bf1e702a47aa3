"""The first NaN or infinity ends a training, which says where it arose and loses nothing."""

import math

import pytest
import torch
from studies import (
    Net,
    metrics,
    outcome,
    same_tensors,
    table,
    table_source,
    train,
    weights,
)
from torch import nn

from coarse2fine.data import Source, Split, sample
from coarse2fine.methods import METHODS
from coarse2fine.methods.plain import Plain
from coarse2fine.training.finite import all_finite, complaint, diagnosis, non_finite_weights
from coarse2fine.training.progress import Watcher

GOOD = r"What was saved before is still good\.$"
REMEDY = r"lower the learning rate, or clip the gradients\. "


class Fault(nn.Module):
    """Hands on what it is given, until it is armed: then it spoils one batch."""

    mode, batches, value = "", math.inf, math.nan  # when, after how many, and with what

    def forward(self, inputs):
        if Fault.mode == ("training" if self.training else "evaluation"):
            Fault.batches -= 1
            if Fault.batches <= 0:
                spoiled = inputs.clone()
                spoiled[0, 0] = Fault.value
                return spoiled
        return inputs


class Arming(Watcher):
    """Arms the fault after an epoch."""

    def __init__(self, epoch, mode, batches, value=math.nan):
        self.at, self.fault = epoch, (mode, batches, value)

    def epoch(self, metrics):
        if metrics["epoch"] == self.at:
            Fault.mode, Fault.batches, Fault.value = self.fault


class Inside(Net):
    """A network with the fault between its encoder and its head."""

    def __init__(self, num_classes):
        super().__init__(num_classes)
        self.encoder.append(Fault())


class Outside(Net):
    """A network with the fault behind its head."""

    def __init__(self, num_classes):
        super().__init__(num_classes)
        self.fault = Fault()

    def forward(self, inputs):
        return self.fault(super().forward(inputs))


@pytest.fixture(autouse=True)
def _disarmed():
    yield
    Fault.mode = ""


# ------------------------------------------------------------------- what stops, and where


@pytest.mark.parametrize("method", ["plain", *METHODS])
def test_a_nan_stops_every_method_and_it_goes_on_from_the_last_good_epoch(method, tmp_path):
    """The same training without the fault ends alike, to the bit."""
    options = {"method": method, "model": Inside, "epochs": 6, "checkpoint_seconds": 0.0}
    undisturbed = train(tmp_path / "undisturbed", **options)
    path = tmp_path / "spoiled"
    message = rf"the loss became nan in epoch 3 of {path}, batch 2: first in what layer encoder\.3 "
    with pytest.raises(ValueError, match=message + rf"\(Fault\) gives; {REMEDY}{GOOD}"):
        train(path, watcher=Arming(2, "training", 2), **options)
    assert [line["epoch"] for line in metrics(path)] == [1, 2]
    Fault.mode = ""
    resumed = train(path, **options)
    assert outcome(resumed) == outcome(undisturbed)
    assert same_tensors(weights(resumed), weights(undisturbed))
    assert metrics(path) == metrics(tmp_path / "undisturbed")


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinite_logit_stops_even_where_the_loss_is_finite(value, tmp_path):
    """A class that is impossible costs nothing as long as it is not the target."""
    data = sample(table_source(), val_share=0.2)
    data.train.targets[:] = data.train.targets.clamp(min=1)  # never the class that is spoiled
    said = rf"the (loss|logits) became (nan|{value}) in epoch 2 of .*, batch 3: first in what layer"
    with pytest.raises(ValueError, match=rf"{said} fault \(Fault\) gives"):
        train(tmp_path, model=Outside, data=data, watcher=Arming(1, "training", 3, value))


def test_a_negative_infinite_logit_is_named_as_such(tmp_path):
    data = sample(table_source(), val_share=0.2)
    data.train.targets[:] = data.train.targets.clamp(min=1)
    with pytest.raises(ValueError, match="the logits became -inf in epoch 2"):
        train(tmp_path, model=Outside, data=data, watcher=Arming(1, "training", 3, -math.inf))


class Spoiling(Plain):
    """A method whose loss is infinite for whatever the model gives."""

    def forward(self, logits, batch):
        return super().forward(logits, batch) * math.inf


def test_a_loss_that_is_infinite_by_itself_is_told_from_a_layers_fault(tmp_path):
    message = "the loss became inf in epoch 1 of .*, batch 1: though every layer's outputs are"
    with pytest.raises(ValueError, match=message):
        train(tmp_path, "test_finite:Spoiling")


class Overshooting(Plain):
    """A method with finite losses that have infinite gradients."""

    def forward(self, logits, batch):
        return super().forward(logits, batch) + (logits.sum() * 0).sqrt()


@pytest.mark.parametrize("options", [{}, {"accumulate": 4}, {"precision": "bf16-mixed"}])
def test_weights_that_a_step_has_spoiled_are_named(options, tmp_path):
    layer = r"the weights of layer encoder\.0 \(Linear\) are not finite"
    message = rf"the loss became nan in epoch 1 of .*, batch 2: {layer}; {REMEDY}{GOOD}"
    with pytest.raises(ValueError, match=message):
        train(tmp_path, "test_finite:Overshooting", **options)
    assert metrics(tmp_path) == []


def test_a_learning_rate_that_is_far_too_high_is_noticed_in_the_second_batch(tmp_path):
    message = r"the (loss|logits) became (nan|inf|-inf) in epoch 1 of .*, batch 2: .*layer head"
    with pytest.raises(ValueError, match=message):
        train(tmp_path, optimiser="sgd", learning_rate=1e38)


def test_a_nan_in_validation_stops_too(tmp_path):
    message = r"the logits became nan in the validation after epoch 3 of .*, batch 1: first in what"
    with pytest.raises(ValueError, match=message):
        train(tmp_path, model=Outside, watcher=Arming(2, "evaluation", 1), checkpoint_seconds=0)
    assert len(metrics(tmp_path)) == 2


def test_a_nan_in_the_look_at_samples_of_a_method_stops_too(tmp_path):
    message = "the logits became nan in a look at the samples before epoch 3 of .*, batch 2"
    options = {"method": "spl", "val_share": 0.0, "model": Outside}
    with pytest.raises(ValueError, match=message):
        train(tmp_path, watcher=Arming(2, "evaluation", 2), **options)


class OneStepTooFar(Overshooting):
    """A method whose last batch, which is smaller, has infinite gradients."""

    def forward(self, logits, batch):
        method = Plain if len(batch.rows) == 32 else Overshooting
        return method.forward(self, logits, batch)


def test_weights_that_the_last_step_has_spoiled_are_never_saved(tmp_path):
    """There is no validation that would notice, and the loss was finite throughout."""
    message = r"at the end of epoch 1 of .* the weights of layer encoder\.0 \(Linear\) are not"
    with pytest.raises(ValueError, match=message):
        train(tmp_path, "test_finite:OneStepTooFar", val_share=0.0, checkpoint_seconds=0.0)
    assert not (tmp_path / "checkpoint").exists()
    assert metrics(tmp_path) == []


class Readings:
    """Inputs read one by one, of which one is broken."""

    def __init__(self, inputs, broken):
        self.inputs, self.broken = inputs, broken

    def __len__(self):
        return len(self.inputs)

    def read(self, row, _rng):
        return self.inputs[row] * (math.nan if row == self.broken else 1)

    def take(self, rows):
        return Readings(self.inputs[rows], None)

    def fingerprint(self):
        return "readings"


def test_inputs_that_are_not_finite_are_told_from_a_models_fault(tmp_path):
    whole = table(200)
    broken = Split(Readings(whole.inputs, 7), whole.targets, whole.class_names)
    data = sample(Source("table", table(200), test=table(60, seed=1)), val_share=0.2)
    data = type(data)(data.kind, broken, data.val, data.test)
    message = "the loss became nan in epoch 1 of .*: the inputs are not finite; mend the data"
    with pytest.raises(ValueError, match=message):
        train(tmp_path, data=data)


# ------------------------------------------------------------------------------ the parts


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_bad_number_anywhere_is_noticed(value, dtype):
    for place in (0, 250, 499):
        numbers = torch.full((50, 10), 3.0, dtype=dtype)
        assert all_finite(numbers)
        numbers.view(-1)[place] = value
        assert not all_finite(numbers)
        assert not all_finite(torch.ones(()), None, numbers)
        said = complaint(numbers, None, "a test", nn.Identity(), numbers, nn.Identity())
        assert (
            said
            == f"the logits became {value} in a test: the inputs are not finite; mend the data."
        )


def test_infinities_of_both_signs_do_not_cancel():
    assert not all_finite(torch.tensor([math.inf, -math.inf, 1.0]))


def test_large_numbers_are_finite_though_their_sum_is_not():
    assert all_finite(torch.full((100,), 1e308, dtype=torch.float64))
    assert all_finite(torch.tensor(3e38), torch.tensor(3e38))


class Nest(nn.Module):
    """Gives a dict of tuples, as many models do, one tensor of which is bad."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, inputs):
        return {"logits": (inputs, self.inner(inputs) / 0)}


def test_a_model_without_a_faulty_layer_is_named_itself():
    said = diagnosis(Nest(), torch.ones(2), Nest())
    assert said.startswith("though every layer")  # the call was of another model
    model = Nest()
    said = diagnosis(model, torch.ones(2), model)
    assert said.startswith("first in what the model itself (Nest) gives; lower")
    assert not model._forward_hooks
    assert not model.inner._forward_hooks


def test_finite_weights_are_nothing_to_speak_of():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert non_finite_weights(model) is None
    model[1].running_mean[0] = math.inf  # a buffer, which may be so on purpose
    assert non_finite_weights(model) is None
    with torch.no_grad():
        model[1].bias[1] = math.nan
    assert non_finite_weights(model) == "the weights of layer 1 (BatchNorm1d) are not finite"
