"""The command `c2f`: one file a command, whose imports wait until it runs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `c2f` with the arguments of this process, and end the process."""
    from ..errors import MissingExtraError, require

    try:
        require("typer", "train")
    except MissingExtraError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    from .app import run
    from .process import leave, prepared

    try:
        with prepared():
            code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while it was ending anyway
        code = 130
    leave(code)
