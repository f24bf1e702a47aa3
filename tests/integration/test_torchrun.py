"""Several processes train as one would, and the death of one ends the run with an error."""

import subprocess
import sys
from pathlib import Path

import killing
import pytest

from coarse2fine import Hierarchy

SCRIPT = Path(__file__).with_name("two_processes.py")
ENCODERS = Path(__file__).with_name("two_encoders.py")


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
