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
from coarse2fine.cli import train
from coarse2fine.cli.app import USAGE_ERROR, app
from coarse2fine.experiments import find_experiment

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
    if " ".join([name, *arguments[:1]]) in COMMANDS:  # a command of two words
        name, *arguments = " ".join([name, arguments[0]]), *arguments[1:]
    if name.isupper():  # c2f COMMAND --help
        return
    assert name in COMMANDS, f"there is no command {name}"
    if arguments:
        with COMMANDS[name].make_context(name, arguments) as context:
            check_values(name, context.params)


def check_values(name: str, parameters: dict[str, Any]) -> None:
    if name == "paper" and ":" not in parameters["name"]:
        assert parameters["scale"] in find_experiment(parameters["name"]).scales
    if name == "train":
        given = {key: value for key, value in parameters.items() if value not in (None, [])}
        options = [it for command in COMMANDS.values() for it in command.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    known |= {"--help", "--debug", "--version"}.union(*map(options_of, scripts))
    named = option_names([line.split()[0] for line in commands_of(read(page))])
    assert named <= known


def test_the_versions_of_the_compatibility_page_are_those_of_the_constraints() -> None:
    versions = read(DOCS / "compatibility.md").split("\n## Versions\n")[1]
    listed = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|$", versions, re.MULTILINE)
    constraints = read(ROOT / "constraints.txt").splitlines()
    assert len(listed) == 7
    assert {f"{name}=={version}" for name, version in listed} <= set(constraints)
    python = re.search(r"on (Python \d\.\d+)", versions)
    assert python
    assert python[0] in constraints[0]
