"""Several processes train as one would, and the death of one ends the run with an error."""

import subprocess
import sys
from pathlib import Path

import killing
import pytest

SCRIPT = Path(__file__).with_name("two_processes.py")


def torchrun(processes, *arguments):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launcher, f"--nproc_per_node={processes}", str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


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


def test_two_processes_give_the_result_of_one(tmp_path):
    for processes in (1, 2):
        finished = torchrun(processes, tmp_path / str(processes))
        assert finished.returncode == 0, finished.stderr
    one, two = (killing.outcome(tmp_path / name) for name in ("1", "2"))
    assert_same_within_rounding(one, two)


def test_a_process_that_dies_ends_the_run_and_it_resumes(tmp_path):
    assert torchrun(2, tmp_path / "whole").returncode == 0
    died = torchrun(2, tmp_path / "torn", 10)
    assert died.returncode != 0
    assert "Signal 9" in died.stderr
    assert not (tmp_path / "torn" / "result.json").exists()
    assert torchrun(2, tmp_path / "torn").returncode == 0
    assert killing.outcome(tmp_path / "torn") == killing.outcome(tmp_path / "whole")
