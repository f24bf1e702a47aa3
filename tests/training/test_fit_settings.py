"""What a call of `fit` is set by: the length of the curriculum, the directory, the model."""

import json
from functools import partial

import pytest
import torch
from studies import (
    NAMES,
    TRAIN,
    Interrupting,
    InterruptionError,
    Net,
    compare,
    dropping,
    hierarchy,
    metrics,
    pair,
    table,
)
from torch import nn

from coarse2fine import Hierarchy, RunError, epochs_to_reach, share_of_best_epoch
from coarse2fine.training import seed as seed_module

OTHER = Hierarchy.from_levels([[0, 1, 0, 1, 0, 1]], NAMES)


def accuracies(run):
    return [line["accuracy"] for line in metrics(run.path)]


# ------------------------------------------------------------------------------- rules for T


@pytest.mark.parametrize(
    ("name", "rule"), [("reach-90", epochs_to_reach), ("best-epoch", share_of_best_epoch)]
)
def test_the_length_follows_from_the_accuracies_of_the_baseline(name, rule, tmp_path):
    options = {"epochs": 30, "learning_rate": 0.05, "patience": 4}
    result = compare(tmp_path, curriculum_epochs=name, **options)
    baseline, run = result.runs
    assert epochs_to_reach(accuracies(baseline)) != share_of_best_epoch(accuracies(baseline))
    assert run.curriculum_epochs == rule(accuracies(baseline))
    levels = [line["level"] for line in metrics(run.path)]
    assert levels.count(0) == (run.curriculum_epochs + 1) // 2
    assert not result.remarks


def test_a_rule_that_would_eat_the_epochs_is_cut_to_a_third_and_said(tmp_path):
    with pytest.warns(UserWarning, match="cut to a third"):
        result = compare(tmp_path, curriculum_epochs="best-epoch", epochs=6)
    baseline, run = result.runs
    length = share_of_best_epoch(accuracies(baseline))
    assert length > 2
    assert run.curriculum_epochs == 2
    assert f"would take {length} of 6 epochs; it is cut to 2" in " ".join(result.remarks)


def test_what_has_not_levelled_off_is_said(tmp_path):
    result = compare(tmp_path, epochs=3)
    assert [run.levelled_off for run in result.runs] == [False, False]
    for name, remark in zip(("baseline", "continuous"), result.remarks, strict=True):
        assert f"seed 0: {name} was best at epoch 3 of 3, so it has not levelled off" in remark
    assert "note: seed 0: baseline was best" in str(result)
    assert list(result.remarks) == json.loads((tmp_path / "result.json").read_text())["remarks"]


def test_remarks_are_the_same_when_all_is_done_already(tmp_path):
    assert compare(tmp_path, epochs=3).remarks == compare(tmp_path, epochs=3).remarks


def test_the_best_length_is_searched_and_all_samples_are_trained_on_in_the_end(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(seed_module, "CANDIDATES", (2, 4, 9))
    result = compare(tmp_path, curriculum_epochs="search")
    tried = sorted((tmp_path / "seed-0" / "search").iterdir())
    assert [path.name for path in tried] == ["T-02", "T-04", "baseline"]  # 9 is too long
    best = [max(accuracies_of_the_finest(path)) for path in tried[:2]]
    length = 2 if best[0] >= best[1] else 4
    assert result.of("continuous")[0].curriculum_epochs == length
    for run in result.runs:
        assert run.val_accuracy is None
        stored = json.loads((run.path / "config.json").read_text())
        assert stored["data"]["samples"] == [200, 0, 60]
    stored = json.loads((tried[0] / "config.json").read_text())
    assert stored["data"]["samples"] == [160, 40, 60]


def accuracies_of_the_finest(path):
    return [line["accuracy"] for line in metrics(path) if line["level"] == 1]


def test_a_search_with_a_smaller_model_for_the_hierarchy_keeps_the_two_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(seed_module, "CANDIDATES", (1, 2))
    compare(tmp_path, curriculum_epochs="search", hierarchy_model="studies:SmallNet")
    found = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("result.json")}
    assert {"seed-0/search/hierarchy-studies.SmallNet", "seed-0/hierarchy-studies.SmallNet"} < found


def test_a_search_is_refused_where_it_cannot_be_done(tmp_path):
    with pytest.raises(ValueError, match="the method must be continuous alone"):
        compare(tmp_path, curriculum_epochs="search", methods=("continuous", "staged"))
    with pytest.raises(ValueError, match="to search for T, epochs must be more than 5"):
        compare(tmp_path, curriculum_epochs="search")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_share": 0.0, "curriculum_epochs": "reach-90"}, "needs a baseline with validation"),
        ({"val_share": 0.0, "metric": "confusion"}, "'confusion' needs validation samples"),
        (
            {"metric": "confusion_distance", "curriculum_epochs": "search", "epochs": 6},
            "'confusion_distance' needs validation samples",
        ),
        ({"val_share": 0.0, "curriculum_epochs": "search", "epochs": 6}, "validation samples"),
    ],
    ids=["rule", "metric", "metric-after-search", "search"],
)
def test_what_needs_validation_samples_is_refused_before_anything_is_trained(
    changes, message, tmp_path
):
    with pytest.raises(ValueError, match=message):
        compare(tmp_path, watcher=Interrupting(1), **changes)


# ------------------------------------------------------------------------------ directories


