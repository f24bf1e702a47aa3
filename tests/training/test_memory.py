"""Keeping freed memory."""

import platform

import pytest
import torch

from coarse2fine.training import memory


def page_faults():
    """How many pages the system had to give for the same 64 MB, five times over."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(16 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_that_was_freed_is_used_again():
    assert memory.keep_freed_memory() is True
    for _ in range(4):  # until what was freed before has been used up
        page_faults()
    assert page_faults() < (64 << 20) / 4096 / 10


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    monkeypatch.setattr(memory.ctypes, "CDLL", None)
    assert memory.keep_freed_memory() is False


def test_a_c_library_without_the_function_is_left_alone(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert memory.keep_freed_memory() is False
