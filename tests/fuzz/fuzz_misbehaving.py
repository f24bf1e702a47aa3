"""What a parser must never do, done on purpose: the guard must see each."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

import fuzz_guard
from fuzz_guard import Attempt, Guard, ParserError, limit_memory, only_documented_warnings


def fail(error: Exception) -> None:
    raise error


def swallow(path: Path) -> None:
    with suppress(Exception):
        path.write_bytes(b"")


def attempts(outside: Path, inside: Path) -> dict[str, Attempt]:
    file = str(inside / "x")
    calls = {
        "write outside": partial((outside / "new").write_bytes, b""),
        "write outside, error swallowed": partial(swallow, outside / "new"),
        "write by a path that climbs": partial((inside / ".." / ".." / "new").write_bytes, b""),
        "read outside": (outside / "secret").read_bytes,
        "remove outside": (outside / "secret").unlink,
        "rename out": partial(os.rename, inside / "own", outside / "new"),
        "link outside": partial(os.symlink, inside / "own", outside / "new"),
        "chmod outside": partial(os.chmod, outside / "secret", 0o777),
        "temporary file": tempfile.mkstemp,
        "process": partial(subprocess.run, ["true"], check=False),
        "shell": partial(os.system, "true"),
        "socket": partial(socket.create_connection, ("127.0.0.1", 9)),
        "eval": partial(eval, "1 + 1"),
        "pickle": partial(pickle.loads, pickle.dumps(os.getcwd)),
        "KeyError": partial(fail, KeyError("x")),
        "recursion": partial(fail, RecursionError("deep")),
        "memory": partial(bytes, 3 << 30),
        "computes too long": partial(sum, range(5 * 10**7)),
        "waits too long": partial(time.sleep, 60),
        "warning": partial(warnings.warn, "odd", stacklevel=1),
        "file not named": partial(fail, ValueError("it is broken.")),
        "message too long": partial(fail, ValueError(file + "a" * 1000)),
        "control characters": partial(fail, ValueError(f"{file}: \x1b[31m")),
        "two lines": partial(fail, ValueError(f"{file}:\nbroken")),
    }
    good = {
        "write inside": partial((inside / "x").write_bytes, b""),
        "a sentence": partial(fail, ValueError(f"{file} is broken.")),
        "import": partial(__import__, "colorsys"),
    }
    return {name: Attempt(call, named=file) for name, call in {**calls, **good}.items()}


def seen(guard: Guard, attempt: Attempt) -> str:
    """Return the first line of what the guard says, "" for nothing."""
    try:
        guard.check(attempt)
    except ParserError as failure:
        return str(failure).split("\n")[0]
    return ""


def main() -> None:
    fuzz_guard.WALL_SECONDS, fuzz_guard.SECONDS = 0.5, 0.4
    only_documented_warnings()
    with tempfile.TemporaryDirectory() as place:
        outside = Path(place)
        inside = outside / "deep" / "inside"
        inside.mkdir(parents=True)
        (outside / "secret").write_text("kept")
        (inside / "own").write_text("own")
        guard = Guard(inside)
        limit_memory(1 << 30)
        made = attempts(outside, inside)
        found = {name: seen(guard, attempt) for name, attempt in made.items()}
        left = sorted(path.name for path in outside.iterdir())
    json.dump({"found": found, "left": left}, sys.stdout)


if __name__ == "__main__":
    main()
