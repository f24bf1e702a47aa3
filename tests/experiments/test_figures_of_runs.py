"""What is in the figures that need more of the runs than their results."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from contents import content, draw_figure, legend, lines, row, stored_values, variant
from torch import nn

from coarse2fine import Hierarchy, fit
from coarse2fine.experiments.content import results_from_dict
from coarse2fine.experiments.figures import FIGURES, values_to_dict
from coarse2fine.figures import confusion
from coarse2fine.figures.style import save

NAMES = ("cat", "car", "dog", "bus", "fox", "van")
TREE = Hierarchy.from_levels([[0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 2, 3]], NAMES)
BY_TREE = ["cat", "dog", "fox", "car", "bus", "van"]
TWO = [variant("continuous", "C2F"), variant("staged", "staged C2F")]


def linear(num_classes):
    return nn.Linear(4, num_classes)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A baseline and a curriculum for two seeds: levels 0, 1 and 2 for an epoch each, and on."""
    rng = torch.Generator().manual_seed(0)
    targets = torch.arange(6).repeat(20)
    inputs = torch.randn(6, 4, generator=rng)[targets] + torch.randn(120, 4, generator=rng)
    result = fit(
        (inputs, targets), (inputs[:60], targets[:60]), class_names=NAMES, model=linear,
        hierarchy=TREE, out=tmp_path_factory.mktemp("runs"), seeds=(0, 1), epochs=4, patience=0,
        curriculum_epochs=3, track_test=True, learning_rate=0.05, accelerator="cpu", devices=1,
        checkpoint_seconds=float("inf"),
    )  # fmt: skip
    return result.runs


def row_of(runs, name, label="Animals and cars"):
    own = stored_values(name, runs)
    result = row(label=label, config={"train_size": 120}) | {"runs": [r.to_dict() for r in runs]}
    assert own.keys().isdisjoint(result)
    return json.loads(json.dumps(result | own))


def test_the_number_of_images_is_what_was_trained_and_validated_on(runs):
    assert stored_values("sizes", runs) == {"samples": 120}


# ------------------------------------------------------------------------------- worth


def test_what_a_level_was_worth_is_its_accuracy_when_left_and_the_gain(runs):
    found = stored_values("worth", runs)["worth"]
    assert [(it["method"], it["seed"]) for it in found] == [("continuous", 0), ("continuous", 1)]
    for it in found:
        plain, taught = (
            next(run for run in runs if (run.method, run.seed) == (method, it["seed"]))
            for method in ("baseline", "continuous")
        )
        lines = map(json.loads, (taught.path / "metrics.jsonl").read_text().splitlines())
        (left,) = [line["level_accuracy"] for line in lines if line["level"] == 1]
        predicted, wanted = (TREE.levels[1][found] for found in plain.predictions("val"))
        assert it["learned"] == pytest.approx(100 * (left - (predicted == wanted).mean()))
        assert it["gain"] == pytest.approx(100 * (taught.accuracy - plain.accuracy))


def test_what_levels_were_worth_is_drawn_into_one_panel():
    one = [{"method": "continuous", "seed": 0, "learned": 2.0, "gain": 5.0}]
    other = [{"method": "continuous", "seed": at, "learned": -at, "gain": 1.0} for at in (1, 2)]
    figure = draw_figure("worth", content(row(worth=one, label="A"), row(worth=other, label="B")))
    (axes,) = figure.axes
    assert lines(axes) == {"A": [(2, 5)], "B": [(-1, 1), (-2, 1)]}
    assert draw_figure("worth", content()).axes == []


# ------------------------------------------------------------------------------ curves


def test_curves_are_the_noted_test_accuracies_and_levels(runs):
    found = stored_values("curves", runs)["curves"]
    assert [(c["method"], c["seed"]) for c in found] == [(r.method, r.seed) for r in runs]
    for curve, run in zip(found, runs, strict=True):
        assert len(curve["test_accuracy"]) == run.epochs
        assert curve["test_accuracy"][run.best_epoch - 1] == pytest.approx(run.accuracy, abs=1e-5)
    levels = [curve["level"] for curve in found if curve["method"] == "continuous"]
    assert levels == [[0, 1, 2, 2]] * 2


