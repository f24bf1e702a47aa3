"""`c2f hierarchy edit`: change a hierarchy in the browser."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from .process import say, show

EXAMPLES = (
    "c2f hierarchy edit hierarchy.json",
    "c2f hierarchy edit hierarchy.json --port 8123 --no-browser",
)


def command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The hierarchy (.json) to change; it is saved there."),
    ],
    port: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="Serve the page at this port of this machine. Default: any.",
        ),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Change a hierarchy in the browser.

    Classes and clusters are moved, renamed, merged and split there. The page is served to this
    machine alone, until Ctrl-C or its own button ends it. The old file is kept as FILE.~1~,
    FILE.~2~ and so on.
    """
    from ..editor import EditorServer, Session

    _check_kind(file)
    session = Session(file)
    with suppress(KeyboardInterrupt), EditorServer(session, port) as server:
        say(f"editing {file}; Ctrl-C here or Close on the page ends it")
        show(server.address)
        if browser:
            # Browsers of the terminal only return when they are closed.
            Thread(target=webbrowser.open, args=[server.address], daemon=True).start()
        server.serve_forever(poll_interval=0.1)
    say(session.outcome())


def _check_kind(file: Path) -> None:
    """Refuse what a hierarchy could be made from, saying how."""
    from .._hierarchy.levels import is_hierarchy
    from .._util.files import parse_json

    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}.")
    content = None
    if file.suffix.lower() == ".json" and file.is_file():
        content = parse_json(file)
    if not is_hierarchy(content):
        raise ValueError(
            f"{file} is not a hierarchy's JSON; make one by "
            f"c2f hierarchy {file} --save hierarchy.json."
        )
