"""What came out: of one training, and of the comparison of several."""

import json
import math
from pathlib import Path

import pytest
from studies import hierarchy, outcome, train

from coarse2fine import Result, RunError, RunResult, level_accuracies
from coarse2fine._util.columns import Better, Worse, aligned
from coarse2fine.runs.statistics import mean_and_error
from coarse2fine.runs.tables import accuracy_rows
from coarse2fine.training.evaluation import Scores
from coarse2fine.training.trainer import Trainer


def run(method, seed, accuracy, **changes):
    given = {
        "val_accuracy": 0.5,
        "best_epoch": 3,
        "epochs": 9,
        "seconds": 1.5,
        "levelled_off": True,
        "curriculum_epochs": None,
        "num_clusters": (),
        "path": Path("nowhere"),
    }
    return RunResult(method, seed, accuracy, **{**given, **changes})


def result(*runs, remarks=()):
    return Result(runs, remarks, Path("nowhere"))


COMPARISON = result(
    run("baseline", 0, 0.30),
    run("continuous", 0, 0.34),
    run("baseline", 1, 0.20),
    run("continuous", 1, 0.30),
    run("baseline", 2, 0.40),
    run("continuous", 2, 0.41),
)


# ----------------------------------------------------------------------------- comparison


def test_the_mean_and_its_standard_error_by_hand():
    found = mean_and_error([1.0, 2.0, 6.0])
    assert found["mean"] == pytest.approx(3.0)
    assert found["standard_error"] == pytest.approx(math.sqrt((4 + 1 + 9) / 2 / 3))


def test_one_value_has_no_error_and_none_has_no_mean():
    assert mean_and_error([0.5]) == {"mean": 0.5, "standard_error": None}
    assert mean_and_error([]) is None


def test_gains_are_taken_run_by_run():
    assert COMPARISON.methods == ("baseline", "continuous")
    assert COMPARISON.accuracies("continuous") == [0.34, 0.30, 0.41]
    assert COMPARISON.gains("continuous") == pytest.approx([0.04, 0.10, 0.01])


def test_gains_belong_to_the_seed_and_not_to_the_order():
    mixed = result(*reversed(COMPARISON.runs))
    assert mixed.gains("continuous") == pytest.approx([0.01, 0.10, 0.04])


def test_without_a_baseline_there_is_no_gain():
    alone = result(run("staged", 0, 0.3), run("staged", 1, 0.5))
    assert alone.gains("staged") == []
    assert alone.to_dict()["summary"]["staged"]["gain"] is None
    assert alone.table().splitlines() == [
        "  seed         staged",
        "     0          30.00",
        "     1          50.00",
        "  mean  40.00 ± 10.00",
        "epochs              9",
    ]


def test_the_table_shows_each_seed_the_mean_and_the_error_of_the_gains():
    # gains 4, 10, 1: mean 5, deviation √21, error √7; accuracies 34, 30, 41: mean 35, error √31/√3
    assert COMPARISON.table() == "\n".join(
        [
            "  seed      baseline    continuous  gain of continuous",
            "     0         30.00         34.00               +4.00",
            "     1         20.00         30.00              +10.00",
            "     2         40.00         41.00               +1.00",
            "  mean  30.00 ± 5.77  35.00 ± 3.21        +5.00 ± 2.65",
            "epochs             9             9",
        ]
    )


def test_losses_have_their_sign_and_one_seed_no_error():
    shown = result(run("baseline", 7, 0.3), run("staged", 7, 0.25)).table()
    assert shown.splitlines()[1:] == [
        "     7     30.00   25.00           -5.00",
        "  mean     30.00   25.00           -5.00",
        "epochs         9       9",
    ]


def test_a_missing_run_leaves_its_cells_empty():
    found = result(
        run("baseline", 0, 0.2),
        run("continuous", 0, 0.3),
        run("staged", 0, 0.4),
        run("baseline", 1, 0.2),
        run("staged", 1, 0.5),
    )
    lines = found.table().splitlines()
    ends = [lines[0].index(name) + len(name) for name in ("gain of continuous", "gain of staged")]
    assert lines[2][: ends[0]].split() == ["1", "20.00", "50.00"]
    assert lines[2][ends[0] : ends[1]].split() == ["+30.00"]


def test_the_mean_gain_is_marked_only_where_it_is_beyond_chance():
    def mark(*gains):
        pairs = [(run("baseline", s, 0.3), run("staged", s, 0.3 + g)) for s, g in enumerate(gains)]
        rows = accuracy_rows(result(*(each for pair in pairs for each in pair)))
        cells = [cell for row in rows for cell in row if type(cell) is not str]
        assert cells in ([], [rows[-2][-1]])  # of the row of means
        return [type(cell) for cell in cells]

    assert mark(0.04, 0.05, 0.06) == [Better]
    assert mark(-0.04, -0.05, -0.06) == [Worse]
    assert mark(0.04, -0.05, 0.06) == []
    assert mark(0.04, 0.05) == []  # of two seeds nothing is said


