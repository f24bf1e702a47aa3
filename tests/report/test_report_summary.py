"""The sentence, the table and the remarks on top of a report."""

import json

import numpy as np
import pytest
from plain import plain_content
from scipy import stats

from coarse2fine import Result

TARGETS = np.tile(np.arange(4), 25)


def right(share):
    """Predictions of 100 samples, of which so many are right."""
    return np.where(np.arange(100) < share, TARGETS, (TARGETS + 1) % 4)


@pytest.fixture
def compare(made, tmp_path):
    """The report of a method and its baseline with so many right for each seed."""

    def compare(before, after, method="continuous", **options):
        for seed, share in enumerate(before):
            made("baseline", seed, predictions=right(share), targets=TARGETS, seconds=8.0)
        for seed, share in enumerate(after):
            made(method, seed, predictions=right(share), targets=TARGETS, **options)
        return plain_content([tmp_path / "run"], method=method)

    return compare


def test_the_table_has_the_paired_gain_and_how_sure_it_is(compare):
    before, after = [40, 42, 47], [45, 46, 53]
    plain, row = compare(before, after)["table"]
    gains = np.subtract(after, before)
    error = stats.sem(gains)
    low, high = stats.t.interval(0.95, 2, loc=5, scale=error)
    assert row == {
        "label": "continuous",
        "method": "continuous",
        "seeds": 3,
        "accuracy": pytest.approx([48, stats.sem(after)]),
        "gain": pytest.approx([5, error]),
        "interval": pytest.approx([low, high]),
        "wins": [3, 3],
        "verdict": "helped",
        "epochs": 4,
        "hierarchy_epochs": None,
        "own_epochs": None,
        "seconds": 10,
        "time_ratio": 1.25,
        "severity": 2.0,
        "is_shown": True,
    }
    assert [plain[name] for name in ("gain", "interval", "wins", "time_ratio")] == [None] * 4
    assert plain["accuracy"][0] == pytest.approx(43)


def test_the_table_has_the_epochs_after_which_baselines_stopped_by_themselves(made, tmp_path):
    made("baseline", 0, epochs=9, own_epochs=4), made("continuous", 0, epochs=9)
    made("baseline", 1, epochs=6), made("continuous", 1, epochs=5)
    content = plain_content([tmp_path / "run"])
    table = [(row["epochs"], row["own_epochs"]) for row in content["table"]]
    assert table == [(7.5, 5), (7, None)]
    runs = [(run["epochs"], run["own_epochs"]) for run in content["repeat"]["runs"]]
    assert runs == [(9, 4), (6, None), (9, None), (5, None)]


def test_what_is_equal_wins_half_and_is_remarked(compare):
    content = compare([40, 40], [40, 41])
    assert content["table"][1]["wins"] == [1.5, 2]
    assert content["remarks"] == [
        "A seed that is as accurate as its baseline counts as half gained."
    ]


UNCLEAR = (
    "Whether it helps is unclear: the 95 % interval -6.96 to +10.96 includes 0, and more seeds "
    "would narrow it. "
)
COST = (
    "It took 1.25 times the baseline's training time (1.00 times its epochs), and the baseline is "
    "trained first for the hierarchy"
)
FREE = "; once trained, its model costs nothing more to use."


@pytest.mark.parametrize(
    ("before", "after", "verdict", "beginning", "end"),
    [
        (
            [40, 42, 44],
            [45, 46, 50],
            "helped",
            "continuous helped: over 3 seeds it is on average 5.00 points more accurate",
            "(42.00 → 47.00 %), 95 % interval +2.52 to +7.48. " + COST + FREE,
        ),
        (
            [45, 46, 50],
            [40, 42, 44],
            "hurt",
            "continuous hurt: over 3 seeds it is on average 5.00 points less accurate",
            "(47.00 → 42.00 %), 95 % interval -7.48 to -2.52. " + COST + ".",
        ),
        (
            [40, 40, 40],
            [41, 46, 39],
            "unclear",
            "Over 3 seeds continuous is on average 2.00 points more",
            "(40.00 → 42.00 %). " + UNCLEAR + COST + FREE,
        ),
        (
            [40, 40],
            [42, 42],
            "two seeds",
            "Whether continuous helped cannot be told from two seeds: there it is on average 2.00",
            "(40.00 → 42.00 %); train three or more to be sure. " + COST + FREE,
        ),
        (
            [40],
            [42],
            "one seed",
            "Whether continuous helped cannot be told from one seed: there it is 2.00 points more",
            "(40.00 → 42.00 %); train more seeds to be sure. " + COST + FREE,
        ),
    ],
)
def test_the_sentence_tells_what_the_gains_do(compare, before, after, verdict, beginning, end):
    content = compare(before, after)
    assert content["verdict"] == verdict
    assert content["sentence"].startswith(beginning)
    assert content["sentence"].endswith(f"accurate than the baseline {end}")


