"""How fine models can answer if an accuracy is promised."""

import math

import numpy as np
import pytest
import torch
from hierarchies import hierarchies
from hypothesis import given, settings
from hypothesis import strategies as st

from coarse2fine import Hierarchy, LevelPredictor, RunError, fit
from coarse2fine.figures import answers
from coarse2fine.figures.answers import Answers, RunAnswers
from coarse2fine.figures.promises import CONFIDENCE, Logits, Promise, promises_of
from coarse2fine.figures.style import Panel
from coarse2fine.runs import restorer
from coarse2fine.runs.directory import Run
from coarse2fine.runs.restore import load_trained
from coarse2fine.runs.restorer import Restorer

NAMES = ("cat", "dog", "car", "bus")
PAIRS = Hierarchy.from_levels([[0, 0, 1, 1]], NAMES)
# Cat and dog are a cluster at two levels, car and bus only at the coarser one.
TWICE = Hierarchy.from_levels([[0, 0, 1, 1], [0, 0, 1, 2]], NAMES)


def made(hierarchy, count, seed):
    """Logits whose softmax is the distribution of the targets."""
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(count, hierarchy.num_classes))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    targets = (shares.cumsum(axis=1) < random.random((count, 1))).sum(axis=1)
    return Logits(logits, targets.clip(max=hierarchy.num_classes - 1))


# --------------------------------------------------------------------------- what is counted


def by_sets(predictor, test):
    """Count with loops and sets: the share of right answers, and those of each depth."""
    nodes, levels = predictor.hierarchy.nodes, predictor.hierarchy.levels
    clusters = [
        [set(np.flatnonzero(level == cluster)) for cluster in range(level.max() + 1)]
        for level in levels
    ]
    right, counts = 0, np.zeros(len(levels) + 1)
    for answer, target in zip(predictor.predict(test.logits), test.targets, strict=True):
        classes = set(nodes.classes(answer))
        right += target in classes
        counts[max((at + 1 for at, own in enumerate(clusters) if classes in own), default=0)] += 1
    return 100 * right / len(test.targets), 100 * counts / len(test.targets)


@settings(max_examples=10)
@given(hierarchies(), st.integers(0, 99))
@pytest.mark.filterwarnings("ignore:Even with the strictest threshold")
def test_promises_are_those_of_a_predictor_that_is_calibrated_for_each(hierarchy, seed):
    val, test = made(hierarchy, 120, seed), made(hierarchy, 40, seed + 1)
    found = list(promises_of(val, test, hierarchy.nodes))
    for promise in found[::16]:
        predictor = LevelPredictor(hierarchy, promise.promised / 100, CONFIDENCE).fit(*val)
        right, shares = by_sets(predictor, test)
        assert promise.right == pytest.approx(right)
        np.testing.assert_allclose(promise.shares, shares)


def test_answers_are_as_fine_as_the_finest_level_that_has_them():
    # Sure of a class, of cat or dog, of car or bus, and of nothing: a quarter of the samples each.
    rows = np.array([[60.0, 0, 0, 0], [30, 30, 0, 0], [0, 0, 30, 30], [0, 0, 0, 0]])
    targets = np.tile([[0, 0, 2, 0], [0, 1, 3, 3]], (100, 1))
    samples = Logits(np.tile(rows, (200, 1)), targets.reshape(-1))
    *_, last = promises_of(samples, samples, TWICE.nodes)
    assert last.promised == 99
    np.testing.assert_allclose(last.shares, [25, 25, 25, 25])  # root, car or bus, cat or dog, cat
    assert last.right == 100
    assert last.depth == 1.5


def test_promises_end_where_the_samples_are_too_few():
    val = made(PAIRS, 40, 0)
    found = list(promises_of(val, val, PAIRS.nodes))
    LevelPredictor(PAIRS, found[-1].promised / 100).fit(*val)
    with pytest.raises(ValueError, match="Got 40"):
        LevelPredictor(PAIRS, found[-1].promised / 100 + 0.01).fit(*val)


