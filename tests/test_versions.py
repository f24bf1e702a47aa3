"""`python -m coarse2fine` tells what a report of a bug needs, also where something is missing."""

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import coarse2fine
from coarse2fine import __main__ as versions

NEEDED = [
    "numpy>=1.26",
    "torch>=2.10",
    'coarse2fine[report,train]; extra == "all"',
    "jinja2>=3.1; extra == 'report'",
    "matplotlib>=3.8; extra == 'report'",
    "huggingface_hub>=0.24; extra == 'hub'",
]
INSTALLED = {"numpy": "2.4.6", "torch": "2.13.0+cpu", "jinja2": "3.1.6"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch, request):
    def version(name):
        if name not in INSTALLED:
            raise PackageNotFoundError(name)
        return INSTALLED[name]

    if "really" not in request.node.name:
        monkeypatch.setattr(versions, "requires", lambda _: NEEDED)
        monkeypatch.setattr(versions, "version", version)


def test_a_process_really_tells():
    command = [sys.executable, "-m", "coarse2fine"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.startswith(f"coarse2fine {coarse2fine.__version__}\nPython ")
    assert platform.python_version() in out
    assert f"numpy {np.__version__}" in out
    assert f"torch {torch.__version__.partition('+')[0]}" in out  # wheels of PyPI name no build


def test_each_extra_is_installed_or_partly_or_not():
    assert list(versions.lines())[3:] == [
        "numpy 2.4.6, torch 2.13.0+cpu",
        "[report] jinja2 3.1.6, matplotlib is missing",
        "[hub] not installed",
    ]


def test_sources_that_are_not_installed_are_named(monkeypatch):
    def requires(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "requires", requires)
    assert list(versions.lines())[3:] == ["not installed: only its sources are on the path"]


def test_threads_are_told(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert list(versions.lines())[2].startswith("torch computes with 1 thread, ")


def test_a_broken_torch_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert list(versions.lines())[2].startswith("torch 2.13.0+cpu cannot be imported: import of")


@pytest.mark.parametrize(
    ("kind", "told"), [("cuda", "card 0, card 1; CUDA 12.8"), ("mps", "2 × mps"), (None, "no GPU")]
)
def test_gpus_are_named(kind, told):
    accelerator = SimpleNamespace(
        is_available=lambda: kind is not None,
        current_accelerator=lambda: SimpleNamespace(type=kind),
        device_count=lambda: 2,
    )
    cuda = SimpleNamespace(get_device_name=lambda index: f"card {index}")
    fake = SimpleNamespace(accelerator=accelerator, cuda=cuda, version=SimpleNamespace(cuda="12.8"))
    assert versions._devices(fake) == told
