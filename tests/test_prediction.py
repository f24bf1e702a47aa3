"""Answers as fine as the model is sure, and as often right as was promised."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hierarchies import hierarchies
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import Hierarchy, LevelPredictor, _calibration
from coarse2fine._calibration import Calibration, needed_samples
from coarse2fine._paths import likeliest_paths

RAGGED = Hierarchy.from_taxonomy({"animal": {"pet": ["cat", "dog"], "fox": []}, "car": []})


def fitted(hierarchy, threshold, temperature=1.0):
    """A predictor with a threshold that nothing was calibrated for."""
    predictor = LevelPredictor(hierarchy)
    predictor.threshold_, predictor.temperature_ = threshold, temperature
    predictor.num_samples_, predictor.accuracy_ = 100, 0.97
    return predictor


def names(predictor, probabilities):
    return predictor.hierarchy.decode(predictor.predict(np.log(probabilities)))


# ------------------------------------------------------------------------------- the answers


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0.0, ["cat", "car"]),
        (0.5, ["cat", "car"]),
        (0.6, ["pet", "(any)"]),
        (0.85, ["animal", "(any)"]),
        (0.99, ["(any)", "(any)"]),
        (math.inf, ["(any)", "(any)"]),
    ],
)
def test_a_higher_threshold_gives_coarser_answers(threshold, expected):
    probabilities = [[0.51, 0.29, 0.1, 0.1], [0.3, 0.1, 0.05, 0.55]]
    assert names(fitted(RAGGED, threshold), probabilities) == expected


def test_the_likeliest_child_is_taken_though_a_class_elsewhere_is_likelier():
    # cat 0.22, dog 0.22 and fox 0.1 are together more than the car by itself.
    assert names(fitted(RAGGED, 0.2), [[0.22, 0.22, 0.1, 0.46]]) == ["cat"]


def test_logits_are_divided_by_the_temperature():
    logits = [[3.0, 0.0, 0.0, 0.0]]
    assert fitted(RAGGED, 0.8).predict(logits).tolist() == [0]  # e³ / (e³ + 3) = 0.87
    assert fitted(RAGGED, 0.8, 3.0).predict(logits).tolist() == [5]  # 0.475, pet 0.65, animal 0.82


def by_brute_force(classes, threshold, nodes):
    """Descend with loops and sets."""
    at = nodes.root
    while True:
        below = [node for node in range(len(nodes)) if nodes.parents[node] == at]
        shares = {node: classes[nodes.classes(node)].sum() for node in below}
        if not below or max(shares.values()) < threshold:
            return at
        at = max(shares, key=shares.__getitem__)


@given(hierarchies(), st.integers(0, 99), st.floats(0.05, 0.95))
def test_the_answers_are_those_of_brute_force(hierarchy, seed, threshold):
    nodes = hierarchy.nodes
    classes = np.random.default_rng(seed).dirichlet(np.ones(nodes.root), 4)
    expected = [by_brute_force(row, threshold, nodes) for row in classes]
    assert fitted(hierarchy, threshold).predict(np.log(classes + 1e-300)).tolist() == expected


@given(hierarchies(), st.integers(0, 99), st.floats(0.05, 0.95))
def test_an_answer_is_wrong_from_the_first_wrong_node_on(hierarchy, seed, threshold):
    random, nodes = np.random.default_rng(seed), hierarchy.nodes
    logits, targets = random.normal(size=(20, nodes.root)), random.integers(nodes.root, size=20)
    paths = likeliest_paths(logits, 1.0, nodes)
    answers = paths.answers(threshold)
    is_wrong = [y not in nodes.classes(node) for y, node in zip(targets, answers, strict=True)]
    assert (paths.mistakes(targets, nodes) >= threshold).tolist() == is_wrong


def test_many_samples_are_answered_block_by_block(monkeypatch):
    logits = np.random.default_rng(0).normal(size=(50, 4))
    expected = fitted(RAGGED, 0.4).predict(logits)
    monkeypatch.setattr("coarse2fine._logits._MOST_NUMBERS", 64)
    np.testing.assert_array_equal(fitted(RAGGED, 0.4).predict(logits), expected)


def test_nothing_is_answered_by_nothing():
    found = fitted(RAGGED, 0.5).predict(np.zeros((0, 4)))
    assert (found.shape, found.dtype) == ((0,), np.int64)


# -------------------------------------------------------------------------------- calibration


def made(count, seed=0, sharpness=1.0):
    """Logits whose softmax, without the sharpness, is the distribution of the targets."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(count, 4)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    targets = (shares.cumsum(axis=1) < random.random((count, 1))).sum(axis=1)
    return logits * sharpness, targets.clip(max=3)


