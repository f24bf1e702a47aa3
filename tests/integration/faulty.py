"""Processes for which the system itself is at fault: its disks, its rights, its limits.

They are forked from a server that has torch loaded. What they may do to their surroundings,
such as mounts, ends with them.
"""

import ctypes
import multiprocessing
import os
import resource
import struct
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import NamedTuple

import killing
import pytest

from coarse2fine import fit
from coarse2fine.cli import app
from coarse2fine.cli.process import prepared

# What the server has loaded, none of its processes need load.
killing.LOADED = (
    *killing.LOADED,
    *("coarse2fine.cli.app", "coarse2fine.cli.comparison", "coarse2fine.report.page", "pytest"),
    *("coarse2fine.runs.restore", "matplotlib.figure", "rich.progress", "torch.utils.data"),
)

NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000
READ_ONLY, REMOUNT, BIND, PRIVATE = 1, 32, 4096, (1 << 18) | 16384
CAPABILITY_CALLS = {"x86_64": (125, 126), "aarch64": (90, 91)}  # the numbers of get and set
UNLIMITED = resource.RLIM_INFINITY
OVERRIDE_RIGHTS, SEARCH_ANYWHERE = 1 << 1, 1 << 2


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def last(self):
        """The last line of the standard error."""
        return (self.err.splitlines() or [""])[-1]


def run(folder, function, *args, timeout=killing.PATIENCE):
    """Call a function in a process of its own, whose output goes to files in a folder."""
    process = begin(folder, function, *args)
    err = folder / "stderr.txt"
    try:
        process.join(timeout)
        assert process.exitcode is not None, f"it hangs: {err.read_text()}"
    finally:
        process.kill()
        process.join()
    return Ended(process.exitcode, (folder / "stdout.txt").read_text(), err.read_text())


def begin(folder, function, *args):
    """Start what `run` waits for."""
    streams = [str(folder / name) for name in ("stdout.txt", "stderr.txt")]
    return killing.in_server(_call, *streams, function, args)


def _call(out, err, function, args):
    for path, stream in ((out, 1), (err, 2)):
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(handle, stream)
    killing.hurry()
    multiprocessing.set_start_method("fork", force=True)  # what it starts needs no server
    try:
        code = function(*args)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def c2f(*arguments):
    """Run a command in this process, and return its exit code."""
    with prepared():
        return app.run([str(argument) for argument in arguments])


def names(folder):
    """What a folder holds."""
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------- a training of few bytes


def small_fit(out, methods=("continuous",), **settings):
    """A baseline and a curriculum of three epochs each."""
    return fit(
        killing.samples(),
        model=killing.Net,
        methods=methods,
        out=out,
        epochs=3,
        curriculum_epochs=2,
        max_levels=2,
        **{**killing.SETTINGS, **settings},
    )


def small_outcome(folder):
    """What `small_fit` comes to without any fault."""
    process = killing.in_server(_fit_at_ease, folder)
    killing.finish(process)
    return killing.outcome(folder)


def _fit_at_ease(folder):
    killing.hurry()
    small_fit(folder)


# ----------------------------------------------------------------------- what can be at fault


def limit_files(size):
    """Let no file become larger than so many bytes."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))


def own_mounts():
    """Have this process mount what nobody else sees."""
    user, group = os.getuid(), os.getgid()
    _check(LIBC.unshare(NEW_MOUNTS if user == 0 else NEW_MOUNTS | NEW_USER))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount("none", "/", None, PRIVATE)


def mount_small(folder, kibibytes):
    """Mount a disk of a given size."""
    _mount("tmpfs", folder, "tmpfs", 0, f"size={kibibytes}k")


def resize(folder, kibibytes):
    """Change the size of what `mount_small` mounted."""
    _mount("tmpfs", folder, "tmpfs", REMOUNT, f"size={kibibytes}k")


def mount_read_only(folder):
    """Have a folder be on a disk that can only be read."""
    _mount(folder, folder, None, BIND)
    _mount("none", folder, None, REMOUNT | BIND | READ_ONLY)


def obey_rights():
    """Have permissions bind this process even where it is root."""
    if os.getuid():
        return
    get, put = CAPABILITY_CALLS[os.uname().machine]
    header, rights = struct.pack("II", 0x20080522, 0), ctypes.create_string_buffer(24)
    _check(LIBC.syscall(get, header, rights))
    effective, *others = struct.unpack("6I", rights.raw)
    effective &= ~(OVERRIDE_RIGHTS | SEARCH_ANYWHERE)
    _check(LIBC.syscall(put, header, struct.pack("6I", effective, *others)))


LIBC = ctypes.CDLL(None, use_errno=True)


def _mount(source, target, kind, flags, data=""):
    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    _check(LIBC.mount(*names, ctypes.c_ulong(flags), data.encode()))


def _check(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def can_mount():
    """Whether this system lets a process have mounts of its own."""
    if sys.platform != "linux":
        return False
    process = killing.in_server(own_mounts)
    process.join(60)
    return process.exitcode == 0


@pytest.fixture
def mounts():
    """Skips a test where there can be no mounts."""
    if not can_mount():
        pytest.skip("this system allows no mounts of one's own")
