"""Write down the public API: names and signatures, as docs/api.md lists them, and c2f's options.

    python tools/public_api.py

The list is tests/public_api.txt, which a test compares with the package: so nothing public changes
unnoticed, and a change shows in its commit.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from inspect import get_annotations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "api.md"
LIST = ROOT / "tests" / "public_api.txt"
PACKAGE = "coarse2fine"
COMMAND_LINE = "Command line"


def sections() -> Iterator[tuple[str, str]]:
    """Yield the title of each part of docs/api.md and its text."""
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        yield title, text


def lines_of(text: str) -> Iterator[str]:
    """Yield what a part of docs/api.md documents, a line for each name.

    Args:
        text: Of the part.
    """
    for found in re.finditer(r"^::: (\S+)\.(\w+)((?:\n[ ]+.*)*)", text, re.M):
        module, name, options = found.groups()
        home = _home(module, name)
        members = re.search(r"members: (.*)", options)
        value = getattr(import_module(home), name)
        yield from described(value, f"{home}.{name}", members and members[1])


def command_line() -> Iterator[str]:
    """Yield the commands of `c2f`, with their arguments and options."""
    import typer

    from coarse2fine.cli.app import COMMANDS, app

    commands: Any = vars(typer.main.get_command(app))["commands"]
    for name in COMMANDS:
        for parameter in commands[name].params:
            words = [*parameter.opts, *parameter.secondary_opts]
            is_option = parameter.param_type_name == "option"
            value = "" if is_option and parameter.is_flag else f" {parameter.metavar or ''}"
            shown = "/".join(words) + value if is_option else parameter.metavar or words[0]
            yield f"c2f {name} {shown.strip()}"


def public_api() -> str:
    """Return the whole list."""
    parts = [(title, lines_of(text)) for title, text in sections()]
    parts.append((COMMAND_LINE, command_line()))
    return "\n".join(f"# {title}\n\n" + "\n".join(part) + "\n" for title, part in parts)


def described(value: Any, name: str, members: str | None = None) -> Iterator[str]:
    """Yield the line of a function, or those of a class and its members.

    Args:
        value: The function, the class, or any other value.
        name: By which it is imported.
        members: The class's members that are public, as docs/api.md has them: a list, or
            ``"false"`` for none. Defaults to None: all without a leading underscore.
    """
    if not inspect.isclass(value):
        yield name + (_signature(value) if callable(value) else "")
        return
    yield name + _constructor(value)
    if members == "false":
        return
    found = _members(value)
    for member in sorted(found):
        if member in members if members else not member.startswith("_"):
            yield f"{name}.{member}{found[member]}"


def _home(module: str, name: str) -> str:
    """Return the module that a name is imported from, given the one that defines it."""
    for package in (PACKAGE, f"{PACKAGE}.data"):
        if name in import_module(package).__all__:
            return package
    return re.sub(r"\._([a-z]+)_\w+$", r".\1", module)  # a part of an integration


def _constructor(cls: type) -> str:
    """Return the signature of a class; nothing where it has its constructor from elsewhere."""
    owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
    return _signature(cls) if owner.__module__.startswith(PACKAGE) else ""


def _members(cls: type) -> dict[str, str]:
    """Return what follows the name of each member, fields of dataclasses aside.

    Those that a class has from another library are that library's.
    """
    found: dict[str, str] = {}
    for own in reversed([each for each in cls.__mro__ if each.__module__.startswith(PACKAGE)]):
        found |= {name: f": {_text(value)}" for name, value in get_annotations(own).items()}
        found |= {name: _member(value) for name, value in vars(own).items() if _member(value)}
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return {name: text for name, text in found.items() if name not in {x.name for x in fields}}


def _member(value: Any) -> str:
    """Return what follows a member's name; nothing for a value."""
    if isinstance(value, (classmethod, staticmethod)):
        return _signature(value.__func__, skip=isinstance(value, classmethod))
    if isinstance(value, (property, cached_property)):
        function = value.fget if isinstance(value, property) else value.func
        return f": {_text(inspect.signature(function).return_annotation)}"
    return _signature(value, skip=True) if inspect.isfunction(value) else ""


def _signature(function: Any, *, skip: bool = False) -> str:
    signature = inspect.signature(function)
    given = signature.parameters.values()
    shown = [each.replace(annotation=_Text(each.annotation)) for each in given][skip:]
    returned = _Text(signature.return_annotation)
    return str(signature.replace(parameters=shown, return_annotation=returned))


class _Text:
    """An annotation that is shown as it is written."""

    def __new__(cls, annotation: Any) -> Any:
        """Leave out what is not annotated."""
        return annotation if annotation is inspect.Signature.empty else super().__new__(cls)

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def __repr__(self) -> str:
        return _text(self.annotation)


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")  # the only one that is installed
    LIST.write_text(public_api(), encoding="utf-8")
    sys.stdout.write(f"{LIST.relative_to(ROOT)} is written\n")
