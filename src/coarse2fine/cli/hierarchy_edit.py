"""`c2f hierarchy edit`: change a hierarchy in the browser."""

from __future__ import annotations

import shlex
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from .process import say, show

if TYPE_CHECKING:
    from ..editor import Session
    from ..hierarchy import Hierarchy

EXAMPLES = (
    "c2f hierarchy edit runs/intents --out tree.json",
    "c2f hierarchy edit hierarchy.json",
    "c2f hierarchy edit hierarchy.json --port 8123 --no-browser",
)


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|RUN",
            help="The hierarchy (.json) to change, or a run or comparison that has one.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save it as this. Default: the same file; of a run, RUN-hierarchy.json beside it.",
        ),
    ] = None,
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
    FILE.~2~ and so on; a run's own hierarchy is never changed. It ends with the command that
    trains with the saved file.
    """
    from ..editor import EditorServer

    session = _session(source, out)
    with suppress(KeyboardInterrupt), EditorServer(session, port) as server:
        copied = f", to be saved as {session.path}" if session.is_new else ""
        say(f"editing {source}{copied}; Ctrl-C here or Close on the page ends it")
        show(server.address)
        if browser:
            # Browsers of the terminal only return when they are closed.
            Thread(target=webbrowser.open, args=[server.address], daemon=True).start()
        server.serve_forever(poll_interval=0.1)
    if session.has_saved:
        show(f"train with it by: {session.command}")
    say(session.outcome())


def _session(source: Path, out: Path | None) -> Session:
    """Return the file to edit: a hierarchy's own, or a new one that begins as a copy."""
    from ..editor import Session

    begun = source.is_dir() and _begun(source)
    if not begun:
        _check_kind(source)
    file = out or (beside(source) if begun else source)
    if not begun and file == source:
        return Session(file, command=train_command(file, None))
    if file.exists():
        raise FileExistsError(
            f"{file} exists already; edit it by c2f hierarchy edit {shlex.quote(str(file))}, or "
            f"choose another file by --out."
        )
    if not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}; make it first.")
    return Session(file, _start(source), train_command(file, begun or None))


def beside(run: Path) -> Path:
    """Return where a run's edited hierarchy is saved: in no folder of the run itself.

    Args:
        run: The directory of a run or of a comparison.

    Examples:
        >>> beside(Path("runs/photos")).as_posix(), beside(Path("runs/photos/best")).name
        ('runs/photos-hierarchy.json', 'photos-hierarchy.json')
    """
    from ..runs.directory import BEST
    from ..runs.find import SEED

    whole = run.resolve()
    if SEED.fullmatch(whole.parent.name):
        whole = whole.parent.parent
    elif whole.name == BEST:
        whole = whole.parent
    name = f"{whole.name}-hierarchy.json"
    return run.parent / name if whole == run.resolve() and run.name else whole.parent / name


def train_command(file: Path, begun: str | None) -> str:
    """Return the command that trains with a hierarchy's file.

    Args:
        file: The hierarchy.
        begun: The command that began the run it is from, whose other options are kept; None
            where there is none.

    Examples:
        >>> train_command(Path("tree.json"), "/bin/c2f train photos/ --seeds 3 --out runs/photos")
        'c2f train photos/ --seeds 3 --hierarchy tree.json'
        >>> train_command(Path("tree.json"), None)
        'c2f train DATA --hierarchy tree.json'
    """
    words = shlex.split(begun or "")
    is_ours = len(words) > 2 and Path(words[0]).name in ("c2f", "__main__.py")
    if not is_ours or words[1] != "train":
        words = ["c2f", "train", "DATA"]
    kept = ["c2f", *words[1:]]
    for option in ("--out", "--hierarchy"):
        kept = _without(kept, option)
    return shlex.join([*kept, "--hierarchy", str(file)])


def _without(words: list[str], option: str) -> list[str]:
    """Return a command without an option and its value, written in either way."""
    places = [at for at, word in enumerate(words) if word == option]
    gone = {at + after for at in places for after in (0, 1)}
    return [
        word
        for at, word in enumerate(words)
        if at not in gone and not word.startswith(f"{option}=")
    ]


def _begun(path: Path) -> str:
    """Return the command that began a run, ``"?"`` for one that does not tell, or ``""``."""
    from ..errors import RunError
    from ..runs.directory import Run
    from ..runs.find import find_run, seed_folders

    if not Run(path).is_begun and not seed_folders(path):
        return ""
    run = find_run(path)
    if not Run(run).has_hierarchy:
        raise RunError(
            f"{run} has no hierarchy to edit; make one by "
            f"c2f hierarchy {shlex.quote(str(path))} --save hierarchy.json."
        )
    return Run(run).config.command or "?"


def _start(source: Path) -> Hierarchy:
    from ..runs.hierarchies import read_hierarchy

    return read_hierarchy(source)


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
