"""What figures and reports show of finished runs."""

import json
import math

import numpy as np
import pytest
import torch
from studies import NAMES, compare, hierarchy, metrics

from coarse2fine import Result, RunResult, confusion_matrix, level_accuracies
from coarse2fine.figures.curves import learning_curve
from coarse2fine.figures.values import confusions, count_confusions
from coarse2fine.runs.checkpoint import save_tensors

TARGETS = [0, 0, 1, 2, 3, 3, 4, 5]
PLAIN = [[0, 1, 1, 2, 4, 4, 4, 5], [0, 0, 2, 2, 3, 5, 4, 0]]
TAUGHT = [[0, 0, 1, 2, 3, 4, 4, 4], [0, 0, 1, 2, 3, 5, 4, 5]]


@pytest.fixture
def finished(tmp_path):
    """Make the directory of a finished run, with what is given in it."""

    def finished(method="baseline", seed=0, predictions=(), epochs=(), *, has_hierarchy=False):
        path = tmp_path / f"{method}-{seed}"
        path.mkdir()
        (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in epochs))
        save_tensors(
            path / "predictions.safetensors",
            {
                "test.predictions": torch.tensor(predictions, dtype=torch.int64),
                "test.targets": torch.tensor(TARGETS[: len(predictions)], dtype=torch.int64),
            },
        )
        if has_hierarchy:
            hierarchy().save(path / "hierarchy.json")
        clusters = (2, 4, 6) if has_hierarchy else ()
        return RunResult(method, seed, 0.5, None, 1, 2, 1.0, True, None, clusters, path)

    return finished


@pytest.fixture
def result(finished, tmp_path):
    """Two seeds of the baseline, of a curriculum, and one of a method without a hierarchy."""
    runs = [finished("baseline", seed, PLAIN[seed]) for seed in (0, 1)]
    runs += [finished("continuous", seed, TAUGHT[seed], has_hierarchy=True) for seed in (0, 1)]
    runs += [finished("spl", 1, TAUGHT[0])]
    return Result(tuple(runs), (), tmp_path)


def only(result, *methods):
    return Result(tuple(run for run in result.runs if run.method in methods), (), result.path)


# -------------------------------------------------------------------------------- curves


def test_a_curve_is_of_the_test_samples_where_they_were_noted(finished):
    epochs = [
        {"level": 0, "accuracy": 0.1, "test_accuracy": None},
        {"level": 1, "accuracy": 0.2, "test_accuracy": 0.25},
    ]
    curve = learning_curve(finished("staged", 3, epochs=epochs))
    assert (curve.method, curve.seed, curve.is_test) == ("staged", 3, True)
    assert math.isnan(curve.accuracy[0])
    assert curve.accuracy[1] == 25.0
    assert curve.level == [0, 1]


def test_else_a_curve_is_of_the_validation_samples(finished):
    epochs = [{"level": None, "accuracy": 0.5}, {"level": None, "accuracy": None}]
    curve = learning_curve(finished(epochs=epochs))
    assert (curve.is_test, curve.accuracy[0], curve.level) == (False, 50.0, [None, None])
    assert math.isnan(curve.accuracy[1])


def test_coarse_stages_have_the_accuracy_on_their_clusters(finished):
    epochs = [
        {"level": 0, "accuracy": None, "level_accuracy": 0.9},
        {"level": 0, "accuracy": None, "level_accuracy": 0.8},
        {"level": 1, "accuracy": None, "level_accuracy": 0.5},
        {"level": 2, "accuracy": 0.3, "level_accuracy": 0.3},
    ]
    curve = learning_curve(finished("staged", 3, epochs=epochs))
    assert curve.coarse[:3] == [90.0, 80.0, 50.0]
    assert math.isnan(curve.coarse[3])
    tested = [
        {**line, "test_accuracy": line["accuracy"], "test_level_accuracy": 0.6} for line in epochs
    ]
    curve = learning_curve(finished("staged", 4, epochs=tested))
    assert curve.coarse[:3] == pytest.approx([60.0, 60.0, 60.0])
    # A run from before these were noted has none, and neither has one that always knows classes.
    for line in tested:
        del line["test_level_accuracy"]
    assert learning_curve(finished("staged", 5, epochs=tested)).coarse == []
    assert learning_curve(finished("continuous", 3, epochs=epochs[3:])).coarse == []


# ---------------------------------------------------------------------------- confusions


def test_confusions_are_the_cells_of_the_matrix_that_occur(rng):
    predictions, targets = rng.integers(7, size=(2, 60))
    found = count_confusions(predictions, targets, 8)
    matrix = confusion_matrix(predictions, targets, 8)
    rows, columns = np.nonzero(matrix)  # by row, then by column
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.columns, columns)
    np.testing.assert_array_equal(found.counts, matrix[rows, columns])
    np.testing.assert_array_equal(found.samples, matrix.sum(axis=1))
    np.testing.assert_array_equal(found.hits, matrix.diagonal())