@pytest.fixture
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
def test_the_same_settings_have_the_same_directory_by_default():
    first = compare(None)
    assert first.path.parent.name == "runs"
    assert first.path.name.startswith("given-Net-")
    assert compare(None) == first
    assert compare(None, seeds=(0, 1)).path == first.path


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.01},
        {"model": dropping},
        {"data": pair(table(seed=5))},
        {"data": (TRAIN[0] + 1, TRAIN[1])},
        {"hierarchy": hierarchy()},
    ],
    ids=["setting", "model", "targets", "inputs", "hierarchy"],
)
def test_other_settings_have_another_directory_by_default(changes):
    assert compare(None, methods=()).path != compare(None, methods=(), **changes).path


@pytest.mark.usefixtures("_here")
def test_each_given_hierarchy_is_trained_with():
    """And no result of an earlier one is taken for it."""
    for given in (hierarchy(), OTHER):
        (run,) = compare(None, hierarchy=given, baseline=False, max_levels=None).runs
        assert run.hierarchy() == given


def test_a_comparison_begun_with_another_hierarchy_is_refused(tmp_path):
    options = {"baseline": False, "max_levels": None}
    compare(tmp_path, hierarchy=hierarchy(), **options)
    with pytest.raises(RunError, match="hierarchy"):
        compare(tmp_path, hierarchy=OTHER, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.5}, "begun with learning_rate = 0.02, now it is 0.5"),
        ({"methods": ("staged",)}, "begun with methods = "),
        ({"model": dropping}, 'begun with model = "studies:Net#.*", now it is "studies:dropping#'),
        ({"model": lambda num_classes: nn.Linear(10, num_classes)}, "begun with model = "),
        ({"model": partial(Net, dropout=0.5)}, "begun with model = "),
        ({"data": pair(table(seed=5))}, "begun with (fingerprint|data|transform) = "),
    ],
    ids=["setting", "methods", "function", "lambda", "partial", "data"],
)
def test_a_directory_begun_with_something_else_is_refused(changes, message, tmp_path):
    compare(tmp_path)
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(RunError, match=message):
        compare(tmp_path, **changes)
    assert (tmp_path / "config.json").read_bytes() == before


# ----------------------------------------------------------------------------------- models


def test_an_unknown_setting_is_named(tmp_path):
    with pytest.raises(TypeError, match="fit\\(\\) has no setting 'epoch'; see coarse2fine.Config"):
        compare(tmp_path, epoch=3)
    assert not list(tmp_path.iterdir())


def test_a_partial_model_is_known_again_by_its_arguments(tmp_path):
    first = compare(tmp_path, model=partial(Net, dropout=0.5))
    assert compare(tmp_path, model=partial(Net, dropout=0.5)).runs == first.runs
    assert first.runs[0].model().encoder[-1].p == 0.5
    with pytest.raises(RunError, match="what studies:Net makes now is another model"):
        first.runs[0].model(Net)


class TwoHeads(Net):
    """Could be meant to have either layer as its final one."""

    def __init__(self, num_classes):
        super().__init__(num_classes)
        self.classifier = nn.Linear(16, num_classes)


def test_an_ambiguous_final_layer_is_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(ValueError, match="could be any of"):
        compare(tmp_path, model=TwoHeads)
    assert not list(tmp_path.rglob("metrics.jsonl"))
    assert compare(tmp_path / "named", model=TwoHeads, head="head").runs


def test_a_machine_without_the_accelerator_is_told_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="this machine cannot train with .*accelerator 'tpu'"):
        compare(tmp_path, accelerator="tpu")


def test_a_model_that_cannot_take_the_inputs_is_told_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"cannot take inputs of shape \(2, 10\)"):
        compare(tmp_path, model=lambda num_classes: nn.Linear(3, num_classes))


class Several(nn.Module):
    """Gives more than its logits."""

    def __init__(self, num_classes):
        super().__init__()
        self.head = nn.Linear(10, num_classes)

    def forward(self, inputs):
        return self.head(inputs), inputs


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda num_classes: Net(num_classes + 1), ValueError, r"of 6 logits.*Got \(2, 7\) for 2"),
        (Several, ValueError, "a tensor of 6 logits, one a class, for each sample. Got tuple"),
        (lambda: Net(6), TypeError, "must take num_classes"),
        (Net(6), TypeError, "a class or function that makes one"),
        ("studies:Nothing", ValueError, "studies has no Nothing"),
        ("cnn", ValueError, "'cnn' is for data of kind 'image'"),
    ],
    ids=["wide", "tuple", "no-classes", "made", "missing", "kind"],
)
def test_a_model_that_cannot_be_trained_is_refused(model, error, message, tmp_path):
    with pytest.raises(error, match=message):
        compare(tmp_path, model=model)


def test_the_name_of_a_model_holds_no_address_that_changes_with_every_process(tmp_path):
    compare(tmp_path, model=partial(dropping), methods=())
    assert "0x" not in json.loads((tmp_path / "config.json").read_text())["config"]["model"]


def test_a_model_by_its_place_is_the_one_given_as_an_object(tmp_path):
    by_place = compare(tmp_path / "a", model="studies:Net", methods=())
    given = compare(tmp_path / "b", methods=())
    assert by_place.runs[0].accuracy == given.runs[0].accuracy
    assert torch.equal(*(r.runs[0].model().head.weight for r in (by_place, given)))


def test_an_interruption_leaves_the_directory_free_for_the_next_call(tmp_path):
    with pytest.raises(InterruptionError):
        compare(tmp_path, watcher=Interrupting(1))
    assert len(compare(tmp_path).runs) == 2
