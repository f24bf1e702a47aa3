"""What tests of experiments share."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import animals
import pytest
import torch

from coarse2fine.executors import Workers
from coarse2fine.experiments import runner


@contextmanager
def one_thread(_: str) -> Iterator[Workers]:
    with ThreadPoolExecutor(1) as executor:
        yield Workers(executor, 1, 1, CancelledError)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The current directory, with data; trainings are carried out in a thread of this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "workers", one_thread)
    animals.write_data(tmp_path)
    threads = torch.get_num_threads()
    yield tmp_path
    torch.set_num_threads(threads)
