"""The benchmark that trains a divided head on a known tree, with few classes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "end_to_end.py"


@pytest.mark.slow
def test_the_accuracy_at_each_level_rises_while_it_is_trained():
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    options = ["--branches=8", "--steps=40", "--batch=64", "--held-out=512", "--lr=0.03"]
    command = [*launcher, str(SCRIPT), *options]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=280)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [line.get("level") for line in lines] == [None, 0, 1, 2]
    assert (lines[0]["classes"], lines[0]["processes"]) == (512, 2)
    found = [line["accuracy at each level"] for line in lines]
    for level in range(3):
        assert found[level + 1][level] > found[level][level] + 0.2
        assert found[-1][level] > 0.6
    assert all(0.05 < size < 5 for line in lines for size in line["GB"])
