"""The summary of all rows of the paper's tables, by hand."""

import json
from collections import Counter

import contents
import pytest

from coarse2fine import RunError
from coarse2fine.experiments import find_experiment, summary
from coarse2fine.experiments.content import read_all, results_from_dict
from coarse2fine.experiments.lines import is_same, lines_of
from coarse2fine.experiments.paper.published import STAGED_GAINS
from coarse2fine.experiments.paper.shapes import PUBLISHED
from coarse2fine.experiments.results import Row

TEN_THOUSAND = "CNN, CIFAR-100, 10,000"
STAGED = [contents.variant("staged", "C2F staged"), contents.variant("continuous", "C2F")]


def declared(name, label, scale="full"):
    """A setting's configuration, as a file of results has it."""
    (setting,) = (row for row in find_experiment(name).scale(scale).settings if row.label == label)
    config = setting.config(None, (0,)).to_dict()
    return setting, json.loads(json.dumps({k: v for k, v in config.items() if v is not None}))


def stored(accuracies, label=TEN_THOUSAND, *, name="staged", scale="full", **changes):
    """Results of one row, trained by a declared setting but for some changes."""
    setting, config = declared(name, label, scale)
    more = {"variants": STAGED, "paper": {k: list(v) for k, v in setting.paper.items()}}
    row = contents.row(accuracies, label, **{**more, **changes.pop("row", {})})
    row["config"] = {**config, **changes}
    about = {"name": scale, "about": "made up"}
    content = {**contents.content(row), "experiment": name, "scale": about, "seeds": [0, 1]}
    return results_from_dict(content)


def line(found, label=TEN_THOUSAND, method="continuous"):
    lines = lines_of(found)
    (own,) = (it for it in lines if (it.setting.label, it.variant.name) == (label, method))
    return own


def cells(lines):
    return [row[2:-2].split(" | ") for row in summary.table(lines, summary.markdown).splitlines()]


def test_there_is_a_line_for_every_row_of_the_tables_and_none_has_run():
    lines = lines_of([])
    assert len(lines) == 2 * len(STAGED_GAINS) + len(PUBLISHED) - 1 == 37
    assert Counter(it.variant.name for it in lines)["continuous"] == 17
    assert {it.remark for it in lines} == {"not yet run"}
    assert all(it.gain is None for it in lines)
    published = {(it.setting.label, it.variant.name): it.paper[it.variant.name] for it in lines}
    assert published[TEN_THOUSAND, "staged"] == (2.70, 0.22)
    assert published["Shapes, 500 a class", "continuous-random"] == (-0.32, 1.85)


def test_a_line_has_the_gain_the_papers_and_how_far_apart_they_are():
    # The gains are 1 and 3: 2 ± 1, and Student's t has 12.71. The baselines are 20 ± 1, that is
    # (21.96 - 20) / √(1² + 0.49²) = 1.76 errors below the paper's; staged is at 9 ± 0, which is
    # (9 - 2.7) / 0.22 = 28.6 above.
    results = stored({
        "baseline": [19.0, 21.0], "continuous": [20.0, 24.0], "staged": [28.0, 30.0]
    })  # fmt: skip
    found = cells([line([results], method="staged"), line([results])])
    assert found[0] == list(summary.HEADINGS)
    plain = ["20.00 ± 1.00", "21.96 ± 0.49"]
    assert found[2] == [
        TEN_THOUSAND, "C2F staged", "2", "", *plain, "+9.00 ± 0.00", "+9.00 to +9.00",
        "+2.70 ± 0.22", "gain 28.6 standard errors above the paper's",
    ]  # fmt: skip
    assert found[3] == [
        "", "C2F", "2", "", *plain, "+2.00 ± 1.00", "-10.71 to +14.71", "+2.67 ± 0.68", ""
    ]  # fmt: skip


def test_a_baseline_unlike_the_papers_is_told():
    results = stored({"baseline": [25.0, 25.0], "continuous": [27.67, 27.67]})
    # (25 - 21.96) / 0.49 = 6.2
    assert line([results]).remark == "baseline 6.2 standard errors above the paper's"


