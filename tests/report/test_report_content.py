"""The values that a report shows, and of which runs, with four classes worked by hand."""

import json

import numpy as np
import pytest
from made_runs import make_run
from plain import plain_content

from coarse2fine import Hierarchy, RunError, level_accuracies, mistake_severity
from coarse2fine.report.runs import gather


@pytest.fixture
def content(made, tmp_path):
    made("baseline"), made("continuous")
    return plain_content([tmp_path / "run"])


# --------------------------------------------------------------- four classes, worked by hand


def test_classes_are_in_the_order_of_the_hierarchy(content):
    assert content["classes"] == {
        "names": ["a", "c", "b", "d"],
        "index": [0, 2, 1, 3],
        "samples": [2, 2, 2, 2],
        "before": [50, 50, 50, 0],
        "after": [100, 50, 100, 50],
    }
    assert content["levels"] == [{"edges": [0, 2, 4], "names": None}]


def test_clusters_have_their_accuracies_and_most_confused_pairs(content):
    (level,) = content["clusters"]
    assert level == {
        "before": [75, 50],
        "after": [100, 75],
        "class_before": [50, 25],
        "class_after": [75, 75],
        "pairs": [
            [[3, 0, 100, 50], [0, 1, 50, 0], [1, 0, 0, 50], [1, 3, 50, 0]],
            [[3, 0, 100, 50], [1, 3, 50, 0], [2, 3, 50, 0]],
        ],
    }


def test_mistakes_are_counted_before_and_after(content):
    better = [[0, 1, 1, 0], [1, 3, 1, 0], [2, 3, 1, 0], [3, 0, 2, 1]]
    assert content["mistakes"] == {"better": better, "worse": [[1, 0, 0, 1]]}
    assert content["confusion"] == {
        "level": None,
        "before": [[0, 0, 1, 1, 2, 2, 3], [0, 1, 1, 3, 2, 3, 0], [1, 1, 1, 1, 1, 1, 2]],
        "after": [[0, 1, 1, 2, 3, 3], [0, 0, 1, 2, 0, 3], [2, 1, 1, 2, 1, 1]],
        "samples": [2, 2, 2, 2],
    }


def test_each_class_has_what_it_was_most_often_taken_for(content):
    assert content["taken_for"] == [
        [[0, 1, 50, 0]],
        [[1, 0, 0, 50], [1, 3, 50, 0]],
        [[2, 3, 50, 0]],
        [[3, 0, 100, 50]],
    ]


def test_mistakes_have_their_severity_and_levels_their_accuracy(content):
    assert content["severity"] == {
        "before": 1.6,
        "after": 1.5,
        "heights": {"before": [37.5, 25, 37.5], "after": [75, 12.5, 12.5]},
    }
    assert content["level_accuracy"] == {
        "num_clusters": [2, 4],
        "rows": [
            {"label": "baseline", "mean": [62.5, 37.5], "error": None},
            {"label": "continuous", "mean": [87.5, 75], "error": None},
        ],
        "samples": [],
    }


def test_the_content_is_plain_json_and_says_what_is_shown(content):
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["title"] == "own data · cnn"
    assert content["shown"] == {
        "comparison": "run",
        "label": "continuous",
        "baseline": "baseline",
        "seed": 0,
        "seeds": [0],
    }
    assert content["examples"] is None
    assert content["remarks"] == []


def test_curves_are_in_percent_with_the_level_of_every_epoch(made, tmp_path):
    made("baseline"), made("continuous", curve=[None, 0.25, 0.5, 0.75], track_test=True)
    curves = plain_content([tmp_path / "run"])["curves"]
    assert curves[1] == {
        "label": "continuous",
        "seed": 0,
        "accuracy": [None, 25, 50, 75],
        "level": [0, 0, 1, 1],
        "is_test": True,
        "coarse": [],
    }
    assert [curve["is_test"] for curve in curves] == [False, True]


# -------------------------------------------------------------------------- what is shown


def test_continuous_is_preferred_and_any_other_method_can_be_asked_for(made, tmp_path):
    for method in ("baseline", "multitask", "continuous", "dp-l"):
        made(method, **({"hierarchy": None} if method == "dp-l" else {}))
    content = plain_content([tmp_path / "run"])
    assert content["shown"]["label"] == "continuous"
    assert [row["is_shown"] for row in content["table"]] == [False, True, False, False]
    assert plain_content([tmp_path / "run"], method="multitask")["shown"]["label"] == "multitask"
    other = plain_content([tmp_path / "run"], method="dp-l")
    assert (
        "dp-l was trained without a hierarchy; shown is that of continuous, seed 0."
        in (other["remarks"])
    )
    assert other["levels"] == content["levels"]


