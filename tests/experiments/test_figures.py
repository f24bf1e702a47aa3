"""What is in the figures that are drawn from results alone."""

import math

import numpy as np
import pytest
from contents import content, draw_figure, legend, lines, row, stored_values, variant

from coarse2fine.experiments.figures import FIGURES

C2F, STAGED = variant("continuous", "C2F"), variant("staged", "staged C2F")
ERROR = 1 / math.sqrt(3)  # of three values one apart


def bars(axes):
    """Where the bars of points with a label begin and end, as (x, y) pairs."""
    return {
        bar.get_label(): [segment.tolist() for segment in bar.lines[2][0].get_segments()]
        for bar in axes.containers
    }


def sized(size, plain, better, **more):
    found = {"baseline": plain, "continuous": better}
    return row(found, f"CNN, CIFAR-100, {size}", config={"train_size": size}, **more)


def test_accuracy_against_size_is_the_mean_with_a_band_of_one_standard_error():
    rows = sized(2000, [39, 40, 41], [42, 43, 44]), sized(1000, [29, 30, 31], [33, 33, 33])
    figure = draw_figure("sizes", content(*rows))
    (axes,) = figure.axes
    assert lines(axes) == {
        "baseline": [(1000, pytest.approx(30)), (2000, pytest.approx(40))],
        "C2F": [(1000, pytest.approx(33)), (2000, pytest.approx(43))],
    }
    corners = axes.collections[0].get_paths()[0].vertices
    for place, mean in ((1000, 30), (2000, 40)):
        heights = corners[corners[:, 0] == place, 1]
        assert [heights.min(), heights.max()] == pytest.approx([mean - ERROR, mean + ERROR])
    assert axes.get_xscale() == "log"
    assert {label.get_text() for label in axes.get_xticklabels()} == {"1,000", "2,000"}
    assert axes.get_title() == "CNN, CIFAR-100"
    assert legend(figure) == ["baseline", "C2F"]


def test_sizes_that_are_shares_are_shown_as_such_and_all_images_are_the_last():
    rows = sized(0.01, [10], [11]), sized(0.05, [20], [21]), row({"baseline": [30]})
    (axes,) = draw_figure("sizes", content(*rows)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1%", "5%", "100%"]
    assert [place for place, _ in lines(axes)["baseline"]] == [0.01, 0.05, 1.0]


def test_all_images_are_counted_where_other_sizes_are_numbers():
    (axes,) = draw_figure(
        "sizes", content(sized(100, [1], [2]), row({"baseline": [3]}, samples=500))
    ).axes
    assert [place for place, _ in lines(axes)["baseline"]] == [100, 500]


def test_every_data_set_and_model_has_its_panel_of_sizes():
    configs = ("a", "cnn"), ("a", "resnet18"), ("b", "cnn"), ("a", "cnn")
    rows = [
        row({"baseline": [size]}, f"{data}, {model}", config={"data": data, "model": model,
            "train_size": size})
        for size, (data, model) in enumerate(configs, 1)
    ]  # fmt: skip
    panels = draw_figure("sizes", content(*rows)).axes
    assert [axes.get_title() for axes in panels] == ["a, cnn", "a, resnet18", "b, cnn"]
    assert [len(lines(axes)["baseline"]) for axes in panels] == [2, 1, 1]


def test_sizes_leave_out_what_has_no_runs():
    rows = sized(1000, [30, 32], []), sized(2000, [], [])
    figure = draw_figure("sizes", content(*rows))
    assert legend(figure) == ["baseline"]
    ((bar,),) = bars(figure.axes[0]).values()
    assert np.allclose(bar, [[1000, 30], [1000, 32]])


def length_row(*lengths_of_seeds, **found):
    """T is in the names, as in continuous_T10; that by rule is given for each seed."""
    variants = [
        variant(name, name, **({"curriculum_epochs": int(name[-2:])} if "T" in name else {}))
        for name in found
        if name != "baseline"
    ]
    result = row(found, variants=variants)
    for one in result["runs"]:
        given = one["method"].partition("_T")[2]
        if one["method"] != "baseline":
            one["curriculum_epochs"] = int(given) if given else lengths_of_seeds[one["seed"]]
    return result


def test_accuracy_against_t_has_a_point_for_each_and_the_baseline_as_a_line():
    found = {"baseline": [19, 20, 21], "continuous_T20": [24, 25, 26], "continuous_T05": [23] * 3}
    figure = draw_figure("lengths", content(length_row(**found)))
    (axes,) = figure.axes
    assert lines(axes)["baseline"] == [(0, pytest.approx(20)), (1, pytest.approx(20))]
    low, high = axes.patches[0].get_extents().transformed(axes.transData.inverted()).intervaly
    assert [low, high] == pytest.approx([20 - ERROR, 20 + ERROR])
    (short, long) = bars(axes)["T given"]
    assert np.allclose(short, [[5, 23], [5, 23]])
    assert np.allclose(long, [[20, 25 - ERROR], [20, 25 + ERROR]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "20"]
    assert legend(figure) == ["baseline", "T given"]


def test_t_by_rule_is_marked_at_its_mean():
    found = {"baseline": [20, 20], "continuous_T05": [23, 23], "continuous": [24, 26]}
    (axes,) = draw_figure("lengths", content(length_row(8, 11, **found))).axes
    assert np.allclose(bars(axes)["T by rule"], [[[9.5, 24], [9.5, 26]]])


def test_lengths_leave_out_what_has_no_runs():
    found = {"baseline": [20], "continuous_T05": [23], "continuous_T10": []}
    figure = draw_figure("lengths", content(length_row(**found), row({"baseline": [20]})))
    (axes,) = figure.axes
    assert np.allclose(bars(axes)["T given"], [[[5, 23], [5, 23]]])


def test_gains_have_their_interval_and_the_paper_beside_them():
    found = {"baseline": [20, 20, 20], "staged": [20, 21, 22], "continuous": [23, 24, 25]}
    one = row(found, variants=[STAGED, C2F]) | {"paper": {"continuous": [3.5, 0.5]}}
    figure = draw_figure("gains", content(one, one, row()))
    assert [axes.get_title() for axes in figure.axes] == [one["label"]] * 2
    axes = figure.axes[0]
    half = 4.30265 * ERROR  # by Student's t with two degrees of freedom
    ours, best, paper = [bar.lines[2][0].get_segments()[0] for bar in axes.containers]
    assert np.allclose(ours, [[1 - half, 0], [1 + half, 0]], atol=1e-4)
    assert np.allclose(best, [[4 - half, 1], [4 + half, 1]], atol=1e-4)
    assert np.allclose(paper, [[3, 1.25], [4, 1.25]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["staged C2F", "C2F"]
    assert legend(figure) == ["here, 95% interval", "paper, standard error"]


def test_gains_leave_out_methods_without_runs_and_seeds_without_a_baseline():
    one = row({"baseline": [20], "continuous": [23, 99]}, variants=[STAGED, C2F])
    (axes,) = draw_figure("gains", content(one)).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["C2F"]
    (bar,) = axes.containers
    assert bar.lines[0].get_data() == (pytest.approx([3]), pytest.approx([0]))


@pytest.mark.parametrize("name", FIGURES)
def test_without_runs_a_figure_says_so(name):
    figure = draw_figure(name, content(row()))
    assert figure.axes == []
    assert [text.get_text() for text in figure.texts] == ["no runs to draw yet"]
    assert stored_values(name, []).keys().isdisjoint(row())
