"""One declaration a setting: what is made from it, and that there is no second one."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import pytest
import typer

import coarse2fine
from coarse2fine import Config
from coarse2fine.cli.options import parsed, with_settings
from coarse2fine.runs.config import settings_affecting
from coarse2fine.runs.rules import at_least
from coarse2fine.runs.settings import Part, config_fields, documented, setting

SOURCE = Path(coarse2fine.__file__).parent
FIELDS = config_fields(Config)
# Those of which every value of the type is taken, or which only others can check.
WITHOUT_RULE = {
    *("data", "train_size", "text", "model", "head", "hierarchy", "hierarchy_model"),
    "encoder",
    *("baseline", "stratify", "augment", "normalise", "track_test"),
    *("precision", "accelerator", "devices", "strategy"),
}


@documented
@dataclass(frozen=True)
class WithWarmUp(Config):
    """Settings with one more."""

    warm_up: int = setting(
        0,
        "training",
        "Epochs over which the learning rate rises.",
        at_least(0),
        about="Over how many epochs the learning rate rises to what is set.",
    )


def command_for(config, calls):
    """A command with the options of some settings, which notes what it is called with."""

    def command(data: str, **settings):
        calls.append({"data": data, **parsed(settings, config)})

    app = typer.Typer(rich_markup_mode=None)
    app.command()(with_settings(command, config))
    return typer.main.get_command(app)


def test_a_setting_that_is_declared_is_checked_documented_stored_and_an_option():
    with pytest.raises(ValueError, match="warm_up must be at least 0. Got -1"):
        WithWarmUp(warm_up=-1)
    with pytest.raises(TypeError, match="warm_up must be an integer. Got '3'"):
        WithWarmUp(warm_up="3")
    assert WithWarmUp.from_dict(WithWarmUp(warm_up=3).to_dict()) == WithWarmUp(warm_up=3)
    assert "warm_up            3" in str(WithWarmUp(warm_up=3))
    assert WithWarmUp.__doc__.endswith(
        "\n    warm_up: Over how many epochs the learning rate rises to what is set. Defaults to 0."
    )
    calls = []
    command = command_for(WithWarmUp, calls)
    command.main(["photos/", "--warm-up", "3", "--seeds", "2"], standalone_mode=False)
    assert calls == [{"data": "photos/", "warm_up": 3, "seeds": (0, 1)}]
    (option,) = (each for each in command.params if each.name == "warm_up")
    assert (option.metavar, option.help) == ("N", "Epochs over which the learning rate rises.")


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_says_all_there_is_to_say(name):
    declared = FIELDS[name].declared
    assert declared.affects in get_args(Part)
    assert declared.help[-1] in ".…"
    assert (declared.about or ".")[-1] == "."
    assert (declared.rule is None) == (name in WITHOUT_RULE)
    assert f"\n    {name}: " in Config.__doc__
    if declared.unset:
        assert FIELDS[name].default is None


@pytest.mark.parametrize("name", FIELDS)
def test_the_default_of_every_setting_obeys_its_own_rule(name):
    FIELDS[name].check(FIELDS[name].default)  # which `Config` takes unlooked at


def test_settings_are_grouped_by_what_they_affect():
    assert settings_affecting("machine") == ("accelerator", "devices", "strategy", "workers")
    assert set(settings_affecting("curriculum")) == {
        *("metric", "linkage", "hierarchy", "hierarchy_model", "max_levels"),
        *("hierarchy_epochs", "encoder", "max_cluster_share"),
        *("curriculum_epochs", "stage_epochs", "method_settings"),
    }
    assert settings_affecting(*get_args(Part)) == tuple(FIELDS)


def test_a_copy_checks_only_what_differs_from_the_defaults(monkeypatch):
    checked = []
    monkeypatch.setattr(
        "coarse2fine.runs.settings._is_one", lambda value, _: checked.append(value) or True
    )
    replace(Config(), epochs=7)
    assert checked == [7]


def listed_settings(path):
    """The settings that each tuple, list or set in a file names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            entries = {entry.value for entry in node.elts if isinstance(entry, ast.Constant)}
            yield entries & FIELDS.keys()


def test_nothing_else_lists_settings():
    lists = {path: max(map(len, listed_settings(path)), default=0) for path in SOURCE.rglob("*.py")}
    headings = SOURCE / "cli" / "runs.py"  # of a table, some of which are called like settings
    assert [path for path, most in lists.items() if most > 2] == [headings]