def noted(run, folder, *accuracies):
    """A run with other accuracies of its validation samples."""
    lines = [{"epoch": at, "level": 0, "accuracy": it} for at, it in enumerate(accuracies, 1)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return replace(run, path=folder)


def test_without_test_accuracies_a_curve_is_that_of_the_validation_samples(runs, tmp_path):
    (found,) = stored_values("curves", [noted(runs[0], tmp_path, None, 0.5)])["curves"]
    assert (found["val_accuracy"], found["level"]) == ([None, 0.5], [0, 0])
    assert "test_accuracy" not in found


def test_coarse_stages_are_stored_and_drawn_dotted_each_by_itself():
    staged = curve("staged", 0, [None, None, None, 0.2, 0.4], [0, 0, 1, 2, 2])
    staged |= {"coarse_accuracy": [0.5, 0.6, 0.3, None, None]}
    other = {**staged, "seed": 1}
    one = row(curves=[curve("baseline", 0, [0.1] * 5), staged, other], variants=TWO)
    (axes,) = draw_figure("curves", content(one)).axes
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    label = "staged C2F, on clusters"
    assert [line.get_label() == label for line in dotted] == [True, False]  # once for all seeds
    for line in dotted:
        x, y = line.get_data()
        assert list(x) == [1, 2, 2, 3, 3]
        np.testing.assert_allclose(y, [50, 60, np.nan, 30, np.nan])
    assert max(axes.get_yticks()) <= 100
    values = results_from_dict(content(one, figure="curves")).rows[0].values
    stored = json.loads(json.dumps(values_to_dict("curves", values)))["curves"]
    assert [it.get("coarse_accuracy") for it in stored] == [
        None,
        *[[0.5, 0.6, 0.3, None, None]] * 2,
    ]


def test_runs_that_noted_no_accuracy_have_no_curve(runs, tmp_path):
    assert stored_values("curves", [noted(runs[0], tmp_path, None, None)]) == {"curves": []}


def test_the_axis_says_which_samples_the_accuracy_is_of():
    test, val = curve("baseline", 0, [0.1, 0.2]), curve("continuous", 0, [0.3, 0.4])
    val["val_accuracy"] = val.pop("test_accuracy")
    figure = draw_figure(
        "curves", content(row(curves=[test]), row(curves=[val]), row(curves=[test, val]))
    )
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == [f"{it} accuracy, %" for it in ("test", "validation", "test or validation")]
    assert lines(figure.axes[1]) == {"C2F": [(1, pytest.approx(30)), (2, pytest.approx(40))]}
    assert set(lines(figure.axes[2])) == {"baseline, test", "C2F, validation"}


def test_methods_that_share_a_colour_differ_by_their_dashes():
    names = [f"m{k}" for k in range(7)]
    found = [curve(name, 0, [0.1, 0.2]) for name in ("baseline", *names)]
    one = row(curves=found, variants=[variant(name) for name in names])
    (axes,) = draw_figure("curves", content(one)).axes
    drawn = [line for line in axes.lines if not line.get_label().startswith("_")]
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == 8


def curve(method, seed, accuracies, level=()):
    levels = list(level) or [None] * len(accuracies)
    return {"method": method, "seed": seed, "test_accuracy": accuracies, "level": levels}


def marks(axes):
    """Where the dashed lines are."""
    return [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]


def test_the_mean_ends_with_the_shortest_seed_and_each_seed_has_a_thin_line():
    found = [curve("baseline", 0, [0.1, 0.2, 0.4]), curve("baseline", 1, [0.3, 0.4])]
    figure = draw_figure("curves", content(row(curves=found), row()))
    (axes,) = figure.axes
    assert lines(axes) == {"baseline": [(1, pytest.approx(20)), (2, pytest.approx(30))]}
    thin, second, _ = [line.get_xydata().tolist() for line in axes.lines]
    assert np.allclose(thin, [[1, 10], [2, 20], [3, 40]])
    assert np.allclose(second, [[1, 30], [2, 40]])
    assert legend(figure) == ["baseline"]


@pytest.mark.parametrize("accuracies", [[0.5], [None, None, 0.5]])
def test_a_single_accuracy_is_a_point(accuracies):
    found = [curve("continuous", 0, accuracies)]
    lines = draw_figure("curves", content(row(curves=found))).axes[0].lines
    assert {line.get_marker() for line in lines} == {"o"}


def test_levels_of_the_first_seed_are_marked():
    levels = [0] * 30 + [1] * 30 + [2] * 40
    found = [curve("baseline", 0, [0.1] * 100, [2] * 100)]
    found += [curve("continuous", 3, [0.2] * 100, levels), curve("continuous", 4, [0.2], [0])]
    (axes,) = draw_figure("curves", content(row(curves=found))).axes
    assert marks(axes) == [30.5, 60.5]
    assert [text.get_text() for text in axes.texts] == ["level 1", "level 2"]
    assert axes.get_ylim()[1] > 22  # room for them above the lines


def test_levels_that_follow_closely_share_a_label():
    found = [curve("continuous", 0, [0.2] * 100, [0, 1, 2, *[3] * 97])]
    (axes,) = draw_figure("curves", content(row(curves=found))).axes
    assert marks(axes) == [1.5, 2.5, 3.5]
    assert [(text.get_text(), text.xy[0]) for text in axes.texts] == [("levels 1–3", 3.5)]


# --------------------------------------------------------------------------- confusion


def test_confusion_is_counted_over_the_seeds_that_both_have(runs):
    found = stored_values(
        "confusion", [run for run in runs if (run.method, run.seed) != ("baseline", 0)]
    )
    found = found["confusion"]
    assert found["method"] == "continuous"
    assert found["class_names"] == list(NAMES)
    for run in runs:
        if run.seed == 1:
            counts = np.array(found["counts"][run.method])
            assert counts.sum(axis=1).tolist() == [10] * 6
            assert np.trace(counts) == pytest.approx(60 * run.accuracy)
    both = stored_values("confusion", runs)["confusion"]["counts"]["continuous"]
    assert np.sum(both) == 120


def test_classes_are_in_the_order_of_the_tree(runs):
    found = stored_values("confusion", runs)["confusion"]
    assert [NAMES[index] for index in found["order"]] == BY_TREE
    assert found["edges"] == [[0, 3, 6], [0, 2, 3, 5, 6]]


def test_without_a_curriculum_there_is_no_confusion_to_compare(runs):
    assert stored_values("confusion", [run for run in runs if run.method == "baseline"]) == {}
    assert stored_values("confusion", [run for run in runs if run.method != "baseline"]) == {}


def test_a_matrix_that_nobody_could_look_at_is_not_counted(runs, monkeypatch):
    monkeypatch.setattr(confusion, "MOST_CLASSES", 5)
    with pytest.raises(ValueError, match="matrix of 6 classes cannot be looked at, 5 can: draw"):
        stored_values("confusion", runs)


def confused(plain, better, order, edges, names=None):
    counts = {"baseline": plain, "continuous": better}
    found = {"method": "continuous", "order": order, "edges": edges}
    return row(confusion={**found, "class_names": names, "counts": counts})


def test_confusion_is_shown_as_shares_of_the_true_class_and_their_change():
    plain, better = [[2, 2, 0], [1, 9, 0], [0, 0, 0]], [[3, 1, 0], [0, 9, 1], [0, 0, 0]]
    one = confused(plain, better, [1, 0, 2], [[0, 2, 3]], ["a", "$b", "c$"])
    panels = draw_figure("confusion", content(one, row())).axes[:3]
    first, second, change = [axes.images[0].get_array() for axes in panels]
    assert np.allclose(first, [[90, 10, 0], [50, 50, 0], [0, 0, 0]])
    assert np.allclose(second, [[90, 0, 10], [25, 75, 0], [0, 0, 0]])
    # More of a mistake is worse, more of what is right is better: so the diagonal is turned.
    assert np.allclose(change, (second - first) * (1 - 2 * np.eye(3)))
    for axes in panels:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["$b", "a", "c$"]
        boxes = [(*box.get_xy(), box.get_width(), box.get_height()) for box in axes.patches]
        assert boxes == [(-0.5, -0.5, 2, 2), (1.5, 1.5, 1, 1)]
    titles = [axes.get_title().partition(": ")[2] for axes in panels]
    assert titles == ["baseline", "C2F", "C2F − baseline"]


def test_colours_are_clipped_for_the_mistakes_and_the_labels_say_where():
    counts = (90 * np.eye(10, dtype=int) + 1).tolist()
    figure = draw_figure("confusion", content(confused(counts, counts, list(range(10)), [])))
    plain, _, change, *bars = figure.axes
    assert plain.images[0].get_clim() == pytest.approx((0, 1))
    assert change.images[0].get_clim() == (-1, 1)  # nothing changed, so anything will do
    assert bars[0].get_xlabel() == "share of the true class, %; clipped at 1.0"


@pytest.mark.parametrize(("count", "named"), [(30, 30), (31, 0)])
def test_many_classes_go_unnamed(count, named):
    counts, names = np.eye(count, dtype=int).tolist(), list(map(str, range(count)))
    one = confused(counts, counts, list(range(count)), [], names)
    assert len(draw_figure("confusion", content(one)).axes[0].get_xticklabels()) == named


def test_only_the_two_coarsest_levels_are_outlined():
    counts = np.eye(4, dtype=int).tolist()
    one = confused(counts, counts, [0, 1, 2, 3], [[0, 3, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4]])
    axes = draw_figure("confusion", content(one)).axes[0]
    assert [box.get_width() for box in axes.patches] == [3, 1, 2, 1, 1]


# --------------------------------------------------------------------------- hierarchy


def test_hierarchies_are_those_of_the_first_seed(runs):
    found = stored_values("hierarchy", runs)["hierarchies"]
    assert found.keys() == {"continuous"}
    assert found["continuous"].pop("seed") == 0
    assert Hierarchy.from_dict(found["continuous"]) == TREE


def tree_row(*trees):
    found = {
        one["name"]: {"seed": 0, **tree.to_dict()} for one, tree in zip(TWO, trees, strict=False)
    }
    return row(label="Mine", variants=TWO, hierarchies=found)


def boxes(axes):
    """The boxes of each column, from top to bottom, as pairs of heights."""
    columns = {}
    for box in axes.patches:
        columns.setdefault(box.get_x(), []).append((box.get_y(), box.get_y() + box.get_height()))
    return [columns[left] for left in sorted(columns)]


def test_each_level_is_a_column_of_boxes_over_those_they_hold():
    (axes,) = draw_figure("hierarchy", content(tree_row(TREE))).axes
    coarse, middle, names = boxes(axes)
    assert middle == names
    assert coarse == [(middle[0][0], middle[1][1]), (middle[2][0], middle[3][1])]
    assert [text.get_text() for text in axes.texts] == [
        "Mine: C2F, seed 0",
        *("2 clusters", "3 classes", "3 classes"),
        *("4 clusters", "2 classes", "1 class", "2 classes", "1 class"),
        *("6 classes", "cat, dog", "fox", "car, bus", "van"),
    ]


def test_clusters_with_names_are_called_by_them():
    named = Hierarchy.from_levels([[0, 0, 1]], ["cat", "dog", "car"], [["pet", "vehicle"]])
    (axes,) = draw_figure("hierarchy", content(tree_row(named))).axes
    assert {"pet", "vehicle"} < {text.get_text() for text in axes.texts}


def test_there_is_a_panel_for_each_variant_as_high_as_it_needs():
    many = Hierarchy.from_levels([np.arange(100) // 5], [f"class number {k}" for k in range(100)])
    figure = draw_figure("hierarchy", content(tree_row(TREE, many), row(), tree_row(TREE)))
    heights = [axes.get_position().height * figure.get_figheight() for axes in figure.axes]
    assert heights[0] == pytest.approx(heights[2])
    assert heights[1] > 20 * 0.15 > heights[0]


@pytest.mark.parametrize("count", [30, 100])
def test_all_names_lie_within_their_boxes_and_apart(count):
    names = [f"{'magenta ' * (k % 3)}polygon[{k}]" for k in range(count)]
    names[3] = "a name that is longer than any line " * 9
    tree = Hierarchy.from_levels([np.arange(count) % 2, np.arange(count) % 10], names)
    figure = draw_figure("hierarchy", content(tree_row(tree)))
    figure.set_dpi(150)
    (axes,) = figure.axes
    extents = [text.get_window_extent() for text in axes.texts]
    for number, one in enumerate(extents):
        assert axes.bbox.x0 <= one.x0 < one.x1 <= axes.bbox.x1
        assert not any(one.overlaps(other) for other in extents[:number])
    shown = " ".join(text.get_text() for text in axes.texts)
    assert all(f"{name.strip()}" in shown for name in names if len(name) < 50)
    assert "…" in shown


def test_classes_without_levels_or_names_are_one_box():
    flat = {**TREE.to_dict(), "levels": [], "class_names": None, "seed": 0}
    (axes,) = draw_figure("hierarchy", content(row(hierarchies={"continuous": flat}))).axes
    assert [len(column) for column in boxes(axes)] == [1, 1]
    assert axes.texts[-1].get_text() == "0, 1, 2, 3, 4, 5"


# --------------------------------------------------------------------------------- all


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_results_give_the_same_file(name, runs, tmp_path):
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        save(draw_figure(name, content(row_of(runs, name))), file)
    assert files[0].read_bytes() == files[1].read_bytes()
