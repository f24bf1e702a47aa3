"""The settings: what is refused, what is filled in, and how they are stored and shown."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from coarse2fine import Config
from coarse2fine.models import MODELS
from coarse2fine.training.recipes import BIG, RECIPES, SMALL, recipe_for

NAN = float("nan")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "cosine"}, "metric must be one of embedding, embedding_sim.*Got 'cosine'"),
        ({"linkage": "ward"}, "linkage must be one of single, .*Got 'ward'"),
        (
            {"methods": ("continuous", "curious")},
            "method must be one of continuous, .*Got 'curious'",
        ),
        ({"methods": ("staged", "staged")}, "methods must be different. Got .*staged"),
        ({"optimiser": "lion"}, "optimiser must be one of adam, adamw, sgd. Got 'lion'"),
        (
            {"curriculum_epochs": "reach-80"},
            "must be a number of epochs, or one of adaptive, reach-90, best-epoch, search",
        ),
        ({"curriculum_epochs": 0}, "curriculum_epochs must be at least 1. Got 0"),
        ({"epochs": 0}, "epochs must be at least 1. Got 0"),
        ({"batch_size": -1}, "batch_size must be at least 1. Got -1"),
        ({"accumulate": 0}, "accumulate must be at least 1. Got 0"),
        ({"stage_epochs": 0}, "stage_epochs must be at least 1. Got 0"),
        ({"image_size": 0}, "image_size must be at least 1. Got 0"),
        ({"patience": -1}, "patience must be at least 0. Got -1"),
        ({"workers": -2}, "workers must be at least 0. Got -2"),
        ({"weight_decay": NAN}, "weight_decay must be at least 0. Got nan"),
        ({"momentum": -0.1}, "momentum must be at least 0. Got -0.1"),
        ({"max_levels": 1}, "max_levels must be at least 2. Got 1"),
        ({"max_cluster_share": 0.0}, "max_cluster_share must be more than 0 and less than 1. Got"),
        ({"max_cluster_share": 1.0}, "max_cluster_share must be more than 0 and less than 1. Got"),
        ({"learning_rate": 0.0}, "learning_rate must be more than 0. Got 0.0"),
        ({"learning_rate": NAN}, "learning_rate must be more than 0. Got nan"),
        ({"learning_rate": float("inf")}, "learning_rate must be more than 0. Got inf"),
        ({"learning_rate": 1e39}, r"learning_rate must be at most 3e\+38. Got 1e\+39"),
        ({"clip": -1.0}, "clip must be more than 0. Got -1.0"),
        ({"seeds": ()}, r"seeds must be different numbers from 0 on. Got \(\)"),
        ({"seeds": (1, 2, 1)}, r"seeds must be different numbers from 0 on. Got \(1, 2, 1\)"),
        ({"seeds": (-1,)}, "seeds must be different numbers from 0 on"),
        ({"val_share": 1.0}, "val_share must be at least 0 and less than 1. Got 1.0"),
        ({"test_share": -0.5}, "test_share must be at least 0 and less than 1. Got -0.5"),
        ({"milestones": (0.5, 1.5)}, "milestones must be .*Got"),
        (
            {"hierarchy": "a.json", "hierarchy_model": "cnn"},
            "hierarchy or hierarchy_model, not both",
        ),
        (
            {"hierarchy": "a.json", "hierarchy_epochs": 3},
            "give hierarchy or hierarchy_epochs, not both",
        ),
        ({"hierarchy_epochs": 0}, "hierarchy_epochs must be at least 1. Got 0"),
        ({"encoder": "a:b"}, "encoder= has no use unless hierarchy= is features or names"),
        (
            {"encoder": "a:b", "hierarchy": "./features"},
            "encoder= has no use unless hierarchy= is features or names",
        ),
        ({"hierarchy": "features"}, "'features' needs encoder=, .*of that name is ./features"),
        ({"hierarchy": "names"}, "'names' needs encoder=, .*of that name is ./names"),
        (
            {"hierarchy": "features", "encoder": "a:b", "hierarchy_epochs": 3},
            "give hierarchy or hierarchy_epochs, not both",
        ),
        (
            {"hierarchy": "features", "encoder": "a:b", "metric": "confusion_distance"},
            "metric 'confusion_distance' is of a trained model's mistakes, .* give embedding",
        ),
        (
            {"baseline": False, "hierarchy_epochs": 3, "curriculum_epochs": "best-epoch"},
            "curriculum_epochs must be a number",
        ),
        ({"baseline": False}, "without a baseline, a hierarchy or a hierarchy_model must be given"),
        (
            {"baseline": False, "hierarchy": "a.json", "curriculum_epochs": "reach-90"},
            "curriculum_epochs must be a number or 'adaptive', as the rule 'reach-90'",
        ),
        ({"baseline": False, "methods": "multitask"}, "a hierarchy or a hierarchy_model must be"),
        ({"baseline": False, "methods": "nbdt"}, "needs a baseline, whose final layer"),
        (
            {"methods": ("nbdt",), "method_settings": {"nbdt.width": 3}},
            "nbdt has no setting 'width', but weight",
        ),
        (
            {"methods": ("staged",), "method_settings": {"staged.weight": 3}},
            "staged has no setting 'weight', nor any",
        ),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Config(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": "ten"},
        {"epochs": 2.5},
        {"batch_size": 32.0},
        {"curriculum_epochs": 5.5},
        {"seeds": (0.5,)},
        {"learning_rate": "fast"},
    ],
    ids=str,
)
def test_settings_of_another_type_are_refused_by_their_name(changes):
    with pytest.raises((TypeError, ValueError), match=next(iter(changes))):
        Config(**changes)


@pytest.mark.parametrize("value", ["much", True, [1]])
def test_settings_of_methods_are_numbers(value):
    with pytest.raises(ValueError, match="weight must be a number of at least 0. Got"):
        Config(methods=("nbdt",), method_settings={"nbdt.weight": value})


@pytest.mark.parametrize("name", ["weight", "nbdt"])
def test_settings_are_named_after_their_methods(name):
    with pytest.raises(ValueError, match=f"must be named METHOD.NAME. Got '{name}'"):
        Config(methods=("nbdt",), method_settings={name: 1.0})


def test_settings_of_methods_are_a_dict_and_an_empty_one_is_none():
    assert Config(method_settings={}) == Config()
    with pytest.raises(TypeError, match="method_settings must be a dict"):
        Config(method_settings=[("nbdt.weight", 1)])
    with pytest.raises(TypeError, match="track_test must be True or False"):
        Config(track_test="yes")


@pytest.mark.parametrize(
    "changes",
    [
        {"baseline": False, "hierarchy": "a.json", "curriculum_epochs": 5},
        {"baseline": False, "hierarchy_model": "cnn", "methods": "staged"},
        {"baseline": False, "hierarchy_epochs": 3, "methods": "staged"},
        {"hierarchy_epochs": 3, "hierarchy_model": "cnn"},
        {"baseline": False, "hierarchy": "names", "encoder": "a:b", "curriculum_epochs": 5},
        {"hierarchy": "./names"},
        {"methods": ()},
        {"val_share": 0.0, "patience": 0, "workers": 0, "weight_decay": 0.0, "momentum": 0.0},
        {"max_levels": 2, "clip": 0.1, "milestones": ()},
        {"baseline": False, "methods": ("spl", "dp-l", "dp-li")},
        {"baseline": False, "methods": "multitask", "hierarchy": "a.json"},
        {"method_settings": {}, "track_test": False},
        {
            "methods": ("dp-li",),
            "method_settings": {"dp-li.class_init": 2, "dp-li.instance_init": 0.01},
        },
    ],
    ids=str,
)
def test_settings_at_the_edge_are_taken(changes):
    Config(**changes)


def test_one_value_stands_for_a_tuple_of_one():
    config = Config(methods="staged", seeds=3, milestones=0.5)
    assert (config.methods, config.seeds, config.milestones) == (("staged",), (3,), (0.5,))
    assert Config(seeds=range(3)).seeds == Config(seeds=[0, 1, 2]).seeds == (0, 1, 2)


def test_settings_cannot_be_changed_but_copied_and_are_checked_again():
    with pytest.raises(FrozenInstanceError):
        Config().epochs = 3
    with pytest.raises(ValueError, match="epochs"):
        replace(Config(), epochs=0)


def test_settings_come_back_from_json():
    config = Config(
        seeds=(0, 1),
        methods=("staged", "spl"),
        method_settings={"spl.growth": 1.5},
        milestones=(3 / 7,),
        clip=0.1,
        track_test=True,
    )
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_settings_tell_what_their_methods_need():
    needs = ("hierarchy", "length", "class_vectors")
    for methods, wanted in {
        (): (False, False, False),
        ("spl", "dp-l"): (False, False, False),
        ("spl", "continuous"): (True, True, False),
        ("multitask", "nbdt"): (True, False, True),
    }.items():
        assert tuple(map(Config(methods=methods).is_needed, needs)) == wanted


def test_an_unknown_setting_is_named():
    with pytest.raises(ValueError, match="there is no setting 'epoch'"):
        Config.from_dict({"epochs": 3, "epoch": 3})


def test_print_shows_what_is_set_in_aligned_lines():
    lines = str(Config(seeds=(0, 1), clip=0.5)).splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert shown["seeds"] == "0, 1"
    assert shown["clip"] == "0.5"
    assert shown["metric"] == "embedding"
    assert "train_size" not in shown
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in lines}) == 1


# -------------------------------------------------------------------------------- recipes


def test_a_recipe_fills_in_only_what_is_not_set():
    config = Config(epochs=7, weight_decay=0.0).with_recipe(BIG)
    assert (config.epochs, config.weight_decay) == (7, 0.0)
    assert (config.optimiser, config.learning_rate, config.momentum) == ("sgd", 0.1, 0.9)


@pytest.mark.parametrize("model", [*MODELS, "mine:Net"])
def test_every_model_has_a_recipe_after_which_nothing_is_open(model):
    filled = Config(model=model).with_recipe(recipe_for(model))
    given = {name for name, value in SMALL.to_dict().items() if value is not None}
    assert given > {"optimiser", "learning_rate", "batch_size", "epochs", "patience", "val_share"}
    assert all(getattr(filled, name) is not None for name in given)


def test_the_recipes_are_those_of_the_paper():
    assert (SMALL.optimiser, SMALL.learning_rate, SMALL.batch_size) == ("adam", 1e-3, 512)
    assert (SMALL.epochs, SMALL.patience) == (200, 50)
    assert (SMALL.momentum, SMALL.weight_decay) == (0.9, 0.0)
    assert (SMALL.augment, SMALL.normalise, SMALL.val_share, SMALL.milestones) == (
        False,
        False,
        0.2,
        (),
    )
    assert (BIG.optimiser, BIG.learning_rate, BIG.momentum, BIG.weight_decay) == (
        "sgd",
        0.1,
        0.9,
        5e-4,
    )
    assert (BIG.batch_size, BIG.epochs, BIG.patience) == (128, 200, 0)
    assert BIG.milestones == pytest.approx((3 / 7, 5 / 7))
    assert (BIG.augment, BIG.normalise, BIG.val_share) == (True, True, 0.1)
    assert RECIPES["cnn"] is SMALL
    assert {RECIPES[name] for name in ("resnet20", "resnet18", "resnet50", "wrn-28-10")} == {BIG}
    assert recipe_for(None) == recipe_for("mine:Net") == SMALL
