"""What installed packages bring is found by its name, named where it is broken, and left alone."""

import importlib.metadata
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from coarse2fine import Config, __main__
from coarse2fine.cli.app import COMMANDS, NAMED, run
from coarse2fine.data import Source, Split, load_data
from coarse2fine.methods import find_method
from coarse2fine.methods.continuous import Continuous
from coarse2fine.models import build_model

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "examples" / "plugin"
SPLIT = Split(torch.rand(12, 3, 8, 8), torch.arange(12) % 3, ("a", "b", "c"))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package: its entry points as (kind, name, place), and the code of its module."""
    before = set(sys.modules)

    def install(name, *entries, code="", version="0.1.0"):
        site = tmp_path / f"site-{name}"
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        groups = "".join(f"[coarse2fine.{kind}]\n{key} = {place}\n" for kind, key, place in entries)
        (info / "entry_points.txt").write_text(groups)
        (site / f"{name.replace('-', '_')}.py").write_text(code)
        monkeypatch.syspath_prepend(site)

    yield install
    for module in set(sys.modules) - before:
        if module.startswith(("theirs", "others", "coarse2fine_example")):
            del sys.modules[module]


@pytest.fixture
def template(install, monkeypatch):
    """The package in examples/plugin, as if pip had installed it."""
    text = (TEMPLATE / "pyproject.toml").read_text()
    found = re.findall(r'coarse2fine\.(\w+)"\]\n([\w-]+) = "(.*)"', text)
    assert [kind for kind, _, _ in found] == ["methods", "data", "models"]
    install("coarse2fine-example", *found)
    monkeypatch.syspath_prepend(TEMPLATE / "src")


# ---------------------------------------------------------------------------- the template


def names_of_its_tests():
    path = TEMPLATE / "tests" / "test_example.py"
    return re.findall(r"^def (test_\w+)", path.read_text(), re.M)


@pytest.mark.usefixtures("template")
@pytest.mark.parametrize("name", names_of_its_tests())
def test_the_template_passes_its_own_tests(name, tmp_path):
    path = TEMPLATE / "tests" / "test_example.py"
    spec = importlib.util.spec_from_file_location("coarse2fine_example_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    test = getattr(module, name)
    test(**({"tmp_path": tmp_path} if inspect.signature(test).parameters else {}))


@pytest.mark.usefixtures("template")
def test_the_command_line_takes_the_names_and_finds_the_model_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["rings", "--model", "two-layers", "--method", "fading", "--set", "fading.start=0.2"]
    assert run(["train", *names, "--epochs", "3", "--out", "run"]) == 0, capsys.readouterr().err
    assert Path("run/seed-0/fading/result.json").is_file()
    assert run(["evaluate", "run", "rings"]) == 0, capsys.readouterr().err
    assert "rings, test: 80 samples" in capsys.readouterr().out
    assert run(["report", "run", "--out", "report.html"]) == 0, capsys.readouterr().err


@pytest.mark.usefixtures("template")
def test_the_report_of_a_bug_names_what_is_installed():
    assert list(__main__.lines())[-3:] == [
        "methods: fading of coarse2fine-example 0.1.0",
        "data: rings of coarse2fine-example 0.1.0",
        "models: two-layers of coarse2fine-example 0.1.0",
    ]


# ------------------------------------------------------------------------------------- help


def help_of(command, capsys):
    assert run([*command.split(), "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("template")
@pytest.mark.parametrize("command", NAMED)
def test_help_lists_what_a_command_takes(command, capsys):
    text = help_of(command, capsys)
    for kind, name in (("data", "rings"), ("models", "two-layers"), ("methods", "fading")):
        lines = f"{kind.capitalize()} of installed packages:\n  {name}, of coarse2fine-example 0.1"
        assert (lines in text) == (kind in NAMED[command]), text
    assert "Examples:\n    c2f" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_nothing_where_nothing_is_brought(command, capsys):
    assert "installed packages:" not in help_of(command, capsys)


def test_help_tells_what_is_not_used_and_why(install, capsys):
    install("theirs", ("methods", "staged", "theirs:A"), ("methods", "Odd One", "theirs:B"))
    install("others", ("models", "tiny", "others:A"), version="2")
    install("theirs2", ("models", "tiny", "theirs2:A"), version="3")
    text = " ".join(help_of("train", capsys).split())
    assert "staged of theirs 0.1.0 is not used, as coarse2fine has its own" in text
    assert "Odd One of the installed package theirs 0.1.0 is no name: it must be made of" in text
    both = "others 2 and theirs2 3; uninstall all but one"
    assert f"tiny is brought by several installed packages, {both}" in text


# --------------------------------------------------------------------------- what is broken

BROKEN = {
    "raise RuntimeError('it is\\nbroken')": "RuntimeError: it is broken",
    "import nowhere": "ModuleNotFoundError: No module named 'nowhere'",
    "def other(): ...": "AttributeError: module 'theirs' has no attribute 'thing'",
}
FIND = {
    "methods": find_method,
    "data": load_data,
    "models": lambda name: build_model(name, 3, (3, 8, 8)),
}


@pytest.mark.parametrize(("code", "reason"), BROKEN.items())
@pytest.mark.parametrize("kind", FIND)
def test_what_cannot_be_imported_is_named_with_its_package(kind, code, reason, install):
    install("theirs", (kind, "mine", "theirs:thing"), code=code)
    start = f"{kind.removesuffix('s')} 'mine' of the installed package theirs 0.1.0 cannot be"
    message = f"{start} imported: {reason}; update or uninstall that package."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        FIND[kind]("mine")


def test_a_command_ends_in_that_sentence(install, capsys):
    install("theirs", ("methods", "mine", "theirs:thing"), code="import nowhere")
    assert run(["train", "shapes:60", "--method", "mine"]) == 2
    assert capsys.readouterr().err.startswith("error: method 'mine' of the installed package the")


def test_a_method_must_be_one(install):
    install("theirs", ("methods", "mine", "theirs:mine"), code="mine = 3")
    with pytest.raises(TypeError, match=r"method 'mine' must be a subclass of .*base\.Method"):
        Config("shapes", methods=("mine",))


@pytest.mark.parametrize("name", ["baseline", "best", "hierarchy-12-epochs", "seed-0"])
def test_a_method_may_not_be_called_like_a_folder_of_a_run(install, name):
    install("theirs", ("methods", name, "coarse2fine.methods.continuous:Continuous"))
    with pytest.raises(ValueError, match=f"method '{name}' .* is called like a folder of a run"):
        find_method(name)


def test_a_model_must_be_made_anew(install):
    install(
        "theirs", ("models", "mine", "theirs:mine"), code="from torch import nn\nmine = nn.ReLU()"
    )
    with pytest.raises(TypeError, match="model mine must be a class or function that makes one"):
        build_model("mine", 3, (3, 8, 8))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("mine = 3", "data 'mine' must be a function. Got a int."),
        (
            "def mine():\n    return {}",
            "data 'mine' must load a coarse2fine.data.Source. Got a dict.",
        ),
    ],
)
def test_data_must_be_a_source(install, code, error):
    install("theirs", ("data", "mine", "theirs:mine"), code=code)
    with pytest.raises(TypeError, match=re.escape(error)):
        load_data("mine")


def test_a_name_of_two_packages_is_refused(install):
    install("theirs", ("models", "mine", "theirs:one"))
    install("others", ("models", "mine", "others:one"))
    several = "brought by several installed packages, others 0.1.0 and theirs 0.1.0"
    with pytest.raises(ValueError, match=f"^model 'mine' is {several}; uninstall all but one.$"):
        build_model("mine", 3, (3, 8, 8))


@pytest.mark.usefixtures("template")
def test_errors_name_what_there_is_beside_ours():
    with pytest.raises(ValueError, match=r"one of continuous, .*hace, fading, or one of your own"):
        find_method("fadding")
    with pytest.raises(ValueError, match="one of cnn, .*mlp, two-layers, or one of your own"):
        build_model("two", 3, (3, 8, 8))
    with pytest.raises(FileNotFoundError, match="not one of shapes, .*made-table, rings, no file"):
        load_data("ring")


# ------------------------------------------------------------------------- what they are given


def test_data_are_given_what_they_take(install, tmp_path, monkeypatch):
    code = (
        "def load(folder, image_size):\n    load.given = folder, image_size\n    return load.source"
    )
    install("theirs", ("data", "mine", "theirs:load"), code=code)
    theirs = importlib.import_module("theirs")
    theirs.load.source = Source("image", SPLIT)
    monkeypatch.setenv("COARSE2FINE_DATA", str(tmp_path))
    load_data("mine")
    assert theirs.load.given == (str(tmp_path), None)
    load_data("mine", folder="there", image_size=9)
    assert theirs.load.given == ("there", 9)


def test_data_of_one_size_are_not_asked_for_another(install):
    install("theirs", ("data", "mine", "theirs:load"), code="def load():\n    return None")
    with pytest.raises(ValueError, match="^the data mine have one size; leave image_size out.$"):
        load_data("mine", image_size=9)


def test_a_file_comes_before_data_of_its_name(install, write, monkeypatch, tmp_path):
    install("theirs", ("data", "rows.csv", "theirs:load"))
    write("rows.csv", [("x", "label"), *((row, "ab"[row % 2]) for row in range(10))])
    monkeypatch.chdir(tmp_path)
    assert load_data("rows.csv").train.class_names == ("a", "b")


# ----------------------------------------------------------------------- what is left alone


def test_our_names_stay_ours(install):
    install("theirs", ("methods", "continuous", "theirs:A"), ("models", "mlp", "theirs:A"))
    assert find_method("continuous") is Continuous
    assert isinstance(build_model("mlp", 3, (4,), "table"), nn.Module)
    assert "theirs" not in sys.modules


def test_our_names_need_no_look_at_what_is_installed(monkeypatch):
    def fail(**_):
        raise AssertionError("looked for entry points")

    monkeypatch.setattr(importlib.metadata, "entry_points", fail)
    find_method("staged")
    build_model("mlp", 3, (4,), "table")
    load_data("shapes:60", image_size=24)
    assert run(["runs", "--help"]) == 0
    with pytest.raises(AssertionError, match="looked for"):
        find_method("mine")


def test_nothing_is_imported_to_list_it(install, tmp_path):
    install("theirs", ("methods", "mine", "theirs:A"), code="raise SystemExit('imported')")
    paths = f"{tmp_path / 'site-theirs'}:{ROOT / 'src'}"
    command = [sys.executable, "-m", "coarse2fine.cli", "train", "--help"]
    environment = {"PYTHONPATH": paths.replace(":", ";" if sys.platform == "win32" else ":")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "mine, of theirs 0.1.0" in done.stdout