def test_the_threshold_is_the_lowest_that_passes_the_exact_test(monkeypatch):
    # Of 100 samples 80 test. P(at most 0 of 80 wrong) = 0.95^80 = 0.017 and at most 1: 0.086,
    # but at most 2: 0.23, so one mistake is allowed at an accuracy of 0.95, and not two.
    monkeypatch.setattr(_calibration, "_THRESHOLDS", np.array([0.9, 0.8, 0.7, 0.6]))

    def tested(*wrong):
        return Calibration(1.0, np.array([*wrong] + [-np.inf] * 78)).tested(0.95, 0.9)

    assert tested(0.85, 0.75) == (0.8, 79 / 80)
    assert tested(0.85, 0.65).threshold == 0.7
    assert tested(0.1, 0.1) == (0.6, 1.0)
    assert tested(0.95, 0.9) == (math.inf, 1.0)


def test_an_overconfident_model_gets_a_temperature():
    assert LevelPredictor(RAGGED).fit(*made(20_000, sharpness=3.0)).temperature_ == pytest.approx(
        3.0, rel=0.05
    )


def test_a_temperature_that_does_not_help_is_not_used():
    logits, targets = np.zeros((100, 4)), np.arange(100) % 4
    predictor = LevelPredictor(RAGGED).fit(logits, targets)
    assert predictor.temperature_ == 1.0
    assert predictor.hierarchy.decode(predictor.predict(logits[:1])) == ["(any)"]


def test_tensors_give_the_same_as_arrays():
    logits, targets = made(500)
    arrays = LevelPredictor(RAGGED).fit(logits, targets)
    tensors = LevelPredictor(RAGGED).fit(torch.tensor(logits), torch.tensor(targets))
    assert tensors.to_dict() == arrays.to_dict()
    found = tensors.predict(torch.tensor(logits, requires_grad=True))
    np.testing.assert_array_equal(found, arrays.predict(logits))


def test_the_promise_is_kept_in_as_many_draws_as_was_promised():
    # Of a population that is drawn from with replacement, the share of right answers is known.
    logits, targets = made(1500, sharpness=1.5)
    nodes, random = RAGGED.nodes, np.random.default_rng(1)
    kept, finest = [], []
    for _ in range(1000):
        rows = random.integers(len(targets), size=250)
        predictor = LevelPredictor(RAGGED, accuracy=0.9, confidence=0.9)
        answers = predictor.fit(logits[rows], targets[rows]).predict(logits)
        places = nodes.starts[targets]
        is_right = (nodes.starts[answers] <= places) & (places < nodes.stops[answers])
        kept.append(is_right.mean() >= 0.9)
        finest.append((answers < nodes.root).mean())
    assert 0.9 <= np.mean(kept) < 0.99  # the promise, and not by answering nothing
    assert np.mean(finest) > 0.2


def test_where_no_threshold_passes_every_answer_is_the_root():
    targets = np.arange(100) % 4
    logits = 1e4 * np.eye(4)[(targets + 1) % 4]  # sure, and always wrong
    message = r"Even with the strictest threshold 80 of 80 answers are wrong, too many to promise "
    with pytest.warns(UserWarning, match=message + "accuracy=0.95 with confidence=0.9, so every"):
        predictor = LevelPredictor(RAGGED).fit(logits, targets)
    assert predictor.threshold_ == math.inf
    assert set(predictor.predict(logits)) == {RAGGED.nodes.root}
    again = LevelPredictor.from_dict(json.loads(json.dumps(predictor.to_dict())))
    assert again.threshold_ == math.inf


# ------------------------------------------------------------------------------- plain values


