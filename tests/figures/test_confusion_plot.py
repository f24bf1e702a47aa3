"""What is taken for what, as a picture."""

import json

import numpy as np
import pytest

from coarse2fine import confusion_matrix
from coarse2fine._hierarchy.nesting import edges, nested_order
from coarse2fine.figures.confusion import ConfusionPair
from coarse2fine.figures.heatmap import plot
from coarse2fine.figures.values import count_confusions

COARSE = np.array([0, 1, 0, 2, 1])
FINE = np.array([0, 1, 2, 3, 4])
ORDER = nested_order([COARSE], 5)  # 0 2 1 4 3
EDGES = [edges(COARSE, ORDER), edges(FINE, ORDER)]


def confusion(before, after, order, edges, names=None, method="mine"):
    return plot(ConfusionPair(method, names, np.array(order), edges, before, after))


def predictions(rng, count=5, samples=400):
    targets = rng.integers(count, size=samples)
    return np.where(rng.random(samples) < 0.5, targets, rng.integers(count, size=samples)), targets


def dense(trace, count):
    """The heatmap as a matrix, 0 where it has no cell."""
    matrix = np.zeros((count, count))
    assert len(set(zip(trace.y.tolist(), trace.x.tolist(), strict=True))) == len(trace.z)
    matrix[trace.y, trace.x] = trace.z
    return matrix


def rates(predicted, targets, order):
    counts = confusion_matrix(predicted, targets, len(order))[np.ix_(order, order)]
    return 100 * counts / counts.sum(axis=1, keepdims=True)


def test_the_matrices_are_percentages_in_the_order_of_the_hierarchy(rng):
    (old, targets), (new, others) = predictions(rng), predictions(rng)
    before, after = count_confusions(old, targets, 5), count_confusions(new, others, 5)
    figure = confusion(before, after, ORDER, EDGES)
    json.loads(figure.to_json())
    first, second, change = (dense(trace, 5) for trace in figure.data[:3])
    np.testing.assert_allclose(first, rates(old, targets, ORDER), rtol=1e-5)
    np.testing.assert_allclose(second, rates(new, others, ORDER), rtol=1e-5)
    worse = np.where(np.eye(5), first - second, second - first)  # to be right less often, too
    np.testing.assert_allclose(change, worse, atol=1e-4)
    trace = figure.data[2]
    cell = np.flatnonzero((trace.x == 0) & (trace.y == 0)).item()
    assert trace.text[cell] == f"{second[0, 0] - first[0, 0]:+.1f}"


def test_the_buttons_show_one_matrix_and_always_the_outlines():
    counts = count_confusions([0, 1, 2, 3, 3], [0, 1, 2, 3, 4], 5)
    figure = confusion(counts, counts, ORDER, EDGES, method="<b>")
    (menu,) = figure.layout.updatemenus
    assert [button.label for button in menu.buttons] == ["baseline", "&lt;b&gt;", "difference"]
    shown = [button.args[0]["visible"] for button in menu.buttons]
    assert shown == [
        [True, False, False, True, True],
        [False, True, False, True, True],
        [False, False, True, True, True],
    ]
    assert [trace.visible for trace in figure.data] == shown[menu.active] == shown[1]


def test_one_matrix_alone_has_no_buttons():
    figure = confusion(None, count_confusions([0, 1, 1], [0, 0, 1], 2), [1, 0], [])
    (trace,) = figure.data
    assert dense(trace, 2).tolist() == [[100, 0], [50, 50]]  # class 1 comes first
    assert not figure.layout.updatemenus


def test_the_two_coarsest_levels_are_outlined_each_by_one_line():
    counts = count_confusions(FINE, FINE, 5)
    figure = confusion(None, counts, ORDER, [*EDGES, EDGES[1]])
    first, second = figure.data[1:]
    assert first.x[:6] == (-0.5, 1.5, 1.5, -0.5, -0.5, None)
    assert first.y[:6] == (-0.5, -0.5, 1.5, 1.5, -0.5, None)
    assert list(first.x[6::6]) == [1.5, 3.5]
    assert (len(first.x), len(second.x)) == (3 * 6, 5 * 6)


def test_every_place_has_a_cell_even_of_classes_without_samples_or_predictions():
    """As plotly widens the neighbours of a row or column that it does not know of."""
    trace = confusion(None, count_confusions([0, 0], [0, 2], 4), range(4), []).data[0]
    assert set(trace.x) == set(trace.y) == {0, 1, 2, 3}
    own = {int(x): float(z) for x, y, z in zip(trace.x, trace.y, trace.z, strict=True) if x == y}
    assert (own[0], own[2]) == (100, 0)
    assert np.isnan([own[1], own[3]]).all()


def test_colours_end_where_only_the_most_frequent_mistakes_are_beyond():
    """Of 100 classes, one is always taken for the next, the others one time in ten."""
    targets = np.repeat(np.arange(100), 10)
    guesses = targets.copy()
    guesses[::10] = (guesses[::10] + 1) % 100
    guesses[:10] = 1
    trace = confusion(None, count_confusions(guesses, targets, 100), range(100), []).data[0]
    assert trace.z.max() == 100
    assert (trace.zmin, trace.zmax) == (0, 10)


def test_without_mistakes_there_is_still_a_scale():
    figure = confusion(*[count_confusions([0, 1], [0, 1], 2)] * 2, [0, 1], [])
    assert [trace.zmax for trace in figure.data] == [1, 1, 1]


def test_names_are_those_of_the_places_and_are_not_obeyed():
    names = ["<script>", "b", "c", "d", " "]
    figure = confusion(None, count_confusions(FINE, FINE, 5), ORDER, EDGES, names)
    expected = {"0": "&lt;script&gt;", "1": "c", "2": "b", "3": "“ ”", "4": "d"}
    assert figure.layout.xaxis.labelalias == figure.layout.yaxis.labelalias == expected
    assert "script" not in figure.data[0].hovertemplate
    unnamed = confusion(None, count_confusions(FINE, FINE, 5), ORDER, EDGES)
    assert list(unnamed.layout.xaxis.labelalias.values()) == ["0", "2", "1", "4", "3"]


def test_a_thousand_classes_are_small_and_each_is_seen(rng):
    targets = np.repeat(np.arange(1000), 50)
    guesses = np.where(rng.random(50_000) < 0.6, targets, rng.integers(1000, size=50_000))
    counts = count_confusions(guesses, targets, 1000)
    figure = confusion(counts, counts, range(1000), [])
    assert len(figure.to_json()) < 4_000_000
    kinds = [trace.type for trace in figure.data]
    assert kinds == ["heatmap"] * 3 + ["scattergl"] * 3
    for heatmap, dots in zip(figure.data[:3], figure.data[3:], strict=True):
        np.testing.assert_array_equal(dots.marker.color, heatmap.z)
        assert dots.visible == heatmap.visible
    assert figure.layout.updatemenus[0].buttons[0].args[0]["visible"] == [True, False, False] * 2


def test_too_many_classes_are_refused_with_advice():
    many = np.arange(2001)
    with pytest.raises(ValueError, match="2001 classes cannot be .* a coarser level"):
        confusion(None, count_confusions(many, many, 2001), many, [])


@pytest.mark.parametrize(("before", "order"), [(3, 2), (2, 3)])
def test_matrices_of_other_classes_are_refused(before, order):
    counts = count_confusions([0], [0], 2)
    other = count_confusions([0], [0], before)
    with pytest.raises(ValueError, match=r"of the same classes. Got \[2, 3\]"):
        confusion(other, counts, range(order), [])