def test_without_any_hierarchy_the_first_method_is_shown(made, tmp_path):
    made("baseline"), made("dp-l", hierarchy=None), made("spl", hierarchy=None)
    content = plain_content([tmp_path / "run"])
    assert content["shown"]["label"] == "dp-l"
    assert content["levels"] == content["remarks"] == []


def test_the_label_chooses_among_methods_of_the_same_name(made, tmp_path):
    made("continuous", folder="one"), made("continuous", folder="two")
    sources = [tmp_path / "one", tmp_path / "two"]
    for name, label in (("two: continuous", "two"), ("continuous", "one")):
        assert plain_content(sources, method=name)["shown"]["label"] == f"{label}: continuous"


def test_an_unknown_method_or_seed_is_an_error_that_names_those_there(made, tmp_path):
    made("baseline"), made("continuous", 3)
    with pytest.raises(RunError, match="there is no method nbdt, but baseline, continuous"):
        plain_content([tmp_path / "run"], method="nbdt")
    with pytest.raises(RunError, match="continuous has no seed 7, but 3"):
        plain_content([tmp_path / "run"], seed=7)
    for wrong in (-1, True, 1.5):
        with pytest.raises(ValueError, match="examples must be a whole number from 0 on. Got"):
            plain_content([tmp_path / "run"], examples=wrong)


def test_only_seeds_that_both_have_are_counted(made, tmp_path):
    made("baseline", 1), made("baseline", 2)
    made("continuous", 0, predictions=[0] * 8), made("continuous", 1)
    content = plain_content([tmp_path / "run"])
    assert content["shown"]["seeds"] == [1]
    assert content["shown"]["seed"] == 1
    assert sum(content["classes"]["samples"]) == 8
    assert content["classes"]["after"] == [100, 50, 100, 50]
    assert plain_content([tmp_path / "run"], seed=0)["shown"]["seed"] == 0


def test_without_a_baseline_there_is_no_before(made, tmp_path):
    made("continuous", 0), made("continuous", 1)
    content = plain_content([tmp_path / "run"])
    assert content["shown"]["baseline"] is None
    assert content["shown"]["seeds"] == [0, 1]
    assert content["classes"]["before"] is content["confusion"]["before"] is None
    assert content["classes"]["samples"] == [4] * 4
    assert content["mistakes"] == {"better": [], "worse": []}
    assert content["severity"]["before"] is content["severity"]["heights"]["before"] is None
    (level,) = content["clusters"]
    assert level["before"] is level["class_before"] is None
    assert level["pairs"] == [[[1, 0, None, 50], [3, 0, None, 50]], [[3, 0, None, 50]]]


def test_a_baseline_alone_has_no_levels_above_the_classes(made):
    content = plain_content([made("baseline")])
    assert content["levels"] == content["clusters"] == []
    assert content["classes"]["names"] == ["a", "b", "c", "d"]
    assert content["level_accuracy"]["num_clusters"] == [4]
    heights = {"before": None, "after": [37.5, 62.5]}
    assert content["severity"] == {"before": None, "after": None, "heights": heights}
    assert content["confusion"]["level"] is None


def test_a_hierarchy_of_the_classes_alone_is_like_none(made):
    with pytest.warns(UserWarning, match="no level above the classes"):
        tree = Hierarchy.from_levels([[0, 1, 2, 3]], tuple("abcd"))
    content = plain_content([made("continuous", hierarchy=tree)])
    assert content["levels"] == content["clusters"] == []
    assert content["severity"]["after"] is None


def test_clusters_with_names_keep_them_in_the_order_of_the_classes(tmp_path):
    middle, names = ["<b>", "last", "dogs", "only f"], ["one", "two"]
    levels = [[0, 1, 0, 1, 0, 1], [0, 1, 2, 1, 2, 3]]
    tree = Hierarchy.from_levels(levels, tuple("abcdef"), [names, middle])
    make_run(tmp_path / "run", hierarchy=tree, predictions=range(6), targets=range(6))
    content = plain_content([tmp_path / "run"])
    assert content["classes"]["names"] == ["a", "c", "e", "b", "d", "f"]
    assert content["levels"] == [
        {"edges": [0, 3, 6], "names": ["one", "two"]},
        {"edges": [0, 1, 3, 5, 6], "names": ["<b>", "dogs", "last", "only f"]},
    ]