def test_t_stands_beside_the_epochs_of_the_training():
    runs = [
        *(contents.run("baseline", seed, 20.0) for seed in (0, 1)),
        contents.run("continuous", 0, 22.0, curriculum_epochs=10, epochs=50),
        contents.run("continuous", 1, 22.0, curriculum_epochs=12, epochs=60),
    ]
    assert cells([line([stored({}, row={"runs": runs})])])[2][3] == "11 of 55"


def test_any_experiment_of_the_same_settings_counts_and_the_most_runs_win():
    few = stored({"baseline": [20.0], "continuous": [21.0]})
    many = stored({"baseline": [20.0] * 3, "continuous": [23.0] * 3}, name="real-size")
    other = stored({"baseline": [20.0] * 4, "continuous": [29.0] * 4}, learning_rate=0.01)
    for found in ([few, many, other], [other, many, few]):
        assert line(found).gain.mean == pytest.approx(3)
    assert line([other]).remark == "reduced, not comparable"


def test_of_as_many_runs_those_of_the_rows_own_experiment_count():
    own = stored({"baseline": [20.0], "continuous": [21.0]})
    other = stored({"baseline": [20.0], "continuous": [22.0]}, name="real-size")
    assert line([other, own]).gain.mean == pytest.approx(1)


@pytest.mark.parametrize(
    "changes", [{"seeds": [4]}, {"track_test": True}, {"workers": 3, "accelerator": "cpu"}]
)
def test_what_has_no_effect_on_a_training_is_no_difference(changes):
    found = stored({"baseline": [20.0], "continuous": [22.0]}, **changes)
    assert line([found]).remark == ""


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"patience": 20}, False),
        ({"train_size": 5_000}, False),
        ({"model": "x"}, False),
    ],
)
def test_a_setting_is_the_same_where_all_that_counts_is(changes, same):
    setting, config = declared("staged", TEN_THOUSAND)
    row = Row("", "", "", {**config, **changes}, {}, (), ())
    assert is_same(setting, row) is same


def test_all_images_are_not_any_number_of_them():
    setting, config = declared("staged", "CNN, CIFAR-100, 50,000")
    assert is_same(setting, Row("", "", "", config, {}, (), ()))
    assert not is_same(setting, Row("", "", "", {**config, "train_size": 5}, {}, (), ()))


def test_what_an_older_version_does_not_say_is_no_difference():
    setting, config = declared("staged", TEN_THOUSAND)
    del config["stratify"]
    assert is_same(setting, Row("", "", "", config, {}, (), ()))


def test_a_smaller_scale_stands_in_marked_and_is_held_against_nothing():
    gains = {"baseline": [80.0, 80.0], "continuous": [99.0, 99.0]}
    small = stored(gains, scale="small")
    own = line([small])
    assert (own.is_reduced, own.remark) == (True, "reduced, not comparable")
    assert summary.notes([own]) == [f"note: {TEN_THOUSAND}: measured on {TEN_THOUSAND}, made up."]
    assert cells([own])[-1][-1] == "`c2f paper staged --only cifar100-cnn-10000 --data DIR`"
    whole = stored({"baseline": [20.0], "continuous": [21.0]})
    assert line([small, whole]).gain.mean == pytest.approx(1)
    assert not line([small, whole]).is_reduced


def test_a_method_without_the_baseline_of_its_seed_has_not_run():
    runs = [contents.run("baseline", 0, 20.0), contents.run("continuous", 1, 22.0)]
    assert line([stored({}, row={"runs": runs})]).remark == "not yet run"


def test_the_same_name_by_other_settings_is_another_method():
    other = [contents.variant("continuous", "C2F", metric="random")]
    results = stored({"baseline": [20.0], "continuous": [21.0]}, row={"variants": other})
    assert line([results]).remark == "not yet run"


def test_runs_that_have_not_levelled_off_are_counted_with_their_baselines():
    runs = [
        contents.run("baseline", 0, 20.0, levelled_off=False),
        contents.run("continuous", 0, 22.0),
        contents.run("staged", 0, 22.0, levelled_off=False),  # of another line
    ]
    own = line([stored({}, row={"runs": runs})])
    assert own.remark == "1 of 2 runs have not levelled off"


