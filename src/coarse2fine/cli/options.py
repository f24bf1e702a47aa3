"""Arguments and options that several commands have, and those that are made from settings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from ..runs.config import Config
from ..runs.settings import ConfigField, config_fields

# What is no setting, but an option all the same.
_OTHERS = {
    "class_names": "--classes",
    "folder": "--data",
    "method": "--method",
    "peer_seconds": "--peer-seconds",
}
_METAVARS = {str: "NAME", int: "N", float: "X"}


def with_settings(command: Callable[..., None], config: type = Config) -> Callable[..., None]:
    """Give a command an option for each setting that is not a parameter of its own.

    The options come before the command's keyword-only parameters. The command gets them as
    further keyword arguments, None where they are not given; see `parsed`.

    Args:
        command: What is called.
        config: What declares the settings. Defaults to `Config`.
    """
    own = inspect.signature(command, eval_str=True).parameters
    fields = [field for name, field in config_fields(config).items() if name not in own]
    first = [each for each in own.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    last = [each for each in own.values() if each.kind is each.KEYWORD_ONLY]
    # Typer makes its options from the signature, which need not be the function's own.
    signature = inspect.Signature([*first, *map(_parameter, fields), *last])
    vars(command)["__signature__"] = signature
    return command


def parsed(texts: Mapping[str, Any], config: type = Config) -> dict[str, Any]:
    """Return the settings that options give, as the values that they mean.

    Args:
        texts: What typer makes of the options, by the settings' names; None for those not given.
        config: What declares the settings. Defaults to `Config`.
    """
    fields = config_fields(config)
    given = {name: value for name, value in texts.items() if value is not None}
    parsers = {name: fields[name].declared.parse for name in given}
    return {name: parse(given[name]) if parse else given[name] for name, parse in parsers.items()}


def setting_option(field: ConfigField) -> Any:
    """Return the option of a setting."""
    declared, flag = field.declared, option_name(field)
    if bool in field.kinds:
        both = declared.option or f"{flag}/--no-{flag.removeprefix('--')}"
        return typer.Option(both, help=declared.help)
    metavar = declared.metavar or _METAVARS[_text_type(field)]
    return typer.Option(flag, metavar=metavar, help=declared.help)


def option_name(field: ConfigField) -> str:
    """Return what the option of a setting is called."""
    return field.declared.option or f"--{field.name.replace('_', '-')}"


def in_terms_of_options(message: str) -> str:
    """Return a message in which settings are called as their options.

    Messages are written for Python, where a setting is a keyword argument. Of names that are
    also plain words only those are meant that are followed by ``=`` or begin a sentence that
    says what they must be.

    Args:
        message: Of an error or a warning.

    Examples:
        >>> in_terms_of_options("epochs must be at least 1. Got 0.")
        '--epochs must be at least 1. Got 0.'
        >>> in_terms_of_options("name another column by target=.")
        'name another column by --target.'
    """
    # Not a setting: a hierarchy is made with it, and trained with afterwards.
    message = message.replace('parents="first"', "c2f hierarchy --parents first")
    fields = {name: each for name, each in config_fields(Config).items() if name != "data"}
    options = {**_OTHERS, **{name: option_name(field) for name, field in fields.items()}}
    return _naming(tuple(options), tuple(fields)).sub(
        lambda found: options[found[0].rstrip("=")], message
    )


@cache
def _naming(names: tuple[str, ...], settings: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds the names of settings in a message, outside of quotes and paths."""
    every = "|".join(names)
    distinct = "|".join(name for name in settings if "_" in name)  # which is no plain word
    # What a callable takes is a parameter of its own, whatever its name.
    begins = r"(?<![\w/'\"=.-])(?<!takes )"
    given = rf"(?:{every})=(?=[\s,.;:)]|$)|(?:{every})(?= = )"
    beside = rf"(?:{every})(?= or (?:{distinct})\b)"
    anywhere = rf"(?:{distinct})(?![\w/'\"=]|[.]\w)"
    subject = rf"(?:(?<![\s\S])|(?<=[,;.:] ))(?:{every})(?= must | '[^']*' is )"
    return re.compile(f"{begins}(?:{given}|{beside}|{anywhere}|{subject})")


def _parameter(field: ConfigField) -> inspect.Parameter:
    kind = list[str] if field.declared.repeats else _text_type(field)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, setting_option(field)],
    )


def _text_type(field: ConfigField) -> Any:
    """Return what typer makes of an option's text."""
    is_text = field.declared.parse is not None or field.declared.repeats
    return str if is_text else field.kinds[0]


_SETTINGS = config_fields(Config)
# For options that have a default in one command and none in another.
LINKAGE = setting_option(_SETTINGS["linkage"])
METRIC = setting_option(_SETTINGS["metric"])
Head = Annotated[str | None, setting_option(_SETTINGS["head"])]
Target = Annotated[list[str] | None, setting_option(_SETTINGS["target"])]
Text = Annotated[str | None, setting_option(_SETTINGS["text"])]
DataName = Annotated[
    str,
    typer.Argument(
        metavar=_SETTINGS["data"].declared.metavar, help=_SETTINGS["data"].declared.help
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Look for a named set in this folder instead of COARSE2FINE_DATA.",
    ),
]
RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run, or of a comparison of several.")
]
ModelOfRun = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Import package.module:callable to make the run's model, if it is not one of ours.",
    ),
]
MethodOfRun = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Take the run of this method in a comparison: baseline, staged, …."
    ),
]
SeedOfRun = Annotated[
    int | None, typer.Option(metavar="N", help="Take the run of this seed in a comparison.")
]
