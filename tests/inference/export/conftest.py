"""What the tests of exports share."""

import pytest
import torch
from trainings import trained

from coarse2fine import export_model
from coarse2fine.inference import export as exporting
from coarse2fine.inference.program import ExportError


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return the comparison and the exported folder of a kind of data, each made once."""
    found = {}

    def made(kind):
        if kind not in found:
            folder = tmp_path_factory.mktemp(kind)
            result = trained(kind, folder / "run")
            found[kind] = result, export_model(result, folder / "model")
        return found[kind]

    return made


@pytest.fixture
def without_programs(monkeypatch):
    """Leave out the programs, for tests of everything else: they take seconds to make."""

    def fail(*_):
        raise ExportError("left out")

    monkeypatch.setattr(exporting, "exported_program", fail)
