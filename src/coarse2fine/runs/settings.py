"""How a setting is declared, and what is made of a declaration.

A setting is a field of a dataclass, with all that is to know of it in one place::

    epochs: int | None = setting(None, "training", "The most epochs.", at_least(1))

The checks, the documentation and the option of the command line are made from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import cleandoc
from reprlib import repr as short
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from .rules import Rule

# What a setting has an effect on: the samples; how every method trains, or only those with a
# curriculum; what is trained at all; what is drawn at random; or where it runs and what is noted
# there, neither of which changes what comes out.
Part = Literal["data", "training", "curriculum", "comparison", "randomness", "machine", "log"]
_WORDS: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "True or False",
    tuple: "a list",
    dict: "a dict",
    NoneType: "None",
}
_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Declared:
    """What is declared of a setting beside its name, type and default, see `setting`."""

    affects: Part
    help: str
    rule: Rule | None
    about: str
    unset: str
    metavar: str
    option: str
    parse: Callable[[Any], Any] | None
    repeats: bool


def setting(
    default: _Value,
    affects: Part,
    help: str,
    rule: Rule | None = None,
    *,
    about: str = "",
    unset: str = "",
    metavar: str = "",
    option: str = "",
    parse: Callable[[Any], Any] | None = None,
    repeats: bool = False,
) -> _Value:
    """Return a field of a dataclass that is a setting.

    Args:
        default: The value where none is given.
        affects: What it has an effect on.
        help: Of its option on the command line.
        rule: What values must obey beside their type, see `coarse2fine.runs.rules`. Defaults to
            None: nothing.
        about: What the documentation of `Config` says. Defaults to ``""``: `help`.
        unset: What None means, for the documentation. Defaults to ``""``.
        metavar: What stands for a value on the command line. Defaults to ``""``: by the type.
        option: What the option is called. Defaults to ``""``: by the name.
        parse: Makes a value from the option's text. Defaults to None: by the type.
        repeats: Whether the option may be given several times; `parse` gets all the texts.
            Defaults to False.
    """
    declared = Declared(affects, help, rule, about, unset, metavar, option, parse, repeats)
    made: _Value = dataclasses.field(default=default, metadata={"declared": declared})
    return made


@dataclass(frozen=True)
class ConfigField:
    """A setting as a whole.

    Args:
        name: Of the field.
        type: Of its values, such as ``int | None`` or ``tuple[str, ...]``.
        default: The value where none is given.
        declared: All else.
    """

    name: str
    type: Any
    default: Any
    declared: Declared

    @cached_property
    def members(self) -> tuple[Any, ...]:
        """The types of the union that `type` is, or it alone."""
        return get_args(self.type) if get_origin(self.type) is UnionType else (self.type,)

    @cached_property
    def kinds(self) -> tuple[Any, ...]:
        """The same as classes: ``tuple`` for ``tuple[str, ...]``."""
        return tuple(get_origin(member) or member for member in self.members)

    def normalised(self, value: Any) -> Any:
        """Return a value as it is kept: a list, or a single entry, as a tuple; {} as None.

        Where a single entry may stand by itself, it does.
        """
        if tuple in self.kinds and str in self.kinds:
            several = tuple(value) if isinstance(value, list | tuple) else (value,)
            return several[0] if len(several) == 1 else several
        if tuple in self.kinds and value is not None:
            return tuple(value) if isinstance(value, list | tuple | range) else (value,)
        return None if value == {} and dict in self.kinds else value

    def check(self, value: Any) -> None:
        """Raise a TypeError or ValueError that names the setting where a value cannot be."""
        if not _is_one(value, self.kinds):
            raise TypeError(f"{self.name} must be {_words(self.kinds)}. Got {short(value)}.")
        for entry in value if isinstance(value, tuple) else ():
            kind = get_args(self.members[self.kinds.index(tuple)])[0]
            if not _is_one(entry, (kind,)):
                raise TypeError(f"{self.name} must hold {_WORDS[kind]} each. Got {short(entry)}.")
        if self.declared.rule is not None and value is not None:
            self.declared.rule(self.name, value)

    @property
    def documentation(self) -> str:
        """What the documentation says of it."""
        shown = f"``{self.default!r}``" if isinstance(self.default, str | tuple) else self.default
        meaning = f": {self.declared.unset}" if self.declared.unset else ""
        return f"{self.declared.about or self.declared.help} Defaults to {shown}{meaning}."


def config_fields(config: type) -> dict[str, ConfigField]:
    """Return the settings that a dataclass declares, by name."""
    return _config_fields(config)  # to mypy, the class of a dataclass is no hashable argument


@cache
def _config_fields(config: Any) -> dict[str, ConfigField]:
    types = get_type_hints(config)
    return {
        field.name: ConfigField(
            field.name, types[field.name], field.default, field.metadata["declared"]
        )
        for field in dataclasses.fields(config)
    }


def documented(config: _Class) -> _Class:
    """Return the dataclass with its settings in its docstring."""
    lines = (
        fill(f"{name}: {each.documentation}", 92, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name, each in config_fields(config).items()
    )
    config.__doc__ = "\n".join((f"{cleandoc(config.__doc__ or '')}\n\nArgs:", *lines))
    return config


def _is_one(value: Any, kinds: tuple[Any, ...]) -> bool:
    if isinstance(value, bool):  # an integer to Python, and to nobody else
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _words(kinds: tuple[Any, ...]) -> str:
    # An integer is a number too.
    return " or ".join(_WORDS[kind] for kind in kinds if kind is not int or float not in kinds)
