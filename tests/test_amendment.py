"""Decisions that make milder mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hierarchies import hierarchies, make
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import (
    Hierarchy,
    hierarchical_ensemble,
    mistake_heights,
    risk_minimising_predictions,
)

PAIRS = Hierarchy.from_levels([[0, 0, 1, 1]])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def expected_heights(logits, hierarchy):
    """By the K×K matrix of heights."""
    count = hierarchy.num_classes
    pairs = np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
    return softmax(logits) @ mistake_heights(*pairs, hierarchy).reshape(count, count)


@given(hierarchies(), st.integers(0, 99))
def test_the_risk_is_that_of_the_matrix_of_heights(hierarchy, seed):
    logits = np.random.default_rng(seed).normal(size=(6, hierarchy.num_classes))
    expected = expected_heights(logits, hierarchy).argmin(axis=1)
    found = risk_minimising_predictions(logits, hierarchy)
    np.testing.assert_array_equal(found, expected)


def test_the_likelier_cluster_beats_the_likeliest_class():
    # Heights: 0.25 + 2 * 0.4 = 1.05 for class 0, 0.0 + 2 * 0.6 = 1.2 for class 2.
    logits = np.log([[0.35, 0.25, 0.3999, 0.0001]])
    assert risk_minimising_predictions(torch.tensor(logits), PAIRS).tolist() == [0]
    assert logits.argmax() == 2


def test_a_model_that_is_sure_is_left_alone():
    logits = 20 * np.eye(5)
    assert risk_minimising_predictions(logits, make()).tolist() == [0, 1, 2, 3, 4]


def test_many_samples_are_decided_block_by_block(monkeypatch):
    logits = np.random.default_rng(0).normal(size=(50, 4))
    expected = risk_minimising_predictions(logits, PAIRS)
    monkeypatch.setattr("coarse2fine._logits._MOST_NUMBERS", 64)
    np.testing.assert_array_equal(risk_minimising_predictions(logits, PAIRS), expected)


def test_an_ensemble_multiplies_by_the_probability_of_the_cluster():
    fine, coarse = np.array([[0.3, 0.2, 0.4, 0.1]]), np.array([[0.8, 0.2]])
    # 0.24, 0.16, 0.08 and 0.02, which add up to 0.5.
    found = hierarchical_ensemble([np.log(coarse), torch.tensor(np.log(fine))], PAIRS)
    np.testing.assert_allclose(found, [[0.48, 0.32, 0.16, 0.04]])


@given(hierarchies(), st.integers(0, 99))
def test_an_ensemble_of_all_levels_is_the_product(hierarchy, seed):
    random = np.random.default_rng(seed)
    logits = [random.normal(size=(3, count)) for count in hierarchy.num_clusters]
    product = np.ones((3, hierarchy.num_classes))
    for own, level in zip(logits, hierarchy.levels, strict=True):
        product *= softmax(own)[:, level]
    expected = product / product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(hierarchical_ensemble(logits, hierarchy), expected)


def test_a_level_without_a_model_changes_nothing():
    logits = np.random.default_rng(0).normal(size=(3, 5))
    found = hierarchical_ensemble([None, None, logits], make())
    np.testing.assert_allclose(found, softmax(logits))


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([np.zeros((1, 4))], "must have 2 entries, one for each level; .* Got 1"),
        ([np.zeros((1, 2)), None], "those of the classes come last and cannot be None"),
        ([np.zeros((1, 3)), np.zeros((1, 4))], r"logits_by_level\[0\] must have shape \(N, 2\)"),
        ([np.zeros((1, 2)), np.zeros((2, 4))], r"must have the same number of rows. Got \[1, 2\]"),
        ([[[0, math.nan]], np.zeros((1, 4))], r"logits_by_level\[0\]\[0, 1\] is nan"),
    ],
)
def test_an_ensemble_that_does_not_fit_is_refused(logits, message):
    with pytest.raises(ValueError, match=message):
        hierarchical_ensemble(logits, PAIRS)


def test_risks_need_a_logit_for_each_class():
    with pytest.raises(ValueError, match=r"logits must have shape \(N, 4\), a column for each"):
        risk_minimising_predictions(np.zeros((1, 3)), PAIRS)
