"""Methods by name and by place, and the settings that are their own."""

import subprocess
import sys

import pytest
import torch
from batches import alone, batch_of, no_losses
from hierarchies import make

from coarse2fine.methods import METHODS, PLAIN, build_method, find_method, settings_of
from coarse2fine.methods.base import Method, Plan, Stage
from coarse2fine.methods.plain import Plain

PLAN = Plan(5, 10, 3, make(), 6, num_samples=7, class_vectors=torch.randn(5, 3).numpy())

OWN = """
from coarse2fine.methods.plain import Plain

class Scaled(Plain):
    needs = frozenset({"hierarchy"})

    def __init__(self, plan, *, scale=2.0):
        super().__init__(plan)
        self.scale = scale

    def forward(self, logits, batch):
        return self.scale * super().forward(logits, batch)

class Untouched(Scaled):
    pass

def function(plan):
    return Plain(plan)

made = "no class"
"""


@pytest.fixture
def _own(tmp_path, monkeypatch):
    """A current directory with a module of one's own."""
    (tmp_path / "my_methods.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_methods", None)


# -------------------------------------------------------------------------------- finding


@pytest.mark.parametrize("name", [PLAIN, *METHODS])
def test_every_method_of_the_registry_can_be_made_and_keeps_the_protocol(name):
    method = build_method(name, PLAN)
    assert isinstance(method, Method)
    assert isinstance(method, find_method(name))
    assert method.stages[-1].outputs == 5
    last = len(method.stages) - 1
    method.begin_epoch(last, 0, no_losses)
    logits = torch.randn(7, 5, requires_grad=True)
    loss = method(logits, batch_of([0, 1, 2, 3, 4, 0, 4]))
    loss.backward()
    method.end_batch(alone)
    assert loss.shape == ()
    assert logits.grad.abs().sum() > 0
    assert all(found.shape == (7,) for found in method.decide(logits).values())


@pytest.mark.parametrize("name", [PLAIN, *(name for name in METHODS if name != "nbdt")])
def test_all_but_the_decision_tree_predict_the_most_probable_class(name):
    logits = torch.randn(7, 5)
    found = build_method(name, PLAN).decide(logits)
    assert list(found) == ["argmax"]
    assert torch.equal(found["argmax"], logits.argmax(1))


def test_methods_say_what_they_need():
    assert {name: set(find_method(name).needs) for name in (PLAIN, *METHODS)} == {
        "plain": set(),
        "continuous": {"hierarchy", "length"},
        "staged": {"hierarchy"},
        "spl": set(),
        "dp-l": set(),
        "dp-li": set(),
        "multitask": {"hierarchy"},
        "nbdt": {"class_vectors"},
        "hxe": {"hierarchy"},
        "soft-labels": {"hierarchy"},
        "hace": {"hierarchy"},
    }


def test_methods_are_imported_when_they_are_used():
    """So that naming them in a help text costs nothing."""
    code = "import sys, coarse2fine.methods as m; m.METHODS; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.usefixtures("_own")
def test_a_method_of_ones_own_is_found_in_the_current_directory():
    method = build_method("my_methods:Scaled", PLAN, {"my_methods:Scaled.scale": 3})
    assert method.stages == (Stage(5, 10, 3),)
    logits, batch = torch.randn(2, 5), batch_of([0, 4])
    torch.testing.assert_close(method(logits, batch), 3 * Plain(PLAN)(logits, batch))


@pytest.mark.usefixtures("_own")
@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("curious", ValueError, "must be one of continuous, staged, .*hace, or .*Got 'curious'"),
        ("", ValueError, "must be one of continuous.*Got ''"),
        ("my_methods:Missing", ValueError, "my_methods has no Missing"),
        ("no_such_module:Mine", ValueError, "method 'no_such_module:Mine' cannot be imported"),
        ("my_methods:", ValueError, "must have the form package.module:"),
        ("my_methods:function", TypeError, "'my_methods:function' must be a subclass of .*Method"),
        ("my_methods:made", TypeError, "must be a subclass of coarse2fine.methods.base.Method"),
        ("torch.nn:Linear", TypeError, "must be a subclass of coarse2fine.methods.base.Method"),
    ],
)
def test_what_is_no_method_is_refused(name, error, message):
    with pytest.raises(error, match=message):
        find_method(name)


# ------------------------------------------------------------------------------- settings


