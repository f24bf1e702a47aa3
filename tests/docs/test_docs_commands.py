"""Every command in README.md and docs/ could be typed as it stands: nothing in it is unknown."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from pages import DOCS, NAMES, PAGES, ROOT, SHELL, blocks_of, commands_of, joined_lines, read

from coarse2fine import Config
from coarse2fine.cli.app import app, usage_message
from coarse2fine.cli.options import parsed
from coarse2fine.experiments import SUMMARY, find_experiment

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
TARGETS = re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE)
EXTRAS = re.findall(
    r"^(\w+) = \[",
    read(ROOT / "pyproject.toml").split("[project.optional-dependencies]")[1].split("\n\n")[0],
    re.MULTILINE,
)
# Other people's programs, whose own options are theirs.
FOREIGN = {"dask", "git", "cd", "export"}
LAUNCHERS = {"torchrun", "accelerate"}


def words_of(line: str) -> list[str]:
    """Return the words of a command, without variables before it and what follows it."""
    line = re.sub(r"^([A-Z0-9_]+=\S+ )+", "", line).replace("$(which c2f)", "c2f")
    if line.split(" ")[0] not in CHECKS:
        return line.split()
    words = shlex.split(line, comments=True)
    ends = [place for place, word in enumerate(words) if word in {">", "&", "|", "&&"}]
    return words[: min(ends, default=len(words))]


# --------------------------------------------------------------------------------- checks


def check_c2f(words: list[str]) -> None:
    name, *arguments = [word for word in words if word not in {"--help", "--debug"}] or ["demo"]
    if arguments and f"{name} {arguments[0]}" in COMMANDS:
        name, *arguments = f"{name} {arguments[0]}", *arguments[1:]
    if name.isupper():  # c2f COMMAND --help
        return
    assert name in COMMANDS, f"there is no command {name}"
    if arguments:
        with COMMANDS[name].make_context(name, arguments) as context:
            check_values(name, context.params)


def check_values(name: str, parameters: dict[str, Any]) -> None:
    if name == "paper" and ":" not in parameters["name"] and parameters["name"] != SUMMARY:
        assert parameters["scale"] in find_experiment(parameters["name"]).scales
    if name == "train":
        given = {key: value for key, value in parameters.items() if value not in (None, [])}
        known = {key: given[key] for key in given.keys() & {field.name for field in fields(Config)}}
        meant = parsed(known)
        if not any(":" in method for method in meant.get("methods", ())):  # one's own
            Config(**meant)


def check_python(words: list[str]) -> None:
    if words[0] == "-m":
        module, *arguments = words[1:]
        assert module in {"coarse2fine", "pip", "pytest"}, f"unknown module {module}"
        assert all((ROOT / word).exists() for word in arguments if "/" in word)
        return
    script, *arguments = words
    assert (ROOT / script).is_file(), f"there is no {script}"
    assert option_names(arguments) <= options_of(ROOT / script)


def check_make(words: list[str]) -> None:
    targets = [word for word in words if "=" not in word]
    assert set(targets) <= set(TARGETS), f"the Makefile has no {targets}"


def check_pip(words: list[str]) -> None:
    asked = [name for word in words for name in re.findall(r"\[([\w,]+)\]", word)]
    assert {extra for names in asked for extra in names.split(",")} <= set(EXTRAS)


def check_launched(words: list[str]) -> None:
    """Check what a launcher of several processes starts."""
    for place, word in enumerate(words):
        if word == "c2f":
            return check_c2f(words[place + 1 :])
        if word.endswith(".py"):
            return check_python(words[place:])
    raise AssertionError("it starts neither c2f nor a script")


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "c2f": check_c2f,
    "python": check_python,
    "make": check_make,
    "pip": check_pip,
    **dict.fromkeys(LAUNCHERS, check_launched),
}


def option_names(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def options_of(script: Path) -> set[str]:
    """Return the options that a script's parser is given, read off its source."""
    calls = [node for node in ast.walk(ast.parse(read(script))) if isinstance(node, ast.Call)]
    added = [call for call in calls if getattr(call.func, "attr", "") == "add_argument"]
    return {arg.value for call in added for arg in call.args if isinstance(arg, ast.Constant)}


# ---------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_commands_of_a_page_can_be_typed(page: Path) -> None:
    for line in commands_of(read(page)):
        program, *arguments = words_of(line)
        if program in CHECKS and (arguments or program == "make"):
            try:
                CHECKS[program](arguments)
            except Exception as error:
                raise AssertionError(f"{page.name}: {line}: {error}") from error


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_command_goes_unchecked(page: Path) -> None:
    shell = [block.code for block in blocks_of(read(page)) if block.language in SHELL]
    for line in (line for code in shell for line in joined_lines(code) if line.strip()):
        assert words_of(line)[0] in {*CHECKS, *FOREIGN, "#"}, line


@pytest.mark.parametrize(
    "line",
    [
        "c2f tran shapes",
        "c2f train --no-baseline",
        "c2f train shapes --colour red",
        "c2f train shapes --metric colour",
        "c2f train shapes --seeds many",
        "c2f paper colours",
        "c2f paper methods --scale tiny",
        "torchrun --nproc_per_node 2 $(which c2f) train shapes --colour red",
        "python examples/nothing.py",
        "python examples/plain_pytorch.py --colour red",
        "COARSE2FINE_DATA=DIR make nothing",
        "pip install '.[nothing]'",
    ],
)
def test_what_cannot_be_typed_is_found(line: str) -> None:
    program, *arguments = words_of(line)
    with pytest.raises(Exception) as caught:  # noqa: PT011, as the next line says which
        CHECKS[program](arguments)
    assert isinstance(caught.value, AssertionError | ValueError) or usage_message(caught.value)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_options_that_a_page_names_are_there(page: Path) -> None:
    scripts = [*ROOT.glob("examples/*.py"), *ROOT.glob("benchmarks/*.py")]
    options = [it for command in COMMANDS.values() for it in command.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    known |= {"--help", "--debug", "--version"}.union(*map(options_of, scripts))
    named = option_names([line.split()[0] for line in commands_of(read(page))])
    assert named <= known


def test_the_versions_of_the_compatibility_page_are_those_of_the_constraints() -> None:
    versions = read(DOCS / "compatibility.md").split("\n## Versions\n")[1]
    listed = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|$", versions, re.MULTILINE)
    constraints = read(ROOT / "constraints.txt").splitlines()
    assert len(listed) == 8
    assert {f"{name}=={version}" for name, version in listed} <= set(constraints)
    python = re.search(r"on (Python \d\.\d+)", versions)
    assert python
    assert python[0] in constraints[0]