def test_equal_accuracies_are_no_help(compare):
    content = compare([40, 41, 42], [41, 42, 40])
    assert content["verdict"] == "unclear"
    assert "is on average as accurate as the baseline (41.00 → 41.00 %)" in content["sentence"]


@pytest.mark.parametrize(
    ("after", "told"),
    [([40, 41, 42], "as accurate as"), ([42, 43, 44], "2.00 points more accurate than")],
)
def test_gains_that_are_all_equal_have_no_interval_to_be_sure_by(compare, after, told):
    content = compare([40, 41, 42], after)
    assert content["verdict"] == "unclear"
    assert f"Over 3 seeds continuous is {told} the baseline (41.00 →" in content["sentence"]
    assert "the same in each, so no interval tells how sure that is." in content["sentence"]


def test_the_choice_and_the_verdict_are_those_of_the_result(compare, tmp_path):
    content = compare([40, 41, 42], [45, 46, 50], val_accuracy=0.4)
    result = Result.load(tmp_path / "run")
    assert content["choice"] == str(result.choice) == str(result).splitlines()[0]
    assert content["sentence"].startswith(str(result).splitlines()[1])
    assert content["comparisons"][0]["choice"] == content["choice"]


def test_without_a_baseline_the_sentence_says_so(compare):
    content = compare([], [40, 44])
    assert content["verdict"] == "no baseline"
    assert content["sentence"] == (
        "continuous reached 42.00 % over 2 seeds; there is no baseline to compare it with."
    )


def test_a_baseline_alone_is_compared_with_nothing(made):
    content = plain_content([made("baseline")])
    assert content["verdict"] == "no baseline"
    assert content["sentence"] == (
        "The baseline reached 37.50 % with one seed; there is nothing that it is compared with."
    )


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"hierarchy_model": "cnn"}, "epochs), and a model cnn is trained first for the hierarchy"),
        ({"curriculum_epochs": 3}, "epochs), and the baseline is trained first for the hierarchy"),
        (
            {"hierarchy": "tree.json", "curriculum_epochs": "reach-90"},
            "epochs), and the baseline is trained first for the length of the curriculum; once",
        ),
    ],
)
def test_the_sentence_names_what_is_trained_before(made, tmp_path, options, part):
    made("baseline")
    file = made("continuous") / "config.json"
    content = json.loads(file.read_text())
    content["config"] |= options
    file.write_text(json.dumps(content))
    assert part in plain_content([tmp_path / "run"])["sentence"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            {"curriculum_epochs": "best-epoch"},
            "(1.50 times its epochs), with 2 epochs that were only for the hierarchy, and the base",
        ),
        ({"curriculum_epochs": 3}, "with 2 epochs that were only for the hierarchy; once trained"),
        ({"hierarchy_model": "cnn"}, ", with 2 epochs of a model cnn that were only for the hier"),
    ],
)
def test_the_price_has_what_was_trained_only_for_the_hierarchy(made, tmp_path, options, part):
    made("baseline", seconds=8.0)
    price = {"hierarchy_epochs": 2, "hierarchy_seconds": 4.0}
    made("continuous", seconds=8.0, **price, **options)
    content = plain_content([tmp_path / "run"])
    assert "It took 1.50 times the baseline's training time" in content["sentence"]
    assert part in content["sentence"]
    row, run = content["table"][1], content["repeat"]["runs"][1]
    for found in (row, run):
        assert (found["epochs"], found["hierarchy_epochs"], found["seconds"]) == (4, 2, 12)
    assert row["time_ratio"] == 1.5


def test_a_method_with_its_own_inference_is_not_said_to_cost_nothing(compare):
    content = compare([40], [42], "nbdt", hierarchy=None, by_rule={"soft": 0.42, "hard": 0.4})
    assert content["sentence"].endswith(", and the baseline is trained first for its final layer.")


