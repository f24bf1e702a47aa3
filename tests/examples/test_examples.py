"""The examples run as they are, from anywhere, and print what they promise."""

import ast
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
DOCS = EXAMPLES.parent / "docs"

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
    "sharded_head": r"epoch 9: level 1, test accuracy 9\d\.\d%\nthe first process holds 1000 of",
    "scikit_learn": r"without the curriculum: 0\.[5-9](.*\n)+.* with the curriculum: 0\.[5-9]",
    "transformers_text": rf"level of each epoch: \[0, .*\]\nseed 0: {POINTS}",
}
# What comes with the package, and with an extra of another name.
CORE = {"coarse2fine", "numpy", "torch"}
EXTRAS = {"tokenizers": "transformers"}
# Rounding differs by machine, which moves a run by a few points.
TOLERANCE = 5.0
# Shown as two processes print it.
LAUNCHED = {"accelerate_two_processes", "sharded_head"}


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


def imports(name):
    """Return the extras that an example's imports ask for."""
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    whole = [it.name for node in nodes if isinstance(node, ast.Import) for it in node.names]
    parts = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    found = {module.partition(".")[0] for module in (*whole, *parts)}
    return {EXTRAS.get(module, module) for module in found - CORE - sys.stdlib_module_names}


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_what_an_example_imports_is_installed_as_its_page_says(name):
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    naming = [page for page in pages if f"examples/{name}.py" in page]
    lines = [re.findall(r"pip install '\.\[([\w,]+)\]'", page) for page in naming]
    known = [set(",".join(line).split(",")) for line in lines] + [set()] * bool(naming)
    assert any(imports(name) <= extras for extras in known)


# ------------------------------------------------------------- what the pages say is printed

FLAGS = re.MULTILINE | re.DOTALL
SHOWN = re.compile(
    r"^```python\n--8<--\nexamples/(\w+)\.py\n--8<--\n```$"  # the example
    r"(?:(?!^```|^#).)*"  # a sentence at most
    r"^```text\n(.*?)^```$",
    FLAGS,
)


def results():
    return (DOCS / "results-beyond.md").read_text(encoding="utf-8")


def floats(texts):
    return [float(text) for text in texts]


def shown_outputs():
    """Return what each example prints by its page, from the block of text that follows it."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    return {name: text for page in pages for name, text in SHOWN.findall(page)}


def without_learned_levels(text):
    """Leave out what a network of other rounding may group in another way."""
    text = re.sub(r"\(\d.*, (\d+)\) clusters from epochs \(0, .*\)", r"\1 clusters", text)
    text = re.sub(r"level of each epoch: \[0, .*\]", "level of each epoch", text)
    return re.sub(r"\(T = \d+\)", "(T)", text)


def assert_as_shown(printed, shown):
    """Compare words exactly and accuracies roughly; a line of "…" stands for any lines."""
    printed, shown = map(without_learned_levels, (printed, shown))
    pattern = re.sub(r"^…\\\n", "(?:.*\n)*", re.escape(shown), flags=re.MULTILINE)
    found = re.fullmatch(re.sub(r"\d+\\\.\d", r"(\\d+\\.\\d)", pattern), printed.rstrip() + "\n")
    assert found, f"{printed}\nis printed, and shown is\n{shown}"
    accuracies = floats(re.findall(r"\d+\.\d", shown))
    assert floats(found.groups()) == pytest.approx(accuracies, abs=TOLERANCE)


def test_the_pages_show_what_examples_print():
    assert shown_outputs().keys() == {*SHORT, *LAUNCHED, "transformers_text"}


def test_accuracies_may_differ_a_little_and_learned_levels_at_will():
    shown = "a\n…\naccuracy 81.6% of\nlevels of (2, 7, 30) clusters from epochs (0, 3, 7)\n"
    printed = "a\nb 1.5\naccuracy 79.0% of\nlevels of (8, 30) clusters from epochs (0, 5)\n"
    assert_as_shown(printed, shown)
    for before, after in [("79.0", "76.5"), ("30", "20"), ("of\n", "\n"), ("a\n", "\n")]:
        with pytest.raises(AssertionError):
            assert_as_shown(printed.replace(before, after), shown)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_an_example_runs_and_prints_what_it_shows(name, tmp_path):
    printed = run(tmp_path, EXAMPLES / f"{name}.py")
    assert re.search(OUTPUTS[name], printed), printed
    if name in shown_outputs() and name not in LAUNCHED:
        assert_as_shown(printed, shown_outputs()[name])
    if name == "plain_pytorch":
        row = re.search(r"^## Coloured digits$.*?^\| 0 \| (.*?) \| (.*?) \|", results(), FLAGS)
        seed = re.search(r"^seed 0: test accuracy (.*?) without, (.*?) with", printed, FLAGS)
        assert floats(seed.groups()) == pytest.approx(floats(row.groups()), abs=TOLERANCE)


# ------------------------------------------------------------------------- two processes


def launch(folder, processes, name):
    """Return the output of an example that torchrun starts."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    return run(folder, *launcher, EXAMPLES / f"{name}.py")


def accelerate(folder, processes):
    """Return the output, and of it the levels, the hierarchy, and the last line's numbers."""
    printed = launch(folder, processes, "accelerate_two_processes")
    levels = re.findall(r"^epoch (\d+): level in each process \[(.*)\]$", printed, re.MULTILINE)
    tree = re.search(r"^\d+ classes: (.*\n)*(?=test accuracy)", printed, re.MULTILINE)
    numbers = re.findall(r"\d+(?:\.\d)?", printed.splitlines()[-1])
    return printed, levels, tree[0], floats(numbers)


@pytest.mark.slow
def test_two_processes_of_accelerate_train_as_one_does(tmp_path):
    _, one_levels, one_tree, one_numbers = accelerate(tmp_path, 1)
    printed, two_levels, two_tree, two_numbers = accelerate(tmp_path, 2)
    assert_as_shown(printed, shown_outputs()["accelerate_two_processes"])
    starts = equal_shares(6, one_tree.splitlines()[0].count("→") + 1)
    expected = [(epoch, bisect_right(starts, epoch)) for epoch in range(15)]
    assert one_levels == [(str(epoch), f"{level}") for epoch, level in expected]
    assert two_levels == [(str(epoch), f"{level}, {level}") for epoch, level in expected]
    assert one_tree == two_tree
    assert one_numbers[0] == two_numbers[0] == 35 * 75 - 1000  # no sample is left out or doubled
    assert one_numbers == pytest.approx(two_numbers, abs=0.5)


@pytest.mark.slow
def test_a_divided_layer_trains_by_two_processes_as_by_one(tmp_path):
    printed = launch(tmp_path, 2, "sharded_head")
    assert_as_shown(printed, shown_outputs()["sharded_head"])
    alone = run(tmp_path, EXAMPLES / "sharded_head.py")
    assert printed.splitlines()[:-1] == alone.splitlines()[:-1]