def test_all_answers_are_the_root_where_nothing_can_be_promised():
    targets = np.arange(200) % 4
    wrong = Logits(1e4 * np.eye(4)[(targets + 2) % 4], targets)
    *_, last = promises_of(wrong, wrong, PAIRS.nodes)
    np.testing.assert_allclose(last.shares, [100, 0, 0])
    assert (last.right, last.depth) == (100, 0)


def test_logits_of_other_classes_are_refused():
    with pytest.raises(ValueError, match=r"logits must have shape \(N, 4\)"):
        Logits.checked(np.zeros((2, 3)), [0, 1], PAIRS)
    with pytest.raises(ValueError, match=r"targets must lie in 0..3. Got 4"):
        Logits.checked(np.zeros((2, 4)), [0, 4], PAIRS)


# ---------------------------------------------------------------------------- several runs


def run(method, seed, rights, accuracy=96.4, samples=1000):
    shares = np.array([10.0, 20.0, 70.0])
    promises = [Promise(at, right, shares + seed) for at, right in enumerate(rights, 1)]
    return RunAnswers(method, seed, accuracy, samples, promises)


def test_means_are_over_the_seeds_from_the_accuracy_of_classes_on():
    many = np.arange(1.0, 100.0)
    values = Answers((2, 4), [run("a", 0, many, 40.9), run("a", 2, many + 1, 50.0)])
    found = values.means("a")
    assert [found[0].promised, found[-1].promised] == [40, 99]
    assert found[0].right == 40.5
    assert found[0].shares.tolist() == [11, 21, 71]
    assert values.lacking is None


def test_promises_from_90_on_are_shown_however_accurate_the_model_is():
    assert Answers((2, 4), [run("a", 0, [1.0] * 99, 99.5)]).means("a")[0].promised == 90


def test_what_the_samples_are_too_few_for_is_said():
    # 0.96^57 = 0.098 and 0.95^45 = 0.099; of 56 samples 45 are tested, and of 71 there are 57.
    values = Answers((2, 4), [run("a", 0, [1.0] * 99), run("a", 1, [1.0] * 95, samples=60)])
    assert values.lacking == (
        "from 96 % on, a promise needs 71 validation samples or more; there are 60"
    )
    assert values.means("a")[-1].promised == 95


# ------------------------------------------------------------------------------- drawings


@pytest.fixture
def two():
    """Two methods of two seeds, one of which has few samples."""
    own = [run("baseline", 0, [1.0] * 99), run("baseline", 1, [1.0] * 99)]
    return Answers((2, 4), [*own, run("<i>", 0, [99.0] * 95, samples=60)])


def test_a_page_has_areas_from_classes_to_the_root_and_the_right_answers(two):
    figure = answers.plot(two, "baseline")
    *areas, right, promised = figure.data
    assert [area.name for area in areas] == [
        "one of 4 classes",
        "one of 2 clusters",
        "no class or cluster",
    ]
    assert [area.y[0] for area in areas] == [70.5, 20.5, 10.5]
    assert (right.y[0], promised.y) == (1.0, tuple(range(90, 100)))
    title = figure.layout.xaxis.title.text
    assert title.endswith("<br>(from 96 % on, a promise needs 71 validation samples or more; there"
                          " are 60)")  # fmt: skip


def test_in_print_each_method_has_a_panel(two):
    figure = answers.draw([Panel("run", {"<i>": "mine"}, two)])
    baseline, mine = figure.axes
    assert (baseline.get_title(), mine.get_title()) == ("run: baseline", "run: mine")
    assert [line.get_ydata().max() for line in mine.get_lines()] == [99.0, 95.0]
    assert baseline.get_xlim() == (90, 99)
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "mean over seeds"
    assert "one of 2 clusters" in [text.get_text() for text in legend.get_texts()]