def test_a_predictor_goes_to_json_and_back():
    predictor = LevelPredictor(RAGGED, 0.9, 0.8).fit(*made(500))
    content = json.loads(json.dumps(predictor.to_dict(), allow_nan=False))
    again = LevelPredictor.from_dict(content)
    assert again.to_dict() == predictor.to_dict()
    assert again.hierarchy == RAGGED
    np.testing.assert_array_equal(again.predict(made(50)[0]), predictor.predict(made(50)[0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a level predictor"),
        ({"version": 2}, "version 2 of the format is not known"),
        ({"hierarchy": None}, "not a hierarchy"),
        ({"accuracy": 2}, "accuracy must lie between 0 and 1"),
        ({"confidence": None}, "confidence must lie between 0 and 1"),
        ({"threshold": "high"}, "\"threshold\" must be a number from 0. Got 'high'"),
        ({"temperature": 0}, '"temperature" must be a number from 0.1. Got 0'),
        ({"samples": math.nan}, '"samples" must be a number from 1. Got nan'),
    ],
)
def test_a_damaged_description_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        LevelPredictor.from_dict(fitted(RAGGED, 0.5).to_dict() | change)


# ------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("value", [0, 1, -0.5, 95, math.nan, "0.9", True, None])
@pytest.mark.parametrize("what", ["accuracy", "confidence"])
def test_shares_lie_between_0_and_1(what, value):
    with pytest.raises(ValueError, match=f"{what} must lie between 0 and 1, both excluded. Got"):
        LevelPredictor(RAGGED, **{what: value})


def test_a_sample_too_small_for_the_promise_is_refused():
    # 0.95^45 = 0.0994 is the first power of 0.95 below 0.1; of 56 samples 45 are tested.
    message = r"accuracy=0.95 with confidence=0.9 needs at least 56 samples, 45 of them to .* 55\."
    with pytest.raises(ValueError, match=message):
        LevelPredictor(RAGGED).fit(*made(55))
    right = np.arange(56) % 4
    assert LevelPredictor(RAGGED).fit(9 * np.eye(4)[right], right).num_samples_ == 45


@pytest.mark.parametrize("accuracy", [0.3, 0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("confidence", [0.3, 0.9, 0.99])
def test_the_needed_number_is_the_smallest_that_can_prove_the_promise(accuracy, confidence):
    fewest = next(n for n in range(1, 999) if accuracy**n <= 1 - confidence)
    enough = next(n for n in range(1, 999) if n - n // 5 >= fewest)
    assert needed_samples(accuracy, confidence) == (enough, fewest)
    right = np.arange(enough) % 4
    predictor = LevelPredictor(RAGGED, accuracy, confidence).fit(50.0 * np.eye(4)[right], right)
    assert math.isfinite(predictor.threshold_)
    with pytest.raises(ValueError, match=f"at least {enough} samples, {fewest} of them"):
        LevelPredictor(RAGGED, accuracy, confidence).fit(np.zeros((enough - 1, 4)), right[1:])


@pytest.mark.parametrize(
    ("logits", "targets", "message"),
    [
        (np.zeros((60, 5)), [0] * 60, r"logits must have shape \(N, 4\), .* Got \(60, 5\)\."),
        (np.zeros(60), [0] * 60, r"logits must have shape \(N, 4\)"),
        (np.full((60, 4), math.nan), [0] * 60, r"logits\[0, 0\] is nan; every entry must"),
        (np.full((60, 4), math.inf), [0] * 60, r"logits\[0, 0\] is inf"),
        (np.zeros((60, 4)), [0] * 59 + [4], r"targets must lie in 0..3. Got 4 at position 59."),
        (np.zeros((60, 4)), [-1] * 60, r"targets must lie in 0..3. Got -1 at position 0."),
        (np.zeros((60, 4)), [0] * 59, r"targets must have shape \(60,\), .* Got \(59,\)."),
    ],
)
def test_what_does_not_fit_is_refused(logits, targets, message):
    with pytest.raises(ValueError, match=message):
        LevelPredictor(RAGGED).fit(logits, targets)


def test_probabilities_are_no_logits():
    logits, targets = made(500)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    with pytest.raises(ValueError, match="every row adds up to 1; give their logarithms"):
        LevelPredictor(RAGGED).fit(shares.astype(np.float16), targets)
    assert LevelPredictor(RAGGED).fit(np.log(shares), targets).threshold_ < 1


@pytest.mark.parametrize("given", [None, RAGGED.nodes, {"pet": ["cat", "dog"]}])
def test_a_hierarchy_is_needed(given):
    with pytest.raises(TypeError, match="hierarchy must be a Hierarchy. Got "):
        LevelPredictor(given)


def test_a_predictor_tells_its_promise_and_its_threshold():
    assert repr(LevelPredictor(RAGGED)) == "LevelPredictor(accuracy=0.95, confidence=0.9)"
    assert repr(fitted(RAGGED, 0.61234)).endswith("confidence=0.9, threshold=0.6123)")


def test_logits_to_answer_are_checked_too():
    with pytest.raises(ValueError, match=r"logits must have shape \(N, 4\)"):
        fitted(RAGGED, 0.5).predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"logits\[0, 1\] is nan"):
        fitted(RAGGED, 0.5).predict([[0, math.nan, 0, 0]])


def test_there_is_no_answer_before_fit():
    for act in (lambda it: it.predict(np.zeros((1, 4))), LevelPredictor.to_dict):
        with pytest.raises(ValueError, match="has no threshold yet; call fit first"):
            act(LevelPredictor(RAGGED))
