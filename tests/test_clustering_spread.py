"""Exact clustering by several processes: the same to the bit, whoever dies, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coarse2fine import Clustering, Hierarchy, RunError, cluster_embeddings
from coarse2fine._affinity import spread as spreading
from coarse2fine._affinity import vectors
from coarse2fine._util import memory
from coarse2fine.executors import Workers
from coarse2fine.runs.hierarchies import read_hierarchy

CLASSES = 3000  # more than one tile


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((CLASSES // 20, 8), dtype=np.float32), 20, axis=0)
    return centres + 0.5 * rng.standard_normal(centres.shape, dtype=np.float32)


def assert_same_to_the_bit(one: Clustering, other: Clustering) -> None:
    for a, b in zip(one.levels, other.levels, strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("edges", "heights", "rounds"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


class Dying(ThreadPoolExecutor):
    """Threads, of which every so many-th task ends as if its worker had died."""

    def __init__(self, every: int, error: BaseException | None = None) -> None:
        super().__init__(2)
        self.every, self.error, self.submitted = every, error or BrokenProcessPool(), 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        if self.submitted % self.every:
            return super().submit(function, *args, **kwargs)
        future: Future[Any] = Future()
        if isinstance(self.error, BrokenProcessPool):
            future.set_exception(self.error)
        else:
            future.cancel()
            future.set_running_or_notify_cancel()
        return future


@pytest.fixture
def by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Dying], list[Any]]:
    """A function that lets the clusterings to come be computed by an executor."""

    def use(executor: Dying) -> list[Any]:
        shared: list[Any] = []

        def share(part: Any) -> Any:
            shared.append(part)
            return part

        found = Workers(executor, 2, None, BrokenProcessPool, share=share)
        monkeypatch.setattr(spreading, "workers", lambda _: nullcontext(found))
        return shared

    return use


@pytest.mark.parametrize("linkage", ["single", "average", "complete"])
@pytest.mark.parametrize("pass_share", [0.25, -1])  # the second contracts after a round
def test_workers_compute_the_same_to_the_bit(
    by: Any, monkeypatch: pytest.MonkeyPatch, linkage: Any, pass_share: float
) -> None:
    monkeypatch.setattr(vectors, "PASS_SHARE", pass_share)
    executor = Dying(1000)
    by(executor)
    found = cluster_embeddings(rows(), linkage, executor="processes:2")
    assert executor.submitted >= 6  # each two of the three tiles in a row
    assert_same_to_the_bit(found, cluster_embeddings(rows(), linkage))


@pytest.mark.parametrize("error", [BrokenProcessPool(), None])
def test_a_lost_workers_block_is_computed_again(by: Any, error: Any) -> None:
    executor = Dying(3, error)
    shared = by(executor)
    found = cluster_embeddings(rows(), executor="processes:2")
    assert executor.submitted > 6
    assert len(shared) > 3  # what only the lost worker had is sent again
    assert_same_to_the_bit(found, cluster_embeddings(rows()))


def test_workers_that_die_again_and_again_end_it_with_one_sentence(by: Any) -> None:
    by(Dying(1))
    with pytest.raises(RunError, match=r"died 3 times; is there enough memory\?$"):
        cluster_embeddings(rows(), executor="processes:2")


def test_a_block_that_cannot_be_computed_is_told(by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    by(Dying(1000))
    monkeypatch.setattr("coarse2fine._affinity.maxima.block_maxima", fail)
    with pytest.raises(RunError, match="a worker could not compute a block of distances: no room"):
        cluster_embeddings(rows(), executor="processes:2")


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["single", "average", "complete"])
def test_processes_of_this_machine_compute_the_same_to_the_bit(linkage: Any) -> None:
    found = cluster_embeddings(rows(), linkage, executor="processes:2")
    assert_same_to_the_bit(found, cluster_embeddings(rows(), linkage))


# ------------------------------------------------------------------------------------ bad input


def test_a_wrong_executor_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="executor must be processes, processes:N, or the address"):
        cluster_embeddings(rows(), executor="threads")
    with pytest.raises(ValueError, match="executor is for exact clustering"):
        cluster_embeddings(rows(), approximate=True, executor="processes:2")
    with pytest.raises(ValueError, match="an executor is for the metric 'embedding'"):
        read_hierarchy(tmp_path / "x.npy", metric="random", executor="processes:2")
    for given in (Hierarchy.from_levels([[0, 0, 1]]), {"a": ["b"], "c": []}, np.ones((3, 3))):
        with pytest.raises(ValueError, match="has no embeddings, which an executor is for"):
            read_hierarchy(given, executor="processes:2")


def test_torchrun_is_named_where_it_has_started_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match=r"start it by torchrun --nproc_per_node N\.$"):
        cluster_embeddings(rows(), executor="torchrun")


@pytest.mark.parametrize("linkage", ["single", "average"])
def test_memory_that_does_not_suffice_is_told_first(
    monkeypatch: pytest.MonkeyPatch, linkage: Any
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 2**18)
    lacking = (
        r"^exact clustering of 3,000 classes takes \S+ GB of memory, of which \S+ GB are missing, "
        r"as 0.00 GB are free; take approximate=True, or another machine.$"
    )
    with pytest.raises(MemoryError, match=lacking):
        cluster_embeddings(rows(), linkage)


def test_the_matrix_of_clusters_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 2**20)
    with pytest.raises(MemoryError, match="the matrix of the .* clusters of the first round takes"):
        cluster_embeddings(rows(), "complete")
