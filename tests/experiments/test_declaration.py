"""What an experiment is made of, what is chosen of it, and where its runs lie."""

from dataclasses import replace
from pathlib import Path

import pytest

from coarse2fine.experiments import EXPERIMENTS, declaration, find_experiment
from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant, chosen
from coarse2fine.experiments.tasks import expand

CURRICULUM, SPL = Variant("continuous", label="C2F"), Variant("spl")
ANIMALS = {"data": "animals.csv", "model": "mlp"}


def setting(*variants, **changes):
    return Setting("animals", {**ANIMALS, **changes}, variants or (CURRICULUM, SPL))


def scale():
    return Scale(
        "two sizes, and another model",
        (
            setting(CURRICULUM, SPL, train_size=100),
            setting(CURRICULUM, train_size=50),
            setting(SPL, model="cnn"),
        ),
    )


def what(settings):
    return {row.key: [variant.name for variant in row.variants] for row in settings}


# ------------------------------------------------------------------------------- choosing


def test_everything_is_chosen_where_nothing_is_named():
    assert chosen(scale()) == scale().settings


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (
            ["spl"],
            {"animals.csv-mlp-100": ["spl"], "animals.csv-cnn": ["spl"]},
        ),
        (["animals.csv-mlp-50"], {"animals.csv-mlp-50": ["continuous"]}),
        (
            ["animals.csv-mlp-*"],
            {"animals.csv-mlp-100": ["continuous", "spl"], "animals.csv-mlp-50": ["continuous"]},
        ),
        (["animals.csv-mlp-*", "s*"], {"animals.csv-mlp-100": ["spl"]}),
        (["*-50", "*-cnn", "spl", "continuous"], {
            "animals.csv-mlp-50": ["continuous"], "animals.csv-cnn": ["spl"],
        }),
    ],
)  # fmt: skip
def test_settings_and_methods_are_chosen_by_name(only, found):
    assert what(chosen(scale(), tuple(only))) == found


def test_a_name_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(ValueError, match=r"nothing here is called 'nbdt'") as error:
        chosen(scale(), ("spl", "nbdt"))
    assert "The settings are animals.csv-mlp-100, animals.csv-mlp-50" in str(error.value)
    assert str(error.value).endswith("the methods are continuous, spl.")


def test_a_choice_that_leaves_nothing_is_an_error():
    with pytest.raises(ValueError, match=r"none of the settings animals.csv-mlp-50 has a method"):
        chosen(scale(), ("animals.csv-mlp-50", "spl"))


def test_epochs_hold_for_every_setting():
    found = chosen(scale(), ("spl",), epochs=7)
    assert [row.config(None, (0,)).epochs for row in found] == [7, 7]
    assert {row.folder for row in found}.isdisjoint(row.folder for row in chosen(scale()))


# ---------------------------------------------------------------------- keys and directories


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"data": "cifar100", "model": "cnn"}, "cifar100-cnn"),
        ({"data": "shapes:600", "model": "my.nets:Wide", "train_size": 50},
         "shapes.600-my.nets.Wide-50"),
        ({"data": "/data/our animals.csv", "model": "mlp"}, "data.our.animals.csv-mlp"),
        ({"data": "../animals.csv", "model": "mlp"}, "animals.csv-mlp"),
    ],
)  # fmt: skip
def test_a_key_can_name_a_directory_that_everyone_sees(settings, key):
    assert Setting("", settings, ()).key == key


def test_the_same_baseline_has_the_same_directory_whatever_is_compared():
    folder = setting().folder
    assert folder.startswith("animals.csv-mlp-")
    assert setting(SPL).folder == folder
    assert replace(setting(), label="other", paper={"baseline": (1.0, None)}).folder == folder
    assert setting(metric="confusion", curriculum_epochs=7, max_levels=3).folder == folder
    assert setting(epochs=100).folder == folder  # as the model's recipe has it
    assert setting(accelerator="cpu", devices=1, workers=2).folder == folder


