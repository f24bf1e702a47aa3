"""What `c2f` is as a process: its output, its signals, and whether it is one of several."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from .._util.columns import Rows, as_text
from .._util.files import writing
from .._util.text import JOINERS, printable

_KEPT = f"\n\t{JOINERS}"
# Set by torchrun, Lightning Fabric and Slurm; 0 for the first process of a training.
_RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID")


def is_first() -> bool:
    """Whether this is the first, or the only, process of a training."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def show(*parts: str | Rows) -> None:
    """Write results to the standard output, once for all processes.

    Names in them may be anyone's, so nothing in them steers the terminal.

    Args:
        *parts: Lines of text, and tables, which are made for people where it is a terminal.
    """
    if not is_first():
        return
    has_table = any(not isinstance(part, str) for part in parts)
    with writing(Path("the standard output")):
        if has_table and is_terminal(sys.stdout):
            from .tables import write_parts

            write_parts(parts)
        else:
            sys.stdout.write(f"{printable(as_text(parts), keep=_KEPT)}\n")
        sys.stdout.flush()


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which the cursor and the colours can be set."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def say(text: str) -> None:
    """Write a message to the standard error, as `show` does to the output."""
    if is_first():
        sys.stderr.write(f"{printable(text, keep=_KEPT)}\n")


@contextmanager
def prepared() -> Iterator[None]:
    """Let SIGINT and SIGTERM alike interrupt what is done, and no character do so."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    own = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if os.getpid() == own:
            raise KeyboardInterrupt
        os._exit(0)  # a forked worker, whose traceback nobody needs

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)  # at the very end there is nothing to interrupt


def is_stdout_broken() -> bool:
    """Whether nobody reads the standard output any more; if so, nothing more is written to it."""
    if hasattr(select, "poll"):  # Windows has none
        watch = select.poll()
        watch.register(sys.stdout.fileno(), 0)
        if not watch.poll(0):
            return False
    # Python flushes once more as it ends, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def leave(code: int) -> NoReturn:
    """End the process with an exit code.

    After an error in one of several processes it does so at once. Gloo's threads may still hold
    tensors of what they could not send or receive. Nobody takes its group of processes apart
    (Lightning Fabric does so for NCCL alone), and when Python ends, those threads let go of the
    tensors, ask for an interpreter that is gone, and abort: SIGABRT instead of the exit code.
    Nothing else is lost by not waiting for them: the error is written, logs and locks are closed,
    and the processes that this one started are ended by then.
    """
    distributed: Any = sys.modules.get("torch.distributed")
    if code and distributed and distributed.is_available() and distributed.is_initialized():
        sys.stderr.flush()  # what `show` writes is flushed as it is written
        os._exit(code)
    sys.exit(code)
