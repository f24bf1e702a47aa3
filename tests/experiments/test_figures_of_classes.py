"""What is in the figures of levels and classes."""

import numpy as np
import pytest
from contents import content, draw_figure, legend, lines, row, stored_values

from coarse2fine import Hierarchy
from coarse2fine.runs.checkpoint import save_tensors
from coarse2fine.runs.result import RunResult

NAMES = ["cat", "dog", "car", "van"]
CONFIG = {
    "config": {},
    "method": "plain",
    "data": {"kind": "table", "class_names": NAMES, "fingerprint": "made"},
}
TREE = Hierarchy.from_levels([[0, 0, 1, 1]], NAMES)
TARGETS = [0, 0, 1, 1, 2, 2]  # of the van there is none


@pytest.fixture
def run(tmp_path):
    """Makes a run that has predicted these classes."""
    import json

    import torch

    def run(method, seed, predictions):
        path = tmp_path / f"{method}-{seed}"
        path.mkdir()
        given = {"predictions": predictions, "targets": TARGETS}
        tensors = {f"test.{name}": torch.tensor(values) for name, values in given.items()}
        save_tensors(path / "predictions.safetensors", tensors)
        (path / "config.json").write_text(json.dumps(CONFIG))
        clusters = () if method == "baseline" else TREE.num_clusters
        if clusters:
            TREE.save(path / "hierarchy.json")
        return RunResult(method, seed, 0.5, None, 1, 1, 1.0, True, None, clusters, path)

    return run


# -------------------------------------------------------------------------------- levels


def test_accuracies_at_every_level_are_those_of_all_runs_in_one_hierarchy(run):
    found = stored_values(
        "levels", [run("baseline", 3, [0, 1, 2, 2, 2, 3]), run("continuous", 3, [0, 0, 1, 0, 2, 2])]
    )["levels"]
    assert found["num_clusters"] == [2, 4]
    assert (found["method"], found["seed"]) == ("continuous", 3)
    assert [one["accuracy"] for one in found["runs"]] == [
        pytest.approx([4 / 6, 2 / 6]),
        pytest.approx([1, 5 / 6]),
    ]


def levelled(*runs):
    """Runs are method, seed and accuracies."""
    given = [dict(zip(("method", "seed", "accuracy"), one, strict=True)) for one in runs]
    found = {"method": "continuous", "seed": 0, "num_clusters": [2, 4], "runs": given}
    return row(levels=found)


def test_levels_go_from_coarse_to_fine_with_their_mean_and_error():
    plain = ("baseline", 0, [0.5, 0.1])
    better = [("continuous", seed, [0.8, accuracy]) for seed, accuracy in ((0, 0.2), (1, 0.4))]
    figure = draw_figure("levels", content(levelled(plain, *better), row()))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "4 classes"]
    assert axes.get_xlabel() == "clusters in the hierarchy of C2F, seed 0"
    assert legend(figure) == ["baseline", "C2F"]
    points, (_, error) = axes.containers[1].lines[0], axes.containers[1].lines[2][0].get_segments()
    assert np.allclose(points.get_ydata(), [80, 30])
    assert np.allclose(np.diff(error[:, 1]), 20)  # the standard error of 20 and 40 is 10
    assert np.allclose(np.round(points.get_xdata()), [0, 1])
    assert lines(axes) == {}  # all are containers with a label


# ------------------------------------------------------------------------------- classes


def test_accuracies_of_classes_are_those_of_the_seeds_that_both_have(run):
    runs = [
        run("baseline", 0, [0, 1, 0, 0, 2, 2]),
        run("baseline", 1, [0, 1, 1, 0, 2, 2]),
        run("continuous", 0, [0, 0, 1, 1, 2, 0]),
        run("continuous", 1, [0, 0, 1, 0, 2, 2]),
        run("continuous", 2, [3, 3, 3, 3, 3, 3]),
    ]
    found = stored_values("classes", runs)["classes"]
    assert found["accuracies"]["baseline"] == [50, 25, 100, None]
    assert found["accuracies"]["continuous"] == [100, 75, 75, None]
    assert stored_values("classes", runs[:2]) == {}


def gained(*gains, names=None):
    names = names or [f"class {k}" for k in range(len(gains))]
    found = {"baseline": [50.0] * len(gains), "continuous": [g and 50 + g for g in gains]}
    return row(classes={"method": "continuous", "class_names": names, "accuracies": found})


def test_bars_are_sorted_and_a_class_without_samples_has_none():
    (axes,) = draw_figure(
        "classes", content(gained(-5.0, 20.0, None, 10.0, names=[*"abcd"]), row())
    ).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "d", "a"]
    assert [bar.get_width() for bar in axes.patches] == [20, 10, -5]
    first, second, third = (bar.get_facecolor() for bar in axes.patches)
    assert first == second != third
    assert axes.yaxis_inverted()


@pytest.mark.parametrize(("count", "bars"), [(40, 40), (41, 41), (42, 41)])
def test_of_many_classes_the_best_and_the_worst_are_shown(count, bars):
    (axes,) = draw_figure("classes", content(gained(*map(float, range(1, count + 1))))).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(names) == bars
    assert (names[0], names[-1]) == (f"class {count - 1}", "class 0")
    assert [name for name in names if "between" in name] == (
        ["… 2 classes between …"] if count > 41 else []
    )
