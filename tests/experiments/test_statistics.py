"""How sure a gain is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from coarse2fine.runs.statistics import errors_below, paired

GAINS = st.lists(st.floats(-50, 50), min_size=2, max_size=20)


def test_gains_by_hand():
    # The deviations from 1 are -2, 0, 2, so the variance is 8 / 2 and the error 2 / sqrt(3);
    # Student's t with two degrees of freedom has its 97.5% point at 4.30265.
    found = paired([-1.0, 1.0, 3.0])
    assert (found.mean, found.runs, found.wins) == (1.0, 3, 2.0)
    assert found.error == pytest.approx(2 / math.sqrt(3))
    assert found.low == pytest.approx(1 - 4.30265 * 2 / math.sqrt(3), abs=1e-4)
    assert found.high == pytest.approx(1 + 4.30265 * 2 / math.sqrt(3), abs=1e-4)
    assert found.win_rate == pytest.approx(2 / 3)
    assert not found.is_clear


@given(GAINS)
def test_the_interval_is_that_of_the_paired_t_test(gains):
    found = paired(gains)
    assert found.error == pytest.approx(stats.sem(gains), abs=1e-12)
    if np.ptp(gains) > 1e-6:  # scipy has none for equal numbers
        interval = stats.ttest_1samp(gains, 0.0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx(tuple(interval), rel=1e-6, abs=1e-9)
    else:
        assert (found.low, found.high) == pytest.approx((found.mean, found.mean), abs=1e-4)


def test_a_single_run_has_no_error_and_is_never_clear():
    found = paired([2.5])
    assert (found.mean, found.runs, found.wins) == (2.5, 1, 1.0)
    assert all(map(math.isnan, (found.error, found.low, found.high)))
    assert not found.is_clear


def test_a_tie_is_half_a_win():
    found = paired([0.0, 1.0, -1.0, 0.0])
    assert (found.wins, found.win_rate) == (2.0, 0.5)


@pytest.mark.parametrize(
    ("gains", "is_clear"), [([1, 1.1], True), ([-1, -1.1], True), ([1, 9], False)]
)
def test_an_interval_on_one_side_of_zero_is_clear(gains, is_clear):
    assert paired(gains).is_clear is is_clear


def test_how_far_a_gain_is_below_the_papers():
    found = paired([0.0, 1.0, 2.0])  # 1 ± 1 / sqrt(3)
    both = math.sqrt(1 / 3 + 0.5**2)
    assert errors_below(found, (3.0, 0.5)) == pytest.approx(2 / both)
    assert errors_below(found, (0.0, 0.5)) == pytest.approx(-1 / both)
    assert errors_below(found, (3.0, 0.0)) == pytest.approx(2 * math.sqrt(3))


def test_without_any_error_a_distance_means_nothing():
    assert math.isnan(errors_below(paired([1.0, 1.0]), (3.0, 0.0)))
    assert math.isnan(errors_below(paired([1.0]), (3.0, 0.5)))
