"""No integration is imported unless asked for; a missing library is named with its pip line."""

import subprocess
import sys
from pathlib import Path

import pytest

import coarse2fine.integrations

INTEGRATIONS = {  # each with the libraries it stands on, and its extra
    "lightning": (("lightning", "pytorch_lightning"), "lightning"),
    "transformers": (("transformers",), "transformers"),
    "sklearn": (("skorch",), "sklearn"),
    "keras": (("keras",), "keras"),
    "torchmetrics": (("torchmetrics",), "torchmetrics"),
}


def test_every_integration_is_listed_here():
    folder = Path(coarse2fine.integrations.__file__).parent
    assert {path.stem for path in folder.glob("[!_]*.py")} == INTEGRATIONS.keys()


def run(code):
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )
    return finished.returncode, finished.stdout + finished.stderr


def test_no_library_is_imported_unless_asked_for():
    libraries = [library for libraries, _ in INTEGRATIONS.values() for library in libraries]
    code = (
        "import sys, coarse2fine.integrations\n"
        "from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy, find_head\n"
        f"print([name for name in {libraries} if name in sys.modules])"
    )
    assert run(code) == (0, "[]\n")


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_a_missing_library_is_named_with_the_line_that_installs_it(name):
    libraries, extra = INTEGRATIONS[name]
    code = (
        "import sys\n"
        f"for library in {libraries}: sys.modules[library] = None\n"
        f"import coarse2fine.integrations.{name}"
    )
    status, output = run(code)
    assert status == 1
    assert "coarse2fine.errors.MissingExtraError" in output
    assert f"install it by pip install 'coarse2fine[{extra}]'." in output.splitlines()[-1]