def test_a_method_that_needs_no_baseline_is_not_said_to(compare):
    content = compare([40], [42], "spl", hierarchy=None)
    end = "epochs); once trained, its model costs nothing more to use."
    assert content["sentence"].endswith(end)


# -------------------------------------------------------------------------------- remarks


def test_runs_that_have_not_levelled_off_are_listed(compare):
    (remark,) = compare([40], [42], levelled_off=False)["remarks"]
    assert remark.endswith("longer training may tell: continuous, seed 0 (best at epoch 4 of 4).")


def test_settings_of_the_curriculum_and_the_machine_may_differ(compare):
    assert compare([40], [42], max_levels=2, workers=3)["remarks"] == []


def test_a_baseline_of_other_settings_is_remarked(compare):
    (remark,) = compare([40], [42], learning_rate=0.3, batch_size=8)["remarks"]
    assert remark == (
        "continuous and its baseline differ in other settings too, so the gain is not the "
        "method's alone: batch_size, learning_rate."
    )


@pytest.mark.parametrize(
    ("seconds", "is_told"), [(6, False), (11.9, False), (12.5, True), (5, True)]
)
def test_epochs_that_take_differently_long_are_remarked(compare, seconds, is_told):
    remarks = compare([40], [42], seconds=seconds)["remarks"]
    told = [
        f"{seconds / 8:.2f} times for continuous. Where the machine" in text for text in remarks
    ]
    assert told == [True] * is_told


def test_an_unknown_time_is_not_remarked_as_short(made, tmp_path):
    made("baseline", seconds=0.0), made("continuous")
    assert plain_content([tmp_path / "run"])["remarks"] == []


def test_seeds_without_a_baseline_are_remarked(compare):
    content = compare([40], [42, 43])
    assert content["table"][1]["wins"] == [1, 1]
    (remark,) = content["remarks"]
    assert remark.startswith("Without a baseline of the same seed")
    assert remark.endswith("without gain: continuous, seed 1.")


def test_the_search_for_t_is_said_not_to_be_counted(compare):
    (remark,) = compare([40], [42], curriculum_epochs="search")["remarks"]
    assert remark.startswith("The times are without the trainings that searched")


def test_what_was_left_out_is_remarked(made, tmp_path):
    made("baseline"), made("continuous"), made("staged", is_done=False)
    (remark,) = plain_content([tmp_path / "run"])["remarks"]
    assert remark.endswith("staged is not finished, so it is left out.")


# ---------------------------------------------------------------------------- several at once


def test_a_baseline_that_was_best_at_its_start_leaves_it_unclear(made, tmp_path):
    for seed, share in enumerate([45, 46, 50]):
        early = {"best_epoch": 1} if seed == 1 else {}
        made("baseline", seed, predictions=right(40 + seed), targets=TARGETS, **early)
        made("continuous", seed, predictions=right(share), targets=TARGETS)
    content = plain_content([tmp_path / "run"])
    assert content["verdict"] == content["table"][1]["verdict"] == "unclear"
    assert (
        "Whether it helps is unclear: the baseline of seed 1 was best at epoch 1 of 4, so it "
        "overfits early; a smaller learning rate may change the outcome." in content["sentence"]
    )


def test_each_comparison_has_its_best_run_and_verdict(made, tmp_path):
    for seed in range(3):
        for folder, method, share, val in (
            ("one", "baseline", 40, 0.5),
            ("one", "continuous", 45 + seed, 0.6 + seed / 100),
            ("two", "baseline", 47, 0.7),
            ("two", "staged", 45 - seed, 0.4),
        ):
            predictions = {"predictions": right(share), "targets": TARGETS}
            made(method, seed, folder, val_accuracy=val, data=f"{folder}.csv", **predictions)
    content = plain_content([tmp_path / "one", tmp_path / "two"])
    first, second = content["comparisons"]
    assert (first["name"], first["data"], first["best"], first["seed"]) == (
        "one",
        "one.csv",
        "continuous",
        2,
    )
    assert (first["val_accuracy"], first["accuracy"]) == pytest.approx((62, 47))
    assert (first["method"], first["verdict"], first["gain"][0]) == ("continuous", "helped", 6)
    assert (second["best"], second["method"], second["verdict"]) == ("baseline", "staged", "hurt")
    assert second["interval"] == pytest.approx(content["table"][-1]["interval"])
    assert content["choice"] == first["choice"]
    assert content["shown"]["comparison"] == "one"
