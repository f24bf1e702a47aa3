"""The nodes of a hierarchy are its sets of classes, numbered and named."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hierarchies import hierarchies as shared_hierarchies
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import Hierarchy

RAGGED = {"animal": {"pet": ["cat", "dog"], "fox": []}, "car": []}


def by_sets(hierarchy):
    """The sets of classes, found by brute force: classes, all of them, coarse to fine."""
    count = hierarchy.num_classes
    found = [frozenset([at]) for at in range(count)] + [frozenset(range(count))]
    for level in hierarchy.levels:
        for cluster in range(int(level.max()) + 1):
            members = frozenset(np.flatnonzero(level == cluster).tolist())
            if members not in found:
                found.append(members)
    return found


@st.composite
def hierarchies(draw):
    count = draw(st.integers(2, 9))
    levels, current = [], list(range(count))
    for _ in range(draw(st.integers(1, 3))):
        most = max(current)
        merged = [draw(st.integers(0, most)) for _ in range(most + 1)]
        current = np.unique([merged[at] for at in current], return_inverse=True)[1].tolist()
        if max(current) in (0, most):
            break
        levels.insert(0, current)
    if not levels:
        levels = [[0] * (count - 1) + [1]] if count > 2 else []
    return levels, count


@given(hierarchies())
def test_nodes_are_the_sets_of_classes_from_coarse_to_fine(case):
    levels, count = case
    if not levels:
        return
    hierarchy = Hierarchy.from_levels([*levels, list(range(count))])
    nodes, sets = hierarchy.nodes, by_sets(hierarchy)
    assert [frozenset(nodes.classes(at).tolist()) for at in range(len(nodes))] == sets
    for at, own in enumerate(sets):
        above = [other for other in sets if own < other]
        expected = sets.index(min(above, key=len)) if above else -1
        assert nodes.parents[at] == expected
        assert nodes.sizes[at] == len(own)
    for at, level in enumerate(hierarchy.levels):
        for cluster, node in enumerate(nodes.of_level[at]):
            assert sets[node] == set(np.flatnonzero(level == cluster).tolist())
        for node, coarse in enumerate(nodes.at_level(at)):
            cluster = set(np.flatnonzero(level == level[min(sets[node])]).tolist())
            assert sets[coarse] == max(sets[node], cluster, key=len)


@given(hierarchies(), st.integers(0, 5))
def test_the_probability_of_a_node_is_the_sum_over_its_classes(case, seed):
    levels, count = case
    if not levels:
        return
    nodes = Hierarchy.from_levels([*levels, list(range(count))]).nodes
    classes = np.random.default_rng(seed).dirichlet(np.ones(count), size=3)
    expected = [classes[:, nodes.classes(at)].sum(axis=1) for at in range(len(nodes))]
    np.testing.assert_allclose(nodes.probabilities(classes), np.stack(expected, axis=1))


def test_first_levels_are_the_coarsest_at_which_a_node_is_a_cluster():
    nodes = Hierarchy.from_taxonomy(RAGGED).nodes
    found = dict(zip(nodes.names, nodes.first_levels.tolist(), strict=True))
    assert found == {"cat": 2, "dog": 2, "fox": 1, "car": 0, "(any)": -1, "animal": 0, "pet": 1}


def test_names_are_found_again_at_any_depth():
    hierarchy = Hierarchy.from_taxonomy(RAGGED)
    names = ["car", "pet", "dog", "animal", "(any)"]
    assert hierarchy.decode(hierarchy.encode(names)) == names
    assert hierarchy.nodes.ancestors(hierarchy.encode(["dog"])[0]) == (6, 5, 4)


def test_a_cluster_of_one_class_is_the_class():
    hierarchy = Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "vehicle": {"wheels": ["car"]}})
    assert hierarchy.encode(["vehicle", "car"]).tolist() == [2, 2]


def test_a_name_that_a_class_and_a_cluster_share_means_the_class():
    hierarchy = Hierarchy.from_taxonomy({"apple": ["apple", "pippin"], "car": ["car", "bus"]})
    assert hierarchy.encode(["apple"]).tolist() == [0]
    assert hierarchy.nodes.names[5] == "apple (level 0)"
    assert hierarchy.encode(["apple (level 0)"]).tolist() == [5]


def test_clusters_of_one_name_must_be_told_apart():
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]], ["a", "b", "c", "d"], [["other", "other"]])
    with pytest.raises(ValueError, match=r"'other' names several clusters. Say which: 'other \("):
        hierarchy.encode(["other"])
    assert len(set(hierarchy.nodes.names)) == 7
    assert hierarchy.encode(hierarchy.nodes.names).tolist() == list(range(7))


CHAINS = {"life": {"animal": {"pet": ["cat", "dog"]}, "plant": {"tree": {"oak": ["red oak"]}}}}


def test_groups_with_the_same_classes_are_names_of_one_node():
    hierarchy = Hierarchy.from_taxonomy(CHAINS)
    names = ["life", "animal", "pet", "plant", "tree", "oak", "red oak"]
    assert hierarchy.encode(names).tolist() == [3, 4, 4, 2, 2, 2, 2]
    assert hierarchy.decode([3, 4, 2]) == ["(any)", "animal", "red oak"]


def test_further_names_stay_known_wherever_the_hierarchy_goes(tmp_path):
    hierarchy = Hierarchy.from_taxonomy(CHAINS)
    hierarchy.save(tmp_path / "tree.json")
    hierarchy.save(tmp_path / "tree.safetensors")
    ordered = hierarchy.for_classes(["red oak", "dog", "cat"])
    for same in (
        Hierarchy.load(tmp_path / "tree.json"),
        Hierarchy.load(tmp_path / "tree.safetensors"),
        pickle.loads(pickle.dumps(hierarchy)),
        copy.deepcopy(hierarchy),
        hierarchy.keep_levels([0]),
    ):
        assert same == hierarchy
        assert hash(same) == hash(hierarchy)
        assert same.encode(["life", "pet", "tree"]).tolist() == [3, 4, 2]
    assert ordered.encode(["life", "pet", "tree"]).tolist() == [3, 4, 0]
    assert hierarchy != Hierarchy(
        hierarchy.levels, hierarchy.class_names, hierarchy.cluster_names, {"pet": "animal"}
    )
    with pytest.raises(TypeError):
        hierarchy.other_names["pet"] = "plant"


def test_a_further_name_of_several_groups_is_left_out():
    tree = {"a": {"other": ["x", "y"]}, "b": {"other": ["v", "w"]}}
    with pytest.raises(ValueError, match="no class or cluster 'other'"):
        Hierarchy.from_taxonomy(tree).encode(["other"])


@pytest.mark.parametrize("names", [["pet"], {"pet": 3}, "pet"])
def test_further_names_are_checked(names):
    content = {**Hierarchy.from_taxonomy(CHAINS).to_dict(), "other_names": names}
    with pytest.raises(TypeError, match="other_names must "):
        Hierarchy.from_dict(content)


def test_classes_of_one_name_cannot_be_meant_by_it():
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], ["cat", "dog", "cat"])
    assert hierarchy.encode(["dog"]).tolist() == [1]
    with pytest.raises(ValueError, match="'cat' names several classes, 0, 2; call them diff"):
        hierarchy.encode(["cat"])


def test_without_names_nodes_are_named_by_their_place():
    nodes = Hierarchy.from_levels([[0, 0, 1, 1]]).nodes
    assert nodes.names == ("0", "1", "2", "3", "(any)", "level 0 cluster 0", "level 0 cluster 1")


def test_an_unknown_name_is_said_with_the_nearest():
    with pytest.raises(ValueError, match=r"no class or cluster 'aminal'. Did you mean 'animal'\?"):
        Hierarchy.from_taxonomy(RAGGED).encode(["aminal"])


@pytest.mark.parametrize(("given", "message"), [("cat", "a sequence"), ([3], "must be a string")])
def test_names_must_be_strings(given, message):
    with pytest.raises(TypeError, match=message):
        Hierarchy.from_taxonomy(RAGGED).encode(given)


def test_a_number_that_is_no_node_is_refused():
    with pytest.raises(ValueError, match=r"nodes must lie in 0..6. Got 7 at position 1."):
        Hierarchy.from_taxonomy(RAGGED).decode([0, 7])
    for nodes, shape in ((3, r"\(\)"), ([[0, 1]], r"\(1, 2\)")):
        with pytest.raises(ValueError, match=rf"nodes must have shape \(N\)\. Got {shape}\."):
            Hierarchy.from_taxonomy(RAGGED).decode(nodes)


@given(shared_hierarchies(), st.integers(0, 99))
def test_the_smallest_node_of_some_classes(hierarchy, seed):
    nodes, random = hierarchy.nodes, np.random.default_rng(seed)
    some = random.choice(nodes.root, random.integers(1, nodes.root + 1), replace=False).tolist()
    holds = [node for node in range(len(nodes)) if {*some} <= {*nodes.classes(node).tolist()}]
    assert nodes.of_classes(some) == min(holds, key=lambda node: nodes.sizes[node])