def test_a_method_takes_its_own_settings_and_leaves_those_of_others():
    given = {"spl.growth": 1.5, "nbdt.weight": 10, "spl.warm_epochs": 4, "dp-li.class_init": 3}
    method = build_method("spl", PLAN, given)
    assert (method.growth, method.warm_epochs) == (1.5, 4)
    assert build_method("nbdt", PLAN, given).weight == 10
    assert settings_of("staged", given) == {}


def test_settings_of_one_method_are_not_those_of_one_that_is_made_from_it():
    """DP-LI has all that DP-L has, but under its own name."""
    given = {"dp-l.class_learning_rate": 0.3, "dp-li.class_learning_rate": 0.4}
    assert settings_of("dp-l", given) == {"class_learning_rate": 0.3}
    assert settings_of("dp-li", given) == {"class_learning_rate": 0.4}


def test_inherited_settings_reach_what_they_are_for():
    given = {
        "dp-li.class_init": 2.0,
        "dp-li.class_learning_rate": 0.3,
        "dp-li.class_weight_decay": 0.01,
        "dp-li.instance_init": 0.5,
        "dp-li.instance_learning_rate": 0.4,
        "dp-li.instance_weight_decay": 0.02,
    }
    method = build_method("dp-li", PLAN, given)
    assert method.classes.values.exp().tolist() == pytest.approx([2.0] * 5)
    assert method.instances.values.exp().tolist() == pytest.approx([0.5] * 7)
    rates = [(part.learning_rate, part.weight_decay) for part in (method.classes, method.instances)]
    assert rates == [(0.3, 0.01), (0.4, 0.02)]


@pytest.mark.usefixtures("_own")
def test_a_method_without_a_constructor_of_its_own_has_its_parents_settings():
    assert settings_of("my_methods:Untouched", {"my_methods:Untouched.scale": 5}) == {"scale": 5}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("spl", {"spl.speed": 2}, "the method spl has no setting 'speed', but warm_epochs, growth"),
        ("dp-l", {"dp-l.instance_init": 2}, "no setting 'instance_init', but class_init, class_"),
        (
            "dp-li",
            {"dp-li.init": 2},
            "no setting 'init', but class_init, .*class_weight_decay, instance_init, ",
        ),
        ("multitask", {"multitask.weight": 2}, "no setting 'weight', nor any other"),
        ("continuous", {"continuous.plan": 2}, "no setting 'plan', but patience, share"),
    ],
)
def test_settings_that_a_method_does_not_have_are_named(name, settings, message):
    with pytest.raises(ValueError, match=message):
        build_method(name, PLAN, settings)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("spl.warm_epochs", 0, "warm_epochs must be an integer of at least 1. Got 0"),
        ("spl.warm_epochs", 1.5, "warm_epochs must be an integer of at least 1. Got 1.5"),
        ("spl.growth", 1.0, "growth must be a number of at least 1.01. Got 1.0"),
        ("spl.growth", float("inf"), "growth must be .*Got inf"),
        ("continuous.share", 1, "continuous.share must be a number of at least 0 and less than 1"),
        ("nbdt.weight", -0.5, "nbdt.weight must be a number of at least 0. Got -0.5"),
        ("nbdt.weight", float("nan"), "weight must be .*Got nan"),
        ("nbdt.weight", "much", "weight must be .*Got 'much'"),
        ("dp-l.class_init", 0.0, "class_init must be .*Got 0.0"),
        ("hxe.alpha", -0.1, "hxe.alpha must be a number of at least 0. Got -0.1"),
        ("soft-labels.beta", -1, "soft-labels.beta must be a number of at least 0. Got -1"),
        ("hace.dilution", 0, "dilution must be a number of at least 0.01 and less than 1. Got 0"),
        ("hace.dilution", 1.0, "dilution must be .* less than 1. Got 1.0"),
        (
            "dp-l.class_learning_rate",
            -0.1,
            "class_learning_rate must be a number of at least 0. Got -0.1",
        ),
        (
            "dp-li.class_weight_decay",
            -1,
            "class_weight_decay must be a number of at least 0",
        ),
        ("dp-li.instance_init", -2.0, "instance_init must be .*Got -2.0"),
        ("dp-li.instance_weight_decay", float("nan"), "instance_weight_decay must be .*Got nan"),
    ],
)
def test_values_that_a_setting_cannot_have_are_refused(setting, value, message):
    with pytest.raises(ValueError, match=message):
        build_method(setting.rpartition(".")[0], PLAN, {setting: value})