@pytest.mark.parametrize(
    "changes",
    [{"epochs": 9}, {"train_size": 100}, {"patience": 9}, {"image_size": 8}, {"batch_size": 9},
     {"model": "cnn"}, {"val_share": 0.3}, {"track_test": True}, {"target": "kind"},
     {"curriculum_epochs": "search"}],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_another_baseline_has_another_directory(changes):
    assert setting(**changes).folder != setting().folder


def test_settings_of_a_variant_reach_its_config_alone():
    row = setting(Variant("long", "continuous", {"curriculum_epochs": 30}), SPL, epochs=60)
    long, spl = (row.config(variant, (0, 1)) for variant in row.variants)
    assert (long.methods, long.curriculum_epochs) == (("continuous",), 30)
    assert (spl.methods, spl.curriculum_epochs) == (("spl",), "adaptive")
    assert long.seeds == (0, 1)
    assert long.epochs == 60
    assert (row.asked(SPL, (0,)).batch_size, spl.batch_size) == (None, 64)  # the recipe's


def test_what_tables_show_is_the_label_or_else_the_name():
    assert (CURRICULUM.shown, SPL.shown) == ("C2F", "spl")
    assert Variant("long", "continuous").trains_by == "continuous"
    assert SPL.trains_by == "spl"


# ------------------------------------------------------------------------ wrong declarations


@pytest.mark.parametrize("name", ["", "baseline", ".hidden", "a/b", "my_methods:Mine", "a b"])
def test_a_variant_needs_a_name_that_can_be_a_directory(name):
    with pytest.raises(ValueError, match=r"a variant's name must be made of letters, digits"):
        Variant(name)


def test_a_variant_cannot_set_what_its_baseline_depends_on():
    with pytest.raises(ValueError, match=r"the variant 'spl' sets epochs, on which its baseline"):
        Variant("spl", settings={"epochs": 9, "metric": "random"})


def test_variants_must_have_different_names():
    with pytest.raises(ValueError, match=r"different names. Got spl, continuous, spl."):
        setting(SPL, CURRICULUM, SPL)


def test_a_search_for_t_is_for_a_whole_setting():
    search = Variant("searched", "continuous", {"curriculum_epochs": "search"})
    with pytest.raises(ValueError, match=r"set it for the whole of 'animals' instead of"):
        setting(search)
    with pytest.raises(ValueError, match=r"for the whole of 'animals'"):
        setting(
            Variant("short", "continuous", {"curriculum_epochs": 5}), curriculum_epochs="search"
        )
    assert setting(search, curriculum_epochs="search").variants == (search,)


def test_an_unknown_scale_is_told_with_those_there_are():
    experiment = Experiment("", {"full": scale(), "small": scale()})
    assert experiment.scale("small") == scale()
    with pytest.raises(ValueError, match=r"no scale 'tiny' here. Must be one of full, small."):
        experiment.scale("tiny")


# ------------------------------------------------------------------------------- what there is


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_expanded_at_every_scale(name):
    experiment = find_experiment(name)
    assert "full" in experiment.scales
    for each in experiment.scales.values():
        folders = [row.folder for row in each.settings]
        assert len(set(folders)) == len(folders)
        for row in each.settings:
            assert row.variants
            for variant in row.variants:
                assert row.config(variant, (0,)).methods == (variant.trains_by,)
            assert row.paper.keys() <= {"baseline", *(v.name for v in row.variants)}


def test_a_name_means_the_same_in_all_experiments_that_share_a_directory():
    meanings = {}
    for name in EXPERIMENTS:
        for each in find_experiment(name).scales.values():
            for row in each.settings:
                for variant in row.variants:
                    config = row.config(variant, (0,))
                    assert meanings.setdefault((row.folder, variant.name), config) == config


def test_curves_and_sensitivity_share_their_trainings():
    curves, lengths = (
        {task.path: task.settings for task in expand(rows, (0,), Path())}
        for rows in (
            find_experiment(it).scales["small"].settings for it in ("curves", "sensitivity")
        )
    )
    assert [path.name for path in curves] == ["baseline", "continuous", "staged"]
    shared = curves.keys() & lengths.keys()
    assert {path.name for path in shared} == {"baseline", "continuous"}
    assert all(curves[path] == lengths[path] for path in shared)


def test_an_unknown_experiment_is_told_with_those_there_are():
    with pytest.raises(ValueError, match=r"no experiment 'x'. Must be one of shapes-size, "):
        find_experiment("x")
    with pytest.raises(TypeError, match=r"must be a .*Experiment. Got a type."):
        find_experiment(f"{declaration.__name__}:Experiment")


def test_what_is_chosen_among_must_be_there():
    settings = {"data": "shapes", "model": "cnn"}
    with pytest.raises(ValueError, match="has no variant 'adaptive' to choose among"):
        Setting("row", settings, (Variant("continuous"),), chosen_among=("adaptive",))


def test_without_one_of_its_candidates_nothing_is_chosen():
    settings = {"data": "shapes", "model": "cnn"}
    variants = (Variant("continuous"), Variant("staged"))
    scale = Scale("", (Setting("row", settings, variants, chosen_among=("staged",)),))
    assert chosen(scale, ("staged",))[0].chosen_among == ("staged",)
    assert chosen(scale, ("continuous",))[0].chosen_among == ()
