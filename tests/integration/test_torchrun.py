"""Several processes train as one would, and the death of one ends the run with an error."""

import subprocess
import sys
from pathlib import Path

import killing
import numpy as np
import pytest

from coarse2fine import Hierarchy, cluster_embeddings

SCRIPT = Path(__file__).with_name("two_processes.py")
ENCODERS = Path(__file__).with_name("two_encoders.py")
CLUSTERINGS = Path(__file__).with_name("two_clusterings.py")


def torchrun(processes, *arguments, script=SCRIPT):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launcher, f"--nproc_per_node={processes}", str(script), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=killing.PATIENCE, check=False
    )


def numbers(value):
    """All numbers in a nest of lists and dicts, in order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, int | float) else []


def assert_same_within_rounding(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert numbers(one[name]) == pytest.approx(numbers(other[name]), abs=1e-4), name


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    out = tmp_path_factory.mktemp("two")
    finished = torchrun(2, out)
    assert finished.returncode == 0, finished.stderr
    return killing.outcome(out)


@pytest.mark.slow
def test_two_processes_give_the_result_of_one(two, tmp_path):
    finished = torchrun(1, tmp_path)
    assert finished.returncode == 0, finished.stderr
    one = killing.outcome(tmp_path)
    assert_same_within_rounding(one, two)
    learned = one["seed-0/dp-li/checkpoint/method.safetensors"]["instances.values"]
    assert max(learned) - min(learned) > 0.1  # far more than rounding


@pytest.mark.slow
def test_two_processes_make_the_hierarchy_of_one(tmp_path):
    for processes in (1, 2):
        finished = torchrun(processes, tmp_path / str(processes), script=ENCODERS)
        assert finished.returncode == 0, finished.stderr
    for place in ("features/seed-0/continuous", "short/seed-0/continuous"):
        one, two = (Hierarchy.load(tmp_path / n / place / "hierarchy.json") for n in "12")
        assert one == two


@pytest.mark.slow
def test_a_process_that_dies_ends_the_run_and_it_resumes(two, tmp_path):
    died = torchrun(2, tmp_path, 20)  # in the second epoch of dp-li
    assert died.returncode != 0
    assert "Signal 9" in died.stderr
    assert not (tmp_path / "result.json").exists()
    assert torchrun(2, tmp_path).returncode == 0
    assert killing.outcome(tmp_path) == two


@pytest.fixture
def embeddings(tmp_path):
    rows = np.random.default_rng(0).standard_normal((5000, 32), dtype=np.float32)
    np.save(tmp_path / "rows.npy", rows)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_a_clustering_by_several_processes_is_that_of_one_to_the_bit(
    tmp_path, embeddings, processes
):
    assert torchrun(processes, tmp_path, script=CLUSTERINGS).returncode == 0
    alone = cluster_embeddings(embeddings)
    for rank in range(processes):
        with np.load(tmp_path / f"{rank}.npz") as found:
            for number, level in enumerate(alone.levels):
                np.testing.assert_array_equal(found[f"arr_{number}"], level)
            np.testing.assert_array_equal(found["edges"], alone.edges)
            np.testing.assert_array_equal(found["heights"], alone.heights)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "ranks", "message"),
    [
        ("differ", [0, 1], "ValueError: the 2 processes of torchrun must cluster the same embed"),
        ("die", [0], "RunError: another of the 2 processes that cluster has died, or has not"),
        ("fail", [0, 1], "MemoryError: no room"),
    ],
)
@pytest.mark.usefixtures("embeddings")
def test_what_goes_wrong_in_a_clustering_is_told_by_all_processes_left(
    tmp_path, how, ranks, message
):
    assert torchrun(2, tmp_path, how, script=CLUSTERINGS).returncode != 0
    for rank in ranks:
        assert (tmp_path / f"error-{rank}.txt").read_text().startswith(message)


@pytest.mark.slow
def test_c2f_hierarchy_shows_and_saves_once_for_all_processes(tmp_path, embeddings):
    saved = tmp_path / "h.safetensors"
    words = ["hierarchy", tmp_path / "rows.npy", "--executor", "torchrun", "--save", saved]
    found = torchrun(2, "coarse2fine.cli", *words, script="-m")
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("5000 classes:") == 1
    assert Hierarchy.load(saved) == Hierarchy.from_embeddings(embeddings)
