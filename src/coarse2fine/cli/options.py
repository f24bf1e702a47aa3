"""Arguments and options that several commands have, and those that are made from settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..runs.config import Config
from ..runs.settings import ConfigField, config_fields

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
    declared = field.declared
    flag = field.name.replace("_", "-")
    if bool in field.kinds:
        return typer.Option(declared.option or f"--{flag}/--no-{flag}", help=declared.help)
    metavar = declared.metavar or _METAVARS[_text_type(field)]
    return typer.Option(declared.option or f"--{flag}", metavar=metavar, help=declared.help)


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
Target = Annotated[str | None, setting_option(_SETTINGS["target"])]
Text = Annotated[str | None, setting_option(_SETTINGS["text"])]
DataName = Annotated[
    str,
    typer.Argument(
        metavar=_SETTINGS["data"].declared.metavar, help=_SETTINGS["data"].declared.help
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where a named set lies, or COARSE2FINE_DATA."),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run, or a comparison of several.")]
ModelOfRun = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="What makes its model, if not one of ours: package.module:callable; it is imported.",
    ),
]
MethodOfRun = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a comparison: baseline, staged, …")
]
SeedOfRun = Annotated[int | None, typer.Option(metavar="N", help="Of a comparison.")]
