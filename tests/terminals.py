"""A pseudo-terminal in the place of a standard stream."""

import os
import sys
import threading

import pytest

# Everything that rich and the library look at.
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES")


class Terminal:
    """A terminal that keeps what is written to it.

    Args:
        monkeypatch: Of the test.
        stream: ``"stdout"`` or ``"stderr"``, which is replaced.
        columns: How wide it is.
        **environment: What is set for the test, beside a TERM and a COLORTERM of today's.
    """

    def __init__(self, monkeypatch, stream, columns=200, **environment):
        tty = pytest.importorskip("tty", reason="Windows has no pseudo-terminals")
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        variables = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(columns)}
        for name, value in (variables | environment).items():
            monkeypatch.setenv(name, value)
        self._own, other = os.openpty()
        tty.setraw(other)  # lines end as they were written
        self._file = os.fdopen(other, "w", encoding="utf-8")
        self._read = []
        self._reader = threading.Thread(target=self._follow, daemon=True)  # its buffer is small
        self._reader.start()
        monkeypatch.setattr(sys, stream, self._file)

    def _follow(self):
        try:
            while data := os.read(self._own, 1 << 16):
                self._read.append(data)
        except OSError:  # how Linux tells the end
            pass

    def text(self):
        """Close it, and return all that was written."""
        self._file.close()
        self._reader.join()
        os.close(self._own)
        return b"".join(self._read).decode()