# ------------------------------------------------------------------------------ real runs


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A comparison on a table of two numbers, table.csv."""
    folder, rng = tmp_path_factory.mktemp("answers"), np.random.default_rng(0)
    places = {"cat": (0, 0), "dog": (0, 2), "car": (9, 0), "bus": (9, 2)}
    lines = [
        f"{x:.3f},{y:.3f},{name}"
        for _ in range(150)
        for name, place in places.items()
        for x, y in [rng.normal(place, 1)]
    ]
    data = folder / "table.csv"
    data.write_text("\n".join(["width,height,label", *lines, ""]))
    given = {"epochs": 4, "curriculum_epochs": 1, "batch_size": 16, "hierarchy": PAIRS}
    return fit(str(data), out=folder / "run", **given)


def test_a_run_is_calibrated_by_its_validation_and_measured_on_its_test_samples(result):
    (taught,) = result.of("continuous")
    found = answers.values_of(result.runs)
    assert found.methods == ["baseline", "continuous"]
    assert found.num_clusters == (2, 4)
    assert found.runs[1].accuracy == pytest.approx(100 * taught.accuracy)
    trained, data = load_trained(taught.path), Restorer().data(Run(taught.path))
    predictor = LevelPredictor(taught.hierarchy(), 0.95)
    predictor.fit(trained.logits(data.val), data.val.targets)
    assert found.runs[1].samples == len(data.val)
    test = Logits(trained.logits(data.test).numpy(), data.test.targets.numpy())
    right, shares = by_sets(predictor, test)
    promise = next(each for each in found.means("continuous") if each.promised == 95)
    assert promise.right == pytest.approx(right)
    np.testing.assert_allclose(promise.shares, shares)
    assert 0 < shares[1] < 100  # clusters among the answers


def test_a_comparison_plots_the_method_that_is_asked_for(result):
    figure = result.plot("answers")
    assert figure.to_json() == result.plot("answers", "continuous").to_json()
    assert figure.data[0].y != result.plot("answers", "baseline").data[0].y
    areas = np.array([area.y for area in figure.data[:3]])
    np.testing.assert_allclose(areas.sum(axis=0), 100)


def test_runs_without_a_hierarchy_have_no_such_figure(result):
    assert answers.values_of(result.of("baseline")) is None


def test_other_data_than_those_of_the_training_are_refused(result):
    file = result.path.parent / "table.csv"
    before = file.read_text()
    file.write_text(before.replace("cat", "bus", 1))
    try:
        with pytest.raises(RunError, match=r"table.csv are not those that the run was trained"):
            answers.values_of(result.runs)
    finally:
        file.write_text(before)


def test_the_data_of_several_runs_are_read_once(result, monkeypatch):
    read = []
    load_data = restorer.load_data
    monkeypatch.setattr(restorer, "load_data", lambda *a, **k: read.append(a) or load_data(*a, **k))
    answers.values_of(result.runs)
    assert len(read) == 1


def test_python_objects_cannot_be_read_again(tmp_path):
    inputs, targets = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 4
    given = {
        "epochs": 2,
        "curriculum_epochs": 1,
        "hierarchy": Hierarchy.from_levels([[0, 0, 1, 1]]),
    }
    result = fit((inputs.astype(np.float32), targets), out=tmp_path / "run", **given)
    with pytest.raises(RunError, match="the data were Python objects, which cannot be read again"):
        answers.values_of(result.runs)


@pytest.mark.parametrize(
    ("share", "message"),
    [(0.0, "has no validation samples"), (0.02, r"the validation samples are too few: from \d+ %")],
)
def test_validation_samples_that_are_missing_or_too_few_are_named(
    result, monkeypatch, share, message
):
    data = Restorer().data(Run(result.runs[0].path))
    few = data.val.take(torch.arange(math.floor(share * len(data.val))))
    monkeypatch.setattr(
        Restorer, "data", lambda *_: type(data)("table", data.train, few, data.test)
    )
    with pytest.raises(RunError, match=message):
        answers.values_of(result.runs)
