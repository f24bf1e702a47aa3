"""Keeping freed processes."""

import platform
import subprocess
import sys

import pytest

from coarse2fine.training import processes

# How many pages the system has to give for the same 64 MB, five times over, in the end.
PAGE_FAULTS = """
import resource, torch
from coarse2fine.training import processes

assert {is_left} or processes.keep_freed_memory() is True
for _ in range(8):  # until what was freed before has been used up
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(16 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*, is_kept):
    """Count them in a process of its own, as it is for the whole of a process."""
    code = PAGE_FAULTS.format(is_left=not is_kept)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_that_was_freed_is_used_again():
    pages = (64 << 20) / 4096
    assert page_faults(is_kept=True) < pages / 10
    assert page_faults(is_kept=False) > pages


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(processes.sys, "platform", "darwin")
    monkeypatch.setattr(processes.ctypes, "CDLL", None)
    assert processes.keep_freed_memory() is False


def test_a_c_library_without_the_function_is_left_alone(monkeypatch):
    monkeypatch.setattr(processes.sys, "platform", "linux")
    monkeypatch.setattr(processes.ctypes, "CDLL", lambda _: object())
    assert processes.keep_freed_memory() is False