# ---------------------------------------------------------- each seed with its own hierarchy


def by_metrics(path, hierarchies, label):
    """The mean accuracy at each level, and severity, by the functions of `coarse2fine.metrics`."""
    entry = next(entry for entry in gather([path]).entries if entry.label == label)
    given = [(*run.predictions, hierarchies[run.seed]) for run in entry.runs]
    levels = np.mean([100 * level_accuracies(*one) for one in given], axis=0)
    return pytest.approx(levels, abs=1e-3), pytest.approx(
        np.mean([mistake_severity(*one) for one in given]), abs=1e-4
    )


@pytest.mark.parametrize(
    ("second", "is_own", "text"),
    [
        ([0, 0, 1, 1], True, "each seed is measured by its own, as all have 2 → 4 clusters"),
        ([0, 1, 2, 2], False, "all seeds are measured by that one, as the others have other"),
    ],
)
def test_seeds_are_measured_by_their_own_hierarchies_if_of_one_size(
    made, tmp_path, tree, second, is_own, text
):
    other = Hierarchy.from_levels([second], tuple("abcd"))
    trees = {0: tree, 1: other}
    for seed in (0, 1):
        made("baseline", seed), made("continuous", seed, hierarchy=trees[seed])
    content = plain_content([tmp_path / "run"])
    (remark,) = content["remarks"]
    assert text in remark
    used = trees if is_own else {0: tree, 1: tree}
    for row, summary in zip(content["level_accuracy"]["rows"], content["table"], strict=True):
        levels, severity = by_metrics(tmp_path / "run", used, row["label"])
        assert row["mean"] == levels
        assert summary["severity"] == severity
        assert row["error"] is not None
    assert content["severity"]["after"] == content["table"][1]["severity"]
    assert plain_content([tmp_path / "run"], seed=1)["classes"]["index"] == [0, 1, 2, 3]


# ------------------------------------------------------------------------- how to repeat it


def test_what_all_runs_share_is_told_apart_from_what_differs(made, tmp_path):
    made("baseline", learning_rate=0.1, command="c2f train x")
    made("continuous", learning_rate=0.1, max_levels=2, command="c2f train x")
    made("continuous", 1, learning_rate=0.2, max_levels=2, command="c2f train y")
    repeat = plain_content([tmp_path / "run"])["repeat"]
    assert repeat["commands"] == ["c2f train x", "c2f train y"]
    assert repeat["seeds"] == [0, 1]
    assert repeat["config"]["model"] == "cnn"
    assert not {"seeds", "learning_rate", "max_levels", "clip"} & repeat["config"].keys()
    assert repeat["differences"] == [
        {"label": "baseline", "settings": {"max_levels": None, "learning_rate": 0.1}},
        {"label": "continuous", "settings": {"max_levels": 2, "learning_rate": [0.1, 0.2]}},
    ]
    (versions,) = repeat["versions"]
    assert "torch" in versions
    assert repeat["runs"][1] == {
        "label": "continuous",
        "seed": 0,
        "folder": str(tmp_path / "run" / "seed-0" / "continuous"),
        "accuracy": 75,
        "epochs": 4,
        "hierarchy_epochs": None,
        "own_epochs": None,
        "best_epoch": 2,
        "curriculum_epochs": 2,
        "num_clusters": [2, 4],
        "seconds": 10.0,
    }


@pytest.mark.parametrize("program", ["c2f", "/usr/local/bin/c2f", "'/home/some one/bin/c2f'"])
def test_commands_do_not_tell_where_the_program_lies(made, program):
    path = made("baseline", command=f"{program} train /data/c2f")
    assert plain_content([path])["repeat"]["commands"] == ["c2f train /data/c2f"]


def test_equal_runs_have_no_differences(content):
    assert content["repeat"]["differences"] == []


@pytest.mark.parametrize(
    ("settings", "title"),
    [
        ({"data": "sets/flowers/train.csv", "model": "mine.nets:Net#12ab"}, "flowers · Net"),
        ({"data": "train.csv"}, "train.csv · cnn"),
        ({"data": "user/intents", "model": "text"}, "intents · text"),
    ],
)
def test_the_title_names_data_and_model(made, settings, title):
    assert plain_content([made("baseline", **settings)])["title"] == title


def test_the_title_names_all_models(made, tmp_path):
    made("baseline", data="a.csv"), made("continuous", data="a.csv", model="resnet18")
    assert plain_content([tmp_path / "run"])["title"] == "a.csv · cnn, resnet18"
