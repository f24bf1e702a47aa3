"""What a parser may do with any input: answer, or say in one sentence what is wrong."""

from __future__ import annotations

import os
import resource
import signal
import sys
import sysconfig
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

SECONDS = 2.0  # of the processor; an input that takes longer counts as a hang
WALL_SECONDS = 20.0  # for what waits without computing, as at a pipe that nobody writes to
MEMORY = 1 << 30  # bytes beside what the process has once everything is imported
LONGEST_MESSAGE = 1000

# Where libraries are read from while a parser runs, as some are imported late.
_LIBRARIES = tuple(
    {
        *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).resolve().parents[2] / "src"),
        *filter(None, sys.path),  # installed packages are looked through for what they bring
    }
)
_SYSTEM = ("/proc/", "/sys/", "/dev/urandom", "/dev/null", "/etc/mime.types")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Events whose first arguments, so many, are paths that change.
_CHANGES = {
    **dict.fromkeys(("os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown"), 1),
    **dict.fromkeys(("os.truncate", "os.utime", "os.setxattr", "os.removexattr"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink", "shutil.move"), 2),
    **dict.fromkeys(("shutil.rmtree", "tempfile.mkstemp", "tempfile.mkdtemp"), 1),
}
_NEVER = (
    *("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill"),
    *("pty.", "socket.", "ctypes.", "webbrowser.", "pickle.find_class", "code.", "http.client."),
    *("urllib.", "ftplib.", "smtplib.", "syslog.", "os.startfile", "builtins.input"),
)


class ParserError(AssertionError):
    """A parser did with an input what it may not do."""


class Hang(BaseException):
    """An input takes too long; no parser may catch it."""


class Attempt(NamedTuple):
    """A call with an input.

    Args:
        call: What is called.
        allowed: The exceptions that are documented for it.
        named: What the message must have, as a rule the file; "" for what has no file.
        is_printable: Whether the message must be one line of printable characters; it is not
            where it holds names of files, which may be anything.
    """

    call: Callable[[], Any]
    allowed: tuple[type[Exception], ...] = (ValueError, FileNotFoundError)
    named: str = ""
    is_printable: bool = True


class Guard:
    """Runs attempts, and watches what they touch; a process has one.

    Args:
        folder: The only folder in which anything may be opened or changed.
        is_alarmed: Whether to break off what waits for ever; not where a fuzzer has an alarm
            of its own. Defaults to True.
    """

    def __init__(self, folder: Path, *, is_alarmed: bool = True) -> None:
        self.folder = f"{folder.resolve()}{os.sep}"
        self.is_alarmed = is_alarmed
        self.is_armed = False
        self.violations: list[str] = []
        sys.addaudithook(self._hook)

    def check(self, attempt: Attempt) -> Exception | None:
        """Make an attempt and return the documented exception it ended with, if any."""
        self.violations.clear()
        started = time.process_time()
        try:
            with self._limits():
                attempt.call()
            error = None
        except attempt.allowed as found:
            error = found
        except (Exception, Hang) as found:
            raise ParserError(
                f"{type(found).__name__}: {found}\n{traceback.format_exc()}"
            ) from found
        if self.violations:
            raise ParserError("; ".join(self.violations))
        taken = time.process_time() - started
        if taken > SECONDS:
            raise ParserError(f"it took {taken:.1f} s")
        if error is not None:
            check_message(error, attempt)
        return error

    @contextmanager
    def _limits(self) -> Iterator[None]:
        if self.is_alarmed:
            signal.signal(signal.SIGALRM, _hang)
            signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
        self.is_armed = True
        try:
            yield
        finally:
            self.is_armed = False
            if self.is_alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_armed:
            return
        fault = self._fault(event, arguments)
        if fault:
            # What is raised here may be caught by the parser, so it is noted too.
            self.violations.append(fault)
            raise PermissionError(fault)

    def _fault(self, event: str, arguments: tuple[Any, ...]) -> str:
        if event == "open":
            path, _, flags = arguments
            is_read = not (isinstance(flags, int) and flags & _WRITES)
            return "" if self._may(path, is_read) else f"it opened {path!r}"
        if event in _CHANGES:
            wrong = [path for path in arguments[: _CHANGES[event]] if not self._may(path, False)]
            return f"{event} of {wrong[0]!r}" if wrong else ""
        if event in ("exec", "compile", "marshal.loads"):
            return "" if _is_import_or_literal() else f"it ran {event}"
        return f"it ran {event} {arguments!r}" if event.startswith(_NEVER) else ""

    def _may(self, path: Any, is_read: bool) -> bool:
        if isinstance(path, int):  # a file that is open already
            return True
        # Links are not followed here: to use those in its folder is what a parser is for.
        place = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
        if f"{place}{os.sep}".startswith(self.folder):
            return True
        return is_read and place.startswith((*_LIBRARIES, *_SYSTEM))


def check_message(error: Exception, attempt: Attempt) -> None:
    """Refuse a message that is too long, no sentence, or does not name the file."""
    text = str(error)
    if attempt.named not in text:
        raise ParserError(f"{type(error).__name__} does not name the file: {text!r}") from error
    if not text or len(text) > LONGEST_MESSAGE:
        raise ParserError(f"a message of {len(text)} characters: {text[:200]!r}") from error
    if "Traceback" in text or (attempt.is_printable and not text.isprintable()):
        raise ParserError(f"no sentence: {text!r}") from error


def limit_memory(room: int = MEMORY) -> None:
    """Let the process take no more memory than so many bytes beside what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def only_documented_warnings() -> None:
    """Make errors of all warnings but those in docs/errors.md, and Pillow's own of odd images."""
    warnings.simplefilter("error")
    for message in (
        "The hierarchy of .* has no level above the classes",
        ".* is square but not symmetric, so it is read as embeddings",
        "The newest checkpoint is damaged",
        ".* integer labels are not 0 to",
    ):
        warnings.filterwarnings("ignore", message, UserWarning)
    warnings.filterwarnings("ignore", module=r"PIL\.")


def _hang(_signal: int, _frame: FrameType | None) -> None:
    raise Hang(f"it took more than {WALL_SECONDS} s")


def _is_import_or_literal() -> bool:
    """Whether code is compiled or run by an import, or by `ast`, which only reads it."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module == "ast" or (module or "").startswith(
            ("importlib._bootstrap", "_frozen_importlib")
        ):
            return True
        frame = frame.f_back
    return False
