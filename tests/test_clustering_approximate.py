"""Clustering by nearest neighbours: how near it comes to the exact one, and that it says so."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hierarchies import assert_valid
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import Hierarchy, cluster_embeddings
from coarse2fine._affinity import neighbours
from coarse2fine._util import memory
from coarse2fine.agreement import adjusted_rand_index, level_agreements
from coarse2fine.runs.hierarchies import read_hierarchy

pytest.importorskip("faiss", reason="faiss is not installed")


def mixture(classes: int, *, size: int = 32, noise: float = 0.4) -> np.ndarray:
    """Embeddings in groups of about 100, and in these of about 10."""
    rng = np.random.default_rng(0)
    coarse = rng.standard_normal((classes // 100, size))
    fine = np.repeat(coarse, 10, axis=0)
    fine += noise * rng.standard_normal(fine.shape)
    rows = fine[rng.integers(0, len(fine), classes)]
    return np.float32(rows + noise * rng.standard_normal(rows.shape))


@pytest.fixture
def in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few classes be looked up as many are."""
    monkeypatch.setattr(neighbours, "COMPARE_ALL", 0)


@given(count=st.integers(2, 40), seed=st.integers(0, 99))
def test_it_is_exact_where_faiss_compares_all_classes(count: int, seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((count, 5))
    exact, found = cluster_embeddings(rows), cluster_embeddings(rows, approximate=True)
    for one, other in zip(exact.levels, found.levels, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(exact.edges, found.edges)
    np.testing.assert_array_equal(exact.rounds, found.rounds)
    np.testing.assert_allclose(exact.heights, found.heights, atol=1e-6)


def test_it_stays_exact_where_clusters_are_larger_than_what_is_asked_for() -> None:
    rows = mixture(3000)
    assert level_agreements(
        Hierarchy.from_embeddings(rows), Hierarchy.from_embeddings(rows, approximate=True)
    ) == (1.0,) * (len(cluster_embeddings(rows).levels) - 1)


@pytest.mark.usefixtures("in_cells")
def test_in_cells_it_is_nearly_the_exact_one() -> None:
    rows = mixture(4000)
    exact, found = cluster_embeddings(rows), cluster_embeddings(rows, approximate=True)
    assert_valid(Hierarchy.from_levels(found.levels))
    assert len(found.edges) == len(rows) - 1
    assert sorted(np.unique(found.edges)) == list(range(len(rows)))  # a tree of all
    assert adjusted_rand_index(exact.levels[-2], found.levels[-2]) > 0.95
    again = cluster_embeddings(rows, approximate=True)
    np.testing.assert_array_equal(found.edges, again.edges)


@pytest.mark.usefixtures("in_cells")
def test_groups_that_faiss_leaves_apart_are_linked_by_their_closest_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "PROBED_CELLS", 1)
    rng = np.random.default_rng(1)
    centres = np.eye(4, 8)
    rows = np.repeat(centres, 300, axis=0) + 0.02 * rng.standard_normal((1200, 8))
    exact, found = cluster_embeddings(rows), cluster_embeddings(rows, approximate=True)
    groups = np.repeat(np.arange(4), 300)
    links = {tuple(edge) for edge in exact.edges.tolist() if len(set(groups[edge])) == 2}
    assert len(links) == 3
    assert links <= {tuple(edge) for edge in found.edges.tolist()}


@pytest.mark.parametrize("rows", [np.ones((500, 4)), np.repeat(np.eye(5), 60, axis=0)])
def test_equal_classes_are_clustered_all_the_same(rows: np.ndarray) -> None:
    found = cluster_embeddings(rows, approximate=True)
    assert_valid(Hierarchy.from_levels(found.levels))


def test_memory_that_does_not_suffice_is_told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 2**16)
    with pytest.raises(MemoryError, match="^approximate clustering of 300 classes .* missing"):
        cluster_embeddings(mixture(300), approximate=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_heights_are_in_the_dtype_of_the_exact_ones(dtype: Any) -> None:
    rows = mixture(300).astype(dtype)
    heights = [cluster_embeddings(rows, approximate=how).heights for how in (False, True)]
    assert heights[0].dtype == heights[1].dtype


def test_real_heads_are_clustered_as_exactly() -> None:
    folder = os.environ.get("COARSE2FINE_DATA")
    heads = sorted(Path(folder, "heads").glob("*.npz")) if folder else []
    if not heads:
        pytest.skip("COARSE2FINE_DATA is not set")
    for path in heads:
        with np.load(path, allow_pickle=False) as content:
            weights = content["W"].astype(np.float32)
        exact = Hierarchy.from_embeddings(weights)
        found = Hierarchy.from_embeddings(weights, approximate=True)
        assert min(level_agreements(exact, found)) > 0.99


# -------------------------------------------------------------------------- that it is approximate


@pytest.fixture
def approximate() -> Hierarchy:
    return Hierarchy.from_embeddings(mixture(300), approximate=True)


def test_the_clustering_and_the_hierarchy_say_so(approximate: Hierarchy) -> None:
    assert cluster_embeddings(mixture(300), approximate=True).approximate
    assert approximate.approximate
    assert repr(approximate).endswith(", approximate=True)")
    assert str(approximate).startswith("300 classes, by approximate clustering: ")
    exact = Hierarchy.from_embeddings(mixture(300))
    assert not exact.approximate
    assert exact == approximate  # a value is its levels and names
    assert "approximate" not in exact.to_dict()


def test_what_is_made_of_it_says_so_too(approximate: Hierarchy, tmp_path: Path) -> None:
    for name in ("h.json", "h.safetensors"):
        approximate.save(tmp_path / name)
        assert Hierarchy.load(tmp_path / name).approximate
    names = [str(at) for at in range(300)]
    made = [approximate.max_levels(2), approximate.for_classes(names)]
    made += [pickle.loads(pickle.dumps(approximate)), Hierarchy.from_dict(approximate.to_dict())]
    assert all(hierarchy.approximate for hierarchy in made)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_a_file_that_says_anything_else_is_refused(tmp_path: Path, value: Any) -> None:
    content = {**Hierarchy.from_levels([[0, 0, 1]]).to_dict(), "approximate": value}
    (tmp_path / "h.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r'h\.json: "approximate" must be true or false'):
        Hierarchy.load(tmp_path / "h.json")


def test_a_matrix_file_is_clustered_approximately(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", mixture(300))
    assert read_hierarchy(tmp_path / "rows.npy", approximate=True).approximate


def test_only_what_can_be_approximate_may_be(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="by single linkage only. Got 'average'"):
        cluster_embeddings(mixture(300), "average", approximate=True)
    np.save(tmp_path / "rows.npy", mixture(300))
    with pytest.raises(ValueError, match="for the metric 'embedding'. Got 'random'"):
        read_hierarchy(tmp_path / "rows.npy", metric="random", approximate=True)
    np.save(tmp_path / "distances.npy", np.ones((4, 4)))
    with pytest.raises(ValueError, match=r"distances\.npy has no embeddings"):
        read_hierarchy(tmp_path / "distances.npy", approximate=True)
    Hierarchy.from_levels([[0, 0, 1]]).save(tmp_path / "h.json")
    with pytest.raises(ValueError, match=r"h\.json has no embeddings"):
        read_hierarchy(tmp_path / "h.json", approximate=True)