def test_an_older_version_is_named():
    results = stored(
        {"baseline": [20.0], "continuous": [21.0]}, row={"versions": [{"coarse2fine": "0.1.0"}]}
    )
    assert line([results]).remark == "by 0.1.0"


def test_what_has_not_run_is_listed_with_its_command_and_hours():
    # 10,000 images: 10 · (0.025 for the baseline + 0.07) hours; of 50,000 by both methods
    # 50 · (0.025 · 2 + 0.07); Shapes' 15,000 have four times as many pixels, and 6 trainings each.
    found = lines_of([stored({"baseline": [20.0], "continuous": [21.0]})])
    rest = {row[0]: row[1:] for row in cells(found) if row[-1].startswith("`")}
    assert len(rest) == 17
    assert rest[TEN_THOUSAND] == [
        "C2F staged +2.70 ± 0.22", "0.9",
        "`c2f paper staged --only cifar100-cnn-10000 --only staged --data DIR`",
    ]  # fmt: skip
    assert rest["CNN, CIFAR-100, 50,000"] == [
        "C2F staged +3.99 ± 0.24, C2F +3.31 ± 0.59", "6.0",
        "`c2f paper staged --only cifar100-cnn --data DIR`",
    ]  # fmt: skip
    assert rest["Shapes, 500 a class"][1:] == [
        "9.0", "`c2f paper shapes-metrics --only shapes-cnn-15000`"
    ]  # fmt: skip


def test_where_all_has_run_nothing_is_listed():
    found = line([stored({"baseline": [20.0], "continuous": [21.0]})])
    assert "not yet run" not in summary.table([found])


def test_the_figure_has_a_point_for_each_row_that_is_like_the_papers():
    whole = stored({
        "baseline": [20.0, 20.0], "continuous": [21.0, 23.0], "staged": [22.0, 22.0]
    })  # fmt: skip
    one = stored({"baseline": [20.0], "continuous": [21.0]}, "CNN, CIFAR-10, 5,000")
    small = stored({"baseline": [20.0] * 2, "continuous": [29.0] * 2}, "CNN, CIFAR-10, 10,000",
                   scale="small")  # fmt: skip
    (axes,) = summary.draw(lines_of([whole, one, small])).axes
    points = {
        bars.get_label(): tuple(float(it[0]) for it in bars.lines[0].get_data())
        for bars in axes.containers
    }
    assert points == {"CIFAR-100, C2F staged": (2.70, 2.0), "CIFAR-100, C2F": (2.67, 2.0)}
    ends = axes.containers[1].lines[2]  # the bars along x, then along y
    (across,), (up,) = (bar.get_segments() for bar in ends)
    assert across[:, 0] == pytest.approx([2.67 - 0.68, 2.67 + 0.68])
    assert up[:, 1] == pytest.approx([1.0, 3.0])


def test_without_results_the_figure_says_so():
    assert summary.draw(lines_of([])).axes == []


def test_table_and_figure_are_written_from_a_folder_that_holds_other_files_too(tmp_path):
    (tmp_path / "speed.json").write_text('{"fast": 1}')
    (tmp_path / "list.json").write_text("[]")
    content = contents.content(contents.row({"baseline": [20.0], "continuous": [21.0]}))
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert [results.experiment for results in read_all(tmp_path)] == ["mine"]
    lines = summary.summarise(tmp_path, tmp_path / "out")
    text = (tmp_path / "out" / "summary.md").read_text()
    assert text == summary.table(lines, summary.markdown) + "\n"
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".md", ".svg", ".png"}


def test_a_damaged_file_and_a_folder_that_is_none_are_told(tmp_path):
    with pytest.raises(RunError, match="there is no folder .*nowhere; name one that holds"):
        read_all(tmp_path / "nowhere")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(RunError, match=r"a\.json.*run the experiment again"):
        read_all(tmp_path)
