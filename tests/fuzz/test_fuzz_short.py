"""No input makes a parser do anything but answer, or say in a sentence what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from targets import TARGETS

HERE = Path(__file__).resolve().parent


def run(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def outcome():
    done = run(HERE / "fuzz_short.py")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture
def outcomes(outcome):
    return outcome["targets"]


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_answers_or_says_what_is_wrong(outcomes, name):
    assert outcomes[name]["failures"] == []


# Every answer of the editor is one, also that which refuses.
@pytest.mark.parametrize("name", [name for name in TARGETS if name != "editor"])
def test_inputs_get_past_the_outermost_layer_and_are_not_all_right(outcomes, name):
    assert outcomes[name]["accepted"] > 10
    assert outcomes[name]["refused"] > 10


def test_nothing_is_left_outside_the_folder_of_the_targets(outcome):
    assert outcome["left"] == ["here", "in"]


def test_the_targets_share_a_million_inputs_with_at_least_twenty_thousand_each():
    assert sum(target.share for target in TARGETS.values()) == 1_000_000
    assert min(target.share for target in TARGETS.values()) >= 20_000


def test_an_input_can_be_repeated(tmp_path):
    (tmp_path / "input").write_bytes(b"\0[]")
    again = HERE / "run.py", "--target", "hierarchy-json", "--input", tmp_path / "input"
    done = run(*again)
    assert done.returncode == 0, done.stderr
    assert "not a hierarchy" in done.stdout


@pytest.mark.slow
def test_the_fuzzer_guided_by_coverage_counts_its_inputs(tmp_path):
    pytest.importorskip("atheris", reason="atheris is for Linux alone")
    out = tmp_path / "out.json"
    options = "--target", "taxonomy", "--inputs", 2000, "--out", out, "--crashes", tmp_path
    done = run(HERE / "run.py", *options)
    assert done.returncode == 0, done.stdout
    found = json.loads(out.read_text())
    assert found["inputs"] == found["inputs taxonomy"] == 2000
    assert found["failures"] == 0
    assert found["coverage taxonomy"] > 50
