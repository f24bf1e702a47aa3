"""What the tests of the commands share."""

import pytest
import torch

from coarse2fine.cli.app import run

from .calls import SHORT


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def c2f(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder and return its exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def c2f(*arguments):
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return c2f


@pytest.fixture(scope="session")
def comparison(tmp_path_factory):
    """The folder of a finished comparison."""
    path = tmp_path_factory.mktemp("comparison") / "run"
    assert run(["train", *SHORT, "--out", str(path), "--json"]) == 0
    return path
