"""The recipe for conda-forge asks for what pyproject.toml asks for."""

import re
import sys
from pathlib import Path

import pytest

import coarse2fine

yaml = pytest.importorskip("yaml")
pytest.importorskip("tomllib", reason="the tools need Python 3.11, as constraints.txt does")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import dependencies  # noqa: E402

RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
PROJECT = (ROOT / "pyproject.toml").read_text()
# What is called otherwise on conda-forge.
NAMES = {
    "torch": "pytorch",
    "lightning-fabric": "pytorch-lightning",
    "matplotlib": "matplotlib-base",
}
ASKED = {
    extra: {f"{NAMES.get(line.name, line.name)} {line.specifier}" for line in lines}
    for extra, lines in dependencies.direct().items()
}


def test_the_core_and_training_are_always_installed():
    run = set(RECIPE["requirements"]["run"]) - {"python >=${{ python_min }}"}
    assert run == ASKED[dependencies.CORE] | ASKED["train"]


def test_the_ranges_of_all_other_extras_hold():
    others = set().union(*(lines for extra, lines in ASKED.items() if extra not in ("", "train")))
    assert set(RECIPE["requirements"]["run_constraints"]) == others
    assert RECIPE["requirements"]["run_constraints"] == sorted(others)


def test_it_is_built_as_pyproject_says():
    (backend,) = re.findall(r'^requires = \["(\w+)(>=.*)"\]$', PROJECT, re.M)
    assert " ".join(backend) in RECIPE["requirements"]["host"]
    command = re.search(r'^c2f = "(.*)"$', PROJECT, re.M)[1]
    assert RECIPE["build"]["python"]["entry_points"] == [f"c2f = {command}"]
    assert RECIPE["context"]["python_min"] == re.search(r'requires-python = ">=(.*)"', PROJECT)[1]


def test_it_is_of_this_version_and_tells_what_pyproject_tells():
    assert RECIPE["context"]["version"] == coarse2fine.__version__.partition(".dev")[0]
    assert f'description = "{RECIPE["about"]["summary"]}"' in PROJECT
    assert f'license = "{RECIPE["about"]["license"]}"' in PROJECT
    assert (ROOT / RECIPE["about"]["license_file"]).is_file()
    assert re.fullmatch("[0-9a-f]{64}", RECIPE["source"]["sha256"])


@pytest.mark.slow
def test_what_it_tries_works_here(tmp_path, monkeypatch):
    from coarse2fine.cli.app import run

    monkeypatch.chdir(tmp_path)
    commands = [line.split() for part in RECIPE["tests"] for line in part.get("script", ())]
    trained = [words[1:] for words in commands if words[0] == "c2f"]
    assert len(trained) == 2
    assert [run(words) for words in trained] == [0, 0]
