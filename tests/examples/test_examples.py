"""The examples run as they are, from anywhere, and print what they promise."""

import csv
import os
import re
import runpy
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path

import pytest

import coarse2fine
from coarse2fine.curriculum import equal_shares

EXAMPLES = Path(__file__).parents[2] / "examples"
REQUESTS = EXAMPLES / "data" / "requests.csv"

# More than half right, which no example reaches by guessing.
COMPARISON = r"[5-9]\d\.\d% without, [5-9]\d\.\d% with the curriculum"
POINTS = r"test accuracy [5-9]\d\.\d without, [5-9]\d\.\d with the curriculum"
LEVELS = r"levels of \((\d+, )+\d+\) clusters from epochs \(0(, \d+)+\)"

SHORT = {
    "class_names": r"30 classes: .* → 30\n(.*\n)+epoch 0: level 0(.*\n)+epoch 11: level \d, 30",
    "fine_tuning": rf"{COMPARISON}\n{LEVELS}",
    "images": rf"{COMPARISON}\n{LEVELS}",
    "mixup": rf"{COMPARISON}\n{LEVELS}",
    "own_taxonomy": r"2 → 4 → 10\n(.*\n)+epoch 0, level 0(.*\n)+epoch 11, level 2: .* [89]\d\.\d%",
    "table": rf"(seed \d: test accuracy {COMPARISON}\n +{LEVELS}\n){{3}}",
    "text": rf"(seed \d: test accuracy {COMPARISON}\n +{LEVELS}\n){{3}}",
}
OUTPUTS = {
    **SHORT,
    "accelerate_two_processes": COMPARISON,
    "keras_table": POINTS,
    "lightning_images": rf"{COMPARISON}\n{LEVELS}",
    "plain_pytorch": rf"seed 0: {POINTS}",
    "scikit_learn": r"without the curriculum: 0\.[5-9](.*\n)+.* with the curriculum: 0\.[5-9]",
    "transformers_text": rf"level of each epoch: \[0, .*\]\nseed 0: {POINTS}",
}
ARGUMENTS = {"plain_pytorch": ["--seeds", "0"]}


def run(folder, *command):
    """Run Python in an empty folder and return what it printed."""
    # Threads that wait for each other are many times slower on a busy machine.
    settings = {"OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert not own_warnings(finished.stderr), finished.stderr
    return finished.stdout


def own_warnings(stderr):
    """Return the warnings that point to a line of an example or of the package."""
    ours = (str(EXAMPLES), str(Path(coarse2fine.__file__).parent))
    found = re.findall(r"^(.*):\d+: \w*Warning: (.*)$", stderr, re.MULTILINE)
    # That advice is for trainings as short as an example's.
    advice = "The curriculum would take"
    return [text for where, text in found if where.startswith(ours) and advice not in text]


def test_own_warnings_are_told_from_those_of_others():
    ours = f"{EXAMPLES / 'text.py'}:3: UserWarning: odd\n  x = 1\n"
    others = "/lib/torch/nn.py:3: FutureWarning: old\n"
    assert own_warnings(others + ours) == ["odd"]


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == OUTPUTS.keys()


@pytest.mark.parametrize("name", sorted(SHORT))
def test_the_short_examples_fit_on_a_page(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_an_example_says_how_it_is_run(name):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert f"    python examples/{name}.py" in text


def test_the_requests_are_what_their_script_writes(tmp_path):
    script = runpy.run_path(str(EXAMPLES / "data" / "make_requests.py"))
    script["write_rows"](tmp_path / "requests.csv")
    assert (tmp_path / "requests.csv").read_bytes() == REQUESTS.read_bytes()


def test_the_requests_are_900_different_sentences_of_30_intents():
    with REQUESTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["text"] for row in rows}) == len(rows) == 900
    assert set(Counter(row["intent"] for row in rows).values()) == {30}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_an_example_runs_and_prints_what_it_shows(name, tmp_path):
    printed = run(tmp_path, EXAMPLES / f"{name}.py", *ARGUMENTS.get(name, []))
    assert re.search(OUTPUTS[name], printed), printed


# ------------------------------------------------------------------------- two processes


def accelerate(folder, processes):
    """Return the levels of each epoch, the hierarchy's text, and the last line's numbers."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    script = EXAMPLES / "accelerate_two_processes.py"
    printed = run(folder, *launcher, script)
    levels = re.findall(r"^epoch (\d+): level in each process \[(.*)\]$", printed, re.MULTILINE)
    tree = re.search(r"^\d+ classes: (.*\n)*(?=test accuracy)", printed, re.MULTILINE)
    numbers = re.findall(r"\d+(?:\.\d)?", printed.splitlines()[-1])
    return levels, tree[0], [float(number) for number in numbers]


@pytest.mark.slow
def test_two_processes_of_accelerate_train_as_one_does(tmp_path):
    one_levels, one_tree, one_numbers = accelerate(tmp_path, 1)
    two_levels, two_tree, two_numbers = accelerate(tmp_path, 2)
    starts = equal_shares(6, one_tree.splitlines()[0].count("→") + 1)
    expected = [(epoch, bisect_right(starts, epoch)) for epoch in range(15)]
    assert one_levels == [(str(epoch), f"{level}") for epoch, level in expected]
    assert two_levels == [(str(epoch), f"{level}, {level}") for epoch, level in expected]
    assert one_tree == two_tree
    assert one_numbers[0] == two_numbers[0] == 35 * 75 - 1000  # no sample is left out or doubled
    assert one_numbers == pytest.approx(two_numbers, abs=0.5)
