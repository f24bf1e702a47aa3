"""The commands together, and how their errors end."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from .. import __version__
from .._util.plugins import Kind, installed, listed
from ..errors import MissingExtraError, RunError
from . import (
    data,
    demo,
    evaluate,
    export,
    figure,
    hierarchy,
    hierarchy_compare,
    hierarchy_edit,
    paper,
    predict,
    report,
    runs,
    train,
)
from .options import in_terms_of_options
from .process import is_first, is_stdout_broken, say

# What is wrong with what was asked for, rather than with the program.
EXPECTED = (ValueError, TypeError, OSError, MemoryError, MissingExtraError, RunError)

# Of which kinds a command takes names, those that installed packages bring included.
NAMED: dict[str, tuple[Kind, ...]] = {
    "data": ("data",),
    "train": ("data", "models", "methods"),
    "evaluate": ("data",),
}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would double the time to start
    context_settings=_CONTEXT,
)
COMMANDS = {
    "demo": demo,
    "data": data,
    "train": train,
    "runs": runs,
    "report": report,
    "figure": figure,
    "hierarchy": hierarchy,
    "hierarchy edit": hierarchy_edit,
    "hierarchy compare": hierarchy_compare,
    "predict": predict,
    "evaluate": evaluate,
    "export": export,
    "paper": paper,
}


class _Command(TyperCommand):
    """A command whose help lists what installed packages bring; nothing else looks for it."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what comes after the options."""
        for kind in NAMED.get(str(self.name), ()):
            if installed(kind):  # else nothing is imported for it
                with formatter.section(f"{kind.capitalize()} of installed packages"):
                    for line in listed(kind, _ours(kind)):
                        formatter.write_text(line)
        super().format_epilog(ctx, formatter)


def _ours(kind: Kind) -> Collection[str]:
    if kind == "data":
        from ..data.load import SETS

        return SETS
    from ..methods import METHODS
    from ..models import MODELS

    return METHODS if kind == "methods" else MODELS


for name, module in COMMANDS.items():
    app.command(
        name,
        cls=_Command,
        epilog="\b\n" + "\n  ".join(("Examples:", *module.EXAMPLES)),
        context_settings=_CONTEXT,
    )(module.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coarse2fine {__version__}")
        raise typer.Exit


@app.callback(
    epilog="\b\nExamples:\n  c2f demo\n  c2f train photos/ --image-size 64\n  c2f train --help"
)
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error arose; also after a command.")
    ] = False,
) -> None:
    """Train classifiers first on coarse groups of their classes, then on finer ones."""


def run(arguments: Sequence[str]) -> int:
    """Run a command, and return the exit code.

    0 is done, 2 an error, 130 stopped by Ctrl-C or SIGTERM, 141 a reader that went away.

    Args:
        arguments: What comes after ``c2f``; nothing means ``--help``.
    """
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            command, name, rest = _chosen(arguments or ["--help"])
            # Typer's own main would turn some exceptions into others.
            with command.make_context(f"c2f {name}".rstrip(), rest) as context:
                if name:
                    command.callback(**context.params)
                else:  # to say that there is no such command
                    command.invoke(context)
            sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt as stop:
        say(str(stop) or "stopped")
        return 130
    except Exception as error:
        if not isinstance(error, EXPECTED) and usage_message(error) is None:
            raise
        if isinstance(error, BrokenPipeError) and is_stdout_broken():
            return 141
        _show_error(error, debug)
        return 2
    return 0


def _chosen(arguments: list[str]) -> tuple[Any, str, list[str]]:
    """Return the command that is asked for, its name, and the arguments left for it.

    A command is gone to straight, since to look for options before it takes as long as all the
    rest. Without one it is the whole program, and its name is empty.
    """
    program: Any = typer.main.get_command(app)
    for words in (2, 1):  # a command has one or two
        name = " ".join(arguments[:words])
        if name in COMMANDS and len(arguments) >= words:
            return program.commands[name], name, arguments[words:]
    return program, "", arguments


def _show_error(error: BaseException, debug: bool) -> None:
    if debug:
        say("".join(traceback.format_exception(error)).rstrip("\n"))
    say(f"error: {one_line(error)}")
    is_worker = not is_first() and "TORCHELASTIC_ERROR_FILE" in os.environ
    if is_worker and "torch" in sys.modules:
        # What is wrong with one process alone, torchrun tells.
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)


def one_line(error: BaseException) -> str:
    r"""Return what an exception says, in one line and in terms of options.

    Examples:
        >>> one_line(ValueError("this\nand that"))
        'this and that'
        >>> one_line(FileNotFoundError(2, "No such file or directory", "a.csv"))
        'a.csv: No such file or directory'
    """
    text = usage_message(error) or str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return in_terms_of_options(" ".join(text.split())) or type(error).__name__


def usage_message(error: BaseException) -> str | None:
    """Return what is wrong with options or arguments; None for any other error.

    Whose exceptions these are depends on typer's version, and few export the class. All have the
    method that is documented for what to show.
    """
    format_message = getattr(error, "format_message", None)
    return None if format_message is None else str(format_message())


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {in_terms_of_options(' '.join(str(message).split()))}")
