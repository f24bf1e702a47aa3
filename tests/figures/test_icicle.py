"""A hierarchy to zoom into."""

import json
import time

import numpy as np
import pytest

from coarse2fine import Hierarchy
from coarse2fine.figures.icicle import plot as icicle

NAMES = ["cat", "dog", "fox", "car", "bus", "van", "sun"]
LEVELS = [[0, 0, 0, 1, 1, 1, 2], [0, 0, 1, 2, 2, 2, 3]]
HIERARCHY = Hierarchy.from_levels(LEVELS, NAMES)


def drawn(figure):
    """The one trace, as plain values."""
    json.loads(figure.to_json())
    return figure.data[0]


def by_id(trace, what):
    return dict(zip(trace.ids, what, strict=True))


def test_sectors_are_clusters_by_the_coarsest_level_that_has_them():
    trace = drawn(HIERARCHY.plot())
    assert by_id(trace, trace.parents) == {
        "all": "",
        "0:0": "all",
        "0:1": "all",
        "0:2": "all",  # the sun, at all levels
        "1:0": "0:0",
        "1:1": "0:0",  # the fox, at two
        "2:0": "1:0",
        "2:1": "1:0",
        "2:3": "0:1",  # car, bus and van do not split at level 1
        "2:4": "0:1",
        "2:5": "0:1",
    }


def test_sectors_are_as_large_as_they_have_classes_and_filled_by_what_is_in_them(rng):
    fine = rng.integers(30, size=200)
    fine = np.unique(fine, return_inverse=True)[1]
    coarse = rng.integers(5, size=fine.max() + 1)
    coarse = np.unique(coarse, return_inverse=True)[1][fine]
    trace = drawn(icicle([coarse, fine, np.arange(200)]))
    sizes, parents = by_id(trace, trace.values), by_id(trace, trace.parents)
    levels = [coarse, fine, np.arange(200)]
    for sector, size in sizes.items():
        if sector != "all":
            level, cluster = map(int, sector.split(":"))
            assert size == np.count_nonzero(levels[level] == cluster)
        inside = [sizes[other] for other, parent in parents.items() if parent == sector]
        assert not inside or sum(inside) == size


def test_clusters_are_called_by_their_name_else_by_their_classes_else_by_their_size():
    names = [["animals", "", "sun"], ["pets", "wild", "", "star"]]
    trace = drawn(Hierarchy.from_levels(LEVELS, NAMES, names).plot())
    labels = by_id(trace, trace.labels)
    assert labels["0:0"] == "animals"
    assert labels["0:1"] == "car, bus, van"
    assert labels["0:2"] == "sun"
    assert labels["1:1"] == "wild: fox"
    many = Hierarchy.from_levels([[0] * 5 + [1] * 7], [f"c{i}" for i in range(12)])
    labels = by_id(many.plot().data[0], many.plot().data[0].labels)
    assert (labels["0:0"], labels["0:1"]) == ("c0, c1, c2…", "c5, c6, c7…")
    nameless = Hierarchy.from_levels([[0] * 5 + [1] * 7]).plot().data[0]
    assert by_id(nameless, nameless.labels)["0:1"] == "7 classes"


def test_what_lies_in_a_coarsest_cluster_has_its_colour():
    trace = drawn(HIERARCHY.plot())
    colours, parents = by_id(trace, trace.marker.colors), by_id(trace, trace.parents)
    assert len({colours["0:0"], colours["0:1"], colours["0:2"], colours["all"]}) == 4
    inner = [(id, parent) for id, parent in parents.items() if parent not in ("", "all")]
    assert all(colours[id] == colours[parent] for id, parent in inner)


def test_values_are_coloured_on_a_scale_around_nothing():
    values = [[2.0, np.nan, -1.0], [0.0, 1.0, 9.0, 9.0], [3.0, 4.0, 9.0, -5.0, 1.0, 0.0, 9.0]]
    figure = icicle(HIERARCHY.levels, NAMES, values=values, value_name="change <1>")
    trace = drawn(figure)
    colours, texts = by_id(trace, trace.marker.colors), by_id(trace, trace.hovertext)
    assert (colours["0:0"], colours["0:2"], colours["1:1"], colours["2:3"]) == (2, -1, 1, -5)
    assert isinstance(colours["0:1"], str)  # a grey, as it has no value
    assert trace.marker.cmin == -trace.marker.cmax
    assert 4 < trace.marker.cmax <= 5  # of what is drawn, the 9s being clusters seen before
    assert texts["2:3"] == "<b>car</b><br>change &lt;1&gt;: -5.0"
    assert texts["0:1"].endswith("<br>change &lt;1&gt;: none")


def test_without_any_value_there_is_still_a_scale():
    trace = drawn(icicle(HIERARCHY.levels, values=[np.full(n, np.nan) for n in (3, 4, 7)]))
    assert trace.marker.cmax == 1


def test_a_thousand_classes_take_well_under_a_second(rng):
    hierarchy = Hierarchy.from_embeddings(rng.normal(size=(1000, 8)))
    hierarchy.plot()  # plotly is imported by now
    started = time.perf_counter()
    hierarchy.plot()
    assert time.perf_counter() - started < 1


def test_levels_of_more_than_five_thousand_clusters_are_left_out():
    classes = np.arange(20_000)
    trace = drawn(icicle([classes // 8000, classes // 10, classes]))
    assert {id.split(":")[0] for id in trace.ids} == {"all", "0", "1"}
    assert len(trace.ids) == 1 + 3 + 2000


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "<b>", "&lt;", "a\nb", "\u202eb", " "]
)
def test_names_are_shown_and_not_obeyed(name):
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], [name, "x", "y"], [[name, "z"]])
    trace = drawn(hierarchy.plot())
    labels, texts = by_id(trace, trace.labels), by_id(trace, trace.hovertext)
    for text in (labels["0:0"], labels["1:0"], texts["1:0"][3:-4]):
        assert not {"<", ">", "\n", "\u202e"} & set(text)
        assert text.strip()
        assert "&lt" not in text.replace("&lt;", "").replace("&amp;lt;", "")
    assert texts["0:0"].count("<") == 5  # <b>, </b>, and three times <br>


def test_more_clusters_than_can_be_looked_at_are_refused():
    many = Hierarchy.from_levels([np.arange(10_002) // 2])
    with pytest.raises(ValueError, match="5001 clusters at the coarsest level cannot be looked at"):
        many.plot()