def test_the_accuracy_of_a_class_without_samples_is_not_a_number():
    found = count_confusions([0, 2, 2], [0, 0, 2], 4)
    np.testing.assert_array_equal(found.accuracies, [50, np.nan, 100, np.nan])


def test_runs_are_counted_together(result):
    found = confusions(result.of("baseline"), 6)
    both = sum(confusion_matrix(guesses, TARGETS, 6) for guesses in PLAIN)
    np.testing.assert_array_equal(found.samples, 2 * np.bincount(TARGETS))
    np.testing.assert_array_equal(found.hits, both.diagonal())
    assert found.counts.tolist() == both[both > 0].tolist()


def test_no_runs_have_no_confusions():
    assert confusions([], 3).samples.tolist() == [0, 0, 0]


def test_a_hundred_thousand_classes_need_no_matrix():
    last = 99_999
    found = count_confusions([last, last, 0], [last, 0, last], 100_000)
    assert found.rows.tolist() == [0, last, last]
    assert found.columns.tolist() == [last, 0, last]


def test_a_label_beyond_the_classes_is_named():
    with pytest.raises(ValueError, match=r"must lie in 0..2. Got 3 at position 1"):
        count_confusions([0, 3], [0, 1], 3)


# --------------------------------------------------------------------------- Result.plot


def test_the_figure_of_classes_is_their_gain_over_the_seeds_that_both_have(result):
    (bars,) = result.plot("classes").data
    before = sum(confusion_matrix(guesses, TARGETS, 6).diagonal() for guesses in PLAIN)
    after = sum(confusion_matrix(guesses, TARGETS, 6).diagonal() for guesses in TAUGHT)
    gains = 100 * (after - before) / (2 * np.bincount(TARGETS))
    assert dict(zip(bars.customdata, bars.x, strict=True)) == pytest.approx(
        dict(zip(NAMES, gains, strict=True))
    )
    (bars,) = result.plot("classes", "spl").data  # it has only seed 1
    before, after = (confusion_matrix(g, TARGETS, 6).diagonal() for g in (PLAIN[1], TAUGHT[0]))
    gains = 100 * (after - before) / np.bincount(TARGETS)
    assert sorted(bars.x) == pytest.approx(sorted(gains))


def test_the_figure_of_levels_is_the_mean_over_seeds(result):
    figure = result.plot("levels")
    bars = {bar.name: bar.y for bar in figure.data}
    assert list(bars) == ["baseline", "continuous", "spl"]
    assert figure.layout.xaxis.ticktext == ("2 clusters", "4", "6 classes")
    each = [100 * level_accuracies(guesses, TARGETS, hierarchy()) for guesses in TAUGHT]
    assert bars["continuous"] == pytest.approx(np.mean(each, axis=0))
    assert [bar.name for bar in result.plot("levels", "spl").data] == ["baseline", "spl"]


def test_the_figure_of_confusions_compares_with_the_baseline(result):
    figure = result.plot("confusion")
    labels = [button.label for button in figure.layout.updatemenus[0].buttons]
    assert labels == ["baseline", "continuous", "difference"]
    assert [trace.type for trace in figure.data] == ["heatmap"] * 3 + ["scatter"] * 2
    assert list(figure.layout.xaxis.labelalias.values()) == list(NAMES)


def test_without_a_baseline_there_are_confusions_but_no_gains(result):
    alone = only(result, "continuous")
    assert [trace.type for trace in alone.plot("confusion").data].count("heatmap") == 1
    assert len(alone.plot("levels").data) == 1
    with pytest.raises(ValueError, match="needs a method and a baseline of the same seed"):
        alone.plot("classes")
    with pytest.raises(ValueError, match="needs a method and a baseline of the same seed"):
        result.plot("classes", "baseline")


@pytest.mark.parametrize("kind", ["levels", "classes", "confusion"])
def test_without_a_hierarchy_only_curves_can_be_drawn(kind, result):
    with pytest.raises(ValueError, match="no run has a hierarchy"):
        only(result, "baseline", "spl").plot(kind)


def test_unknown_kinds_and_methods_are_refused_by_naming_the_known_ones(result):
    with pytest.raises(
        ValueError, match="'curves', 'levels', 'classes', 'confusion', 'answers'. Got 'pie'"
    ):
        result.plot("pie")
    with pytest.raises(ValueError, match="'baseline', 'continuous', 'spl'. Got 'staged'"):
        result.plot("curves", "staged")


def test_every_figure_of_a_real_comparison_can_be_written(tmp_path):
    found = compare(tmp_path / "run", epochs=3)
    for kind in ("curves", "levels", "classes", "confusion"):
        assert json.loads(found.plot(kind).to_json())["data"], kind
    taught = found.of("continuous")[0]
    expected = [100 * line["accuracy"] for line in metrics(taught.path)]
    assert learning_curve(taught).accuracy == expected
    (mean,) = (line for line in found.plot("curves").data if line.name == "continuous")
    assert list(mean.y) == expected