def test_remarks_stand_below_the_table():
    shown = str(result(run("baseline", 0, 0.3), remarks=("mind the gap.", "and this.")))
    assert shown.splitlines()[-2:] == ["note: mind the gap.", "note: and this."]


def test_the_comparison_as_plain_values():
    content = json.loads(json.dumps(COMPARISON.to_dict()))
    assert [line["accuracy"] for line in content["runs"]] == [0.3, 0.34, 0.2, 0.3, 0.4, 0.41]
    assert "path" not in content["runs"][0]
    gain = content["summary"]["continuous"]["gain"]
    assert (gain["mean"], gain["standard_error"]) == pytest.approx((0.05, math.sqrt(7) / 100))
    assert content["remarks"] == []


def test_columns_are_aligned_to_the_right_and_short_rows_filled():
    assert aligned([["a", "bb"], ["ccc"]]) == "  a  bb\nccc"


# ---------------------------------------------------------------------------------- a run


def test_a_result_comes_back_from_its_run(tmp_path):
    found = train(tmp_path, "continuous")
    assert RunResult.load(tmp_path) == found
    assert found.hierarchy() == hierarchy()
    assert found.num_clusters == (2, 4, 6)
    assert found.curriculum_epochs == 3
    assert (found.method, found.seed, found.path) == ("continuous", 0, tmp_path)


def test_a_run_may_be_moved(tmp_path):
    found = train(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    moved = RunResult.load(tmp_path / "there")
    assert outcome(moved) == outcome(found)
    assert moved.predictions()[0].shape == (60,)


def test_the_model_of_a_run_gives_its_predictions(tmp_path):
    found = train(tmp_path, data=None, model="studies:Net")
    model = found.model()
    assert not model.training
    assert {name for name, _ in model.named_parameters()} == {
        "encoder.0.weight",
        "encoder.0.bias",
        "head.weight",
        "head.bias",
    }


def test_a_model_that_cannot_be_made_again_leaves_its_weights(tmp_path):
    found = train(tmp_path, model="studies:Net")
    with pytest.raises(RunError, match="cannot be made again.*load the weights in .*safetensors"):
        found.model("nowhere:made")


def test_the_accuracy_at_each_level_is_shown_for_the_first_seed(tmp_path):
    baseline, staged = train(tmp_path / "baseline"), train(tmp_path / "staged", "staged")
    other = run("staged", 1, 0.5, num_clusters=(2, 4, 6))
    lines = result(baseline, staged, other).level_table().splitlines()
    assert lines[0].split() == ["clusters", "2", "4", "6"]
    for line, which in zip(lines[1:], (baseline, staged), strict=True):
        levels = level_accuracies(*which.predictions(), hierarchy())
        assert line.split() == [which.method, *(f"{100 * value:.1f}" for value in levels)]
    assert result(baseline).level_table() == ""


@pytest.mark.parametrize("folder", ["missing", "."])
def test_a_directory_without_a_result_is_refused(folder, tmp_path):
    with pytest.raises(RunError, match="has no result.json: it is not a run, or not done"):
        RunResult.load(tmp_path / folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"result": {}}', '{"result": null}', "null"])
def test_a_damaged_result_is_named(content, tmp_path):
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(RunError, match="result.json is damaged"):
        RunResult.load(tmp_path)


def test_a_result_of_a_comparison_is_not_that_of_a_run(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps(COMPARISON.to_dict()))
    with pytest.raises(RunError, match="result.json"):
        RunResult.load(tmp_path)


@pytest.mark.parametrize(
    ("best", "patience", "levelled_off"),
    [(18, 0, True), (19, 0, False), (20, 0, False), (19, 1, True)],
)
def test_a_best_epoch_in_the_last_tenth_has_not_levelled_off(
    best, patience, levelled_off, tmp_path, monkeypatch
):
    """Unless training stopped by itself, as it had not improved for long enough."""
    accuracies = iter([epoch if epoch <= best else 0 for epoch in range(1, 21)])

    def scores(*_):
        accuracy = next(accuracies) / 100
        return Scores(1.0, accuracy, accuracy, {})

    monkeypatch.setattr(Trainer, "_scores", scores)
    found = train(tmp_path, epochs=20, patience=patience)
    assert (found.best_epoch, found.levelled_off) == (best, levelled_off)


def test_without_validation_nothing_can_tell_whether_it_levelled_off(tmp_path):
    assert train(tmp_path, epochs=1, val_share=0.0).levelled_off
