"""Affinity clustering: against brute force, scipy's spanning tree, and its own properties."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from coarse2fine import cluster_distances, cluster_embeddings, clustering
from coarse2fine._affinity import rounds, tiles, vectors

LINKAGES = ["single", "average", "complete"]


def random_distances(classes, seed, *, steps=None):
    """A symmetric matrix; with `steps` only so many different values, so full of ties."""
    rng = np.random.default_rng(seed)
    entries = rng.standard_normal((classes, classes))
    if steps is not None:
        entries = rng.integers(0, steps, (classes, classes)).astype(float)
    upper = np.triu(entries, 1)
    return upper + upper.T


def mixture(classes, seed, *, size=32, groups=8, noise=0.5):
    """Embeddings in groups of groups."""
    rng = np.random.default_rng(seed)
    coarse = rng.standard_normal((groups, size))
    fine = np.repeat(coarse, 4, axis=0) + noise * rng.standard_normal((4 * groups, size))
    return fine[rng.integers(0, len(fine), classes)] + noise * rng.standard_normal((classes, size))


def unstructured(classes, seed):
    return np.random.default_rng(seed).standard_normal((classes, 32))


def brute_force(distances, linkage):
    """The partitions after each round, the root left out, by loops over sets of classes."""
    combine = {"single": np.min, "average": np.mean, "complete": np.max}[linkage]
    clusters = [frozenset([k]) for k in range(len(distances))]
    levels = [set(clusters)]

    def distance(a, b):
        return combine([distances[i, j] for i in a for j in b])

    def merged(edges):
        parts = list(clusters)
        for a, b in edges:
            part_a = next(p for p in parts if a <= p)
            part_b = next(p for p in parts if b <= p)
            if part_a != part_b:
                parts = [p for p in parts if p not in (part_a, part_b)] + [part_a | part_b]
        return parts

    while len(clusters) > 1:
        edges = {}
        for a in clusters:
            b = min((c for c in clusters if c != a), key=lambda c: distance(a, c))
            edges[frozenset([a, b])] = (distance(a, b), a, b)
        chosen = sorted(edges.values(), key=lambda edge: edge[0])
        parts = merged([edge[1:] for edge in chosen])
        if len(levels) == 1 and len(parts) == 1:
            parts = merged([edge[1:] for edge in chosen[:-1]])
        if len(parts) == len(clusters):
            break
        clusters = parts
        levels.append(set(clusters))
    return [level for level in reversed(levels) if len(level) > 1]


def as_sets(level):
    return {frozenset(np.flatnonzero(level == c).tolist()) for c in range(level.max() + 1)}


def cosine(embeddings):
    return squareform(pdist(np.asarray(embeddings, np.float64), "cosine"))


def as_pairs(edges):
    return {frozenset(edge) for edge in edges.tolist()}


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("classes", [2, 3, 4, 5, 9, 17, 30])
@pytest.mark.parametrize("seed", range(3))
def test_levels_equal_brute_force(linkage, classes, seed):
    distances = random_distances(classes, seed)
    found = cluster_distances(distances, linkage)
    assert [as_sets(level) for level in found.levels] == brute_force(distances, linkage)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("keep", [0, 10**6], ids=["tiles", "matrix"])
@pytest.mark.parametrize("matrix_bytes", [0, 10**9], ids=["no matrix", "any matrix"])
@pytest.mark.parametrize("pass_share", [-1, 0.25, 10], ids=["contract", "mixed", "maxima"])
@pytest.mark.parametrize("tile", [4, 7, 1024])
@pytest.mark.parametrize(
    "make", [mixture, lambda n, s: np.random.default_rng(s).normal(size=(n, 32))]
)
def test_embeddings_in_tiles_of_any_size_equal_their_distances(
    monkeypatch, linkage, keep, matrix_bytes, pass_share, tile, make
):
    monkeypatch.setattr(clustering, "KEEP_CLASSES", keep)
    monkeypatch.setattr(vectors, "MATRIX_BYTES", matrix_bytes)
    monkeypatch.setattr(vectors, "PASS_SHARE", pass_share)
    monkeypatch.setattr(tiles, "TILE", tile)
    monkeypatch.setattr(tiles, "QUERY_TILE", tile)
    embeddings = make(90, 1)
    found = cluster_embeddings(embeddings, linkage)
    expected = cluster_distances(cosine(embeddings), linkage)
    assert [level.tolist() for level in found.levels] == [
        level.tolist() for level in expected.levels
    ]
    assert found.edges.tolist() == expected.edges.tolist()
    np.testing.assert_allclose(found.heights, expected.heights, atol=1e-12)
    assert found.rounds.tolist() == expected.rounds.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [50, 700, 2500])
@pytest.mark.parametrize(
    "make", [mixture, lambda n, s: np.random.default_rng(s).normal(size=(n, 32))]
)
def test_single_linkage_edges_are_the_minimum_spanning_tree(make, classes, dtype):
    embeddings = make(classes, 3).astype(dtype)
    distances = cosine(embeddings)
    tree = minimum_spanning_tree(distances).tocoo()
    expected = as_pairs(np.stack([tree.row, tree.col], axis=1))
    heights = scipy_linkage(squareform(distances, checks=False), "single")[:, 2]
    for found in (cluster_embeddings(embeddings), cluster_distances(distances)):
        assert as_pairs(found.edges) == expected
        np.testing.assert_allclose(np.sort(found.heights), heights, atol=1e-6)


@pytest.mark.parametrize("linkage", LINKAGES)
def test_levels_follow_from_the_edges_of_the_rounds(linkage):
    found = cluster_distances(random_distances(60, 0), linkage)
    for level in found.levels[:-1]:
        used = len(level) - (level.max() + 1)
        rounds_done = found.rounds[used - 1]
        edges = found.edges[found.rounds <= rounds_done]
        graph = np.zeros((60, 60))
        graph[tuple(edges.T)] = 1
        assert connected_components(graph, directed=False)[1].tolist() == level.tolist()


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(3, 24), st.just(5)), elements=st.floats(-5, 5)),
    st.sampled_from(LINKAGES),
)
def test_levels_are_nested_and_at_least_halve(points, linkage):
    distances = np.abs(points[:, None] - points[None]).sum(-1)
    found = cluster_distances(distances, linkage)
    counts = [level.max() + 1 for level in found.levels]
    assert counts[0] >= 2
    assert found.levels[-1].tolist() == list(range(len(points)))
    assert len(found.edges) == len(points) - 1
    for coarse, fine in pairwise(found.levels):
        for cluster in range(fine.max() + 1):
            assert len(set(coarse[fine == cluster].tolist())) == 1
    # The first-round rule may leave one class alone; every other round at least halves.
    for coarse, fine in list(pairwise(counts))[:-1]:
        assert 2 * coarse <= fine


@given(seed=st.integers(0, 10**6), linkage=st.sampled_from(LINKAGES), data=st.data())
@settings(max_examples=50)
def test_renaming_the_classes_renames_the_clusters(seed, linkage, data):
    distances = random_distances(20, seed)
    order = np.array(data.draw(st.permutations(range(20))))
    original = cluster_distances(distances, linkage)
    renamed = cluster_distances(distances[np.ix_(order, order)], linkage)
    for level, other in zip(original.levels, renamed.levels, strict=True):
        assert as_sets(level) == {frozenset(order[list(part)].tolist()) for part in as_sets(other)}


@given(seed=st.integers(0, 10**6), linkage=st.sampled_from(LINKAGES), steps=st.integers(1, 4))
@settings(max_examples=50)
def test_equal_distances_give_a_spanning_tree_and_the_same_levels_again(seed, linkage, steps):
    distances = random_distances(15, seed, steps=steps)
    found, again = cluster_distances(distances, linkage), cluster_distances(distances, linkage)
    assert [level.tolist() for level in found.levels] == [level.tolist() for level in again.levels]
    graph = np.zeros((15, 15))
    graph[tuple(found.edges.T)] = 1
    assert connected_components(graph, directed=False)[0] == 1
    if linkage == "single":
        expected = scipy_linkage(squareform(distances, checks=False), "single")[:, 2]
        np.testing.assert_array_equal(np.sort(found.heights), expected)


@pytest.mark.parametrize("classes", [10, 100, 1000])
def test_a_matrix_of_equal_distances_gives_a_useful_hierarchy(classes):
    levels = cluster_distances(np.zeros((classes, classes))).levels
    assert len(levels) >= 2
    sizes = np.bincount(levels[-2])
    assert classes / 8 <= len(sizes) <= classes / 2
    assert sizes.max() <= classes / 4 + 3


def test_only_the_order_of_the_distances_counts():
    distances = random_distances(25, 0)
    np.fill_diagonal(distances, 7)
    shifted = np.exp(distances) - 100
    expected = [level.tolist() for level in cluster_distances(distances).levels]
    assert [level.tolist() for level in cluster_distances(shifted).levels] == expected


def test_where_all_merge_in_the_first_round_the_most_expensive_edge_is_given_up():
    line = np.array([0.0, 1.0, 2.1, 3.3, 5.0])
    found = cluster_distances(np.abs(line[:, None] - line[None]))
    assert [level.tolist() for level in found.levels] == [[0, 0, 0, 0, 1], [0, 1, 2, 3, 4]]
    assert as_pairs(found.edges) == as_pairs(np.array([[0, 1], [1, 2], [2, 3], [3, 4]]))
    assert found.rounds.tolist() == [0, 0, 0, 1]


def test_two_classes_have_only_themselves():
    for found in (cluster_distances([[0, 1], [1, 0]]), cluster_embeddings([[1.0, 0], [0, 1.0]])):
        assert [level.tolist() for level in found.levels] == [[0, 1]]
        assert found.edges.tolist() == [[0, 1]]
        assert found.heights.tolist() == [1.0]


def test_identical_embeddings_are_joined_first(monkeypatch):
    rows = np.repeat(np.random.default_rng(0).normal(size=(6, 8)), 3, axis=0)
    for keep in (0, 100):
        monkeypatch.setattr(clustering, "KEEP_CLASSES", keep)
        assert cluster_embeddings(rows).levels[-2].tolist() == np.repeat(range(6), 3).tolist()


def test_a_cluster_larger_than_a_tile_is_cut_over_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    hub = np.ones((40, 16)) + 0.01 * rng.normal(size=(40, 16))
    embeddings = np.concatenate([rng.normal(size=(20, 16)), hub])
    monkeypatch.setattr(clustering, "KEEP_CLASSES", 0)
    monkeypatch.setattr(tiles, "TILE", 8)
    monkeypatch.setattr(tiles, "QUERY_TILE", 8)
    monkeypatch.setattr(vectors, "PASS_SHARE", -1)
    for linkage in ("single", "complete"):
        found = cluster_embeddings(embeddings, linkage)
        expected = cluster_distances(cosine(embeddings), linkage)
        assert [a.tolist() for a in found.levels] == [b.tolist() for b in expected.levels]
        assert found.edges.tolist() == expected.edges.tolist()


@pytest.mark.parametrize("length", range(3, 10))
def test_a_circle_made_by_rounding_is_cut(length):
    circle = np.roll(np.arange(length), -1)
    partner = np.array([*circle, 0, length + 2, length + 1])
    cost = np.linspace(0.1, 0.2, len(partner))
    joined, merged = rounds.merge(partner, cost, None, first=False)
    assert merged.tolist() == [0] * (length + 1) + [1, 1]
    assert np.flatnonzero(~joined).tolist() == [length - 1, length + 2]


def test_half_precision_and_tensors_are_taken():
    rows = mixture(40, 0).astype(np.float16)
    expected = [level.tolist() for level in cluster_embeddings(rows).levels]
    assert [a.tolist() for a in cluster_embeddings(torch.from_numpy(rows)).levels] == expected
    learned = torch.nn.Parameter(torch.from_numpy(rows).bfloat16())
    assert len(cluster_embeddings(learned).levels[-1]) == 40


def test_very_short_vectors_have_a_direction():
    rows = mixture(30, 0).astype(np.float32)
    expected = [level.tolist() for level in cluster_embeddings(rows).levels]
    tiny = rows * np.float32(1e-30)
    assert [level.tolist() for level in cluster_embeddings(tiny).levels] == expected


def test_the_input_is_left_as_it_was():
    rows, distances = mixture(30, 0), random_distances(30, 0)
    before = rows.copy(), distances.copy()
    for linkage in LINKAGES:
        cluster_embeddings(rows, linkage)
        cluster_distances(distances, linkage)
    assert np.array_equal(rows, before[0])
    assert np.array_equal(distances, before[1])


def with_entry(row, column, value):
    distances = random_distances(4, 0)
    distances[row, column] = value
    return distances


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        (np.zeros((3, 4)), r"square matrix.*Got shape \(3, 4\)"),
        (np.zeros(3), r"square matrix.*Got shape \(3,\)"),
        (np.zeros((1, 1)), "at least two classes. Got 1"),
        (np.zeros((0, 0)), "at least two classes. Got 0"),
        (with_entry(1, 2, np.nan), r"distances\[1, 2\] is nan"),
        (with_entry(3, 0, np.inf), r"distances\[3, 0\] is inf"),
        (
            with_entry(0, 3, 99.0),
            r"symmetric, but distances\[0, 3\] is 99\.0 and",
        ),
        ([[0, 1], [1]], "rectangular"),
    ],
)
def test_bad_distances_are_named(distances, message):
    with pytest.raises(ValueError, match=message):
        cluster_distances(distances)


def test_distances_symmetric_but_for_rounding_are_taken():
    distances = random_distances(20, 0).astype(np.float32)
    expected = [level.tolist() for level in cluster_distances(distances).levels]
    distances[3, 5] *= 1 + 1e-6
    assert [level.tolist() for level in cluster_distances(distances).levels] == expected


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        (np.zeros(4), r"a matrix, one row a class. Got shape \(4,\)"),
        (np.zeros((3, 0)), r"Got shape \(3, 0\)"),
        (np.ones((1, 4)), "at least two classes. Got 1"),
        ([[1.0, 2.0], [0.0, 0.0], [1.0, 0.0]], r"embeddings\[1\] is zero"),
        ([[1.0, 2.0], [3.0, np.nan]], r"embeddings\[1, 1\] is nan"),
        ([[1.0, -np.inf], [3.0, 1.0]], r"embeddings\[0, 1\] is -inf"),
        ([[1e308, 1e308], [3.0, 1.0]], r"embeddings\[0\] is too long for float64"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_embeddings_are_named(embeddings, message):
    with pytest.raises(ValueError, match=message):
        cluster_embeddings(embeddings)


def test_other_types_and_linkages_are_refused():
    with pytest.raises(TypeError, match="distances must hold real numbers. Got dtype complex128"):
        cluster_distances(np.zeros((3, 3), complex))
    with pytest.raises(ValueError, match="linkage 'ward' is not supported. Must be one of"):
        cluster_distances(np.zeros((3, 3)), "ward")
