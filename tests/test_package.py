"""The package as a whole: what importing it costs, its layers, its wheel."""

import ast
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import coarse2fine

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "coarse2fine"


def run(*command, cwd=None):
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_every_public_name_resolves_and_has_a_docstring():
    for name in coarse2fine.__all__:
        assert getattr(coarse2fine, name).__doc__, name
    assert dir(coarse2fine) == sorted(coarse2fine.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'coarse2fine' has no attribute 'nothing'"):
        _ = coarse2fine.nothing


def test_torch_is_imported_only_when_needed():
    code = (
        "import sys, coarse2fine\n"
        "coarse2fine.Hierarchy.from_levels([[0, 0, 1]]).to_text()\n"
        "coarse2fine.cluster_distances([[0, 1, 2], [1, 0, 3], [2, 3, 0]])\n"
        "print('torch' in sys.modules)"
    )
    assert run(sys.executable, "-c", code).strip() == "False"


# What each part may import of the others; the core, the top-level files, imports only
# itself, and the plots of it where one is asked for.
LAYERS = {
    "": set(),
    "_affinity": set(),
    "plots": set(),
    "editor": set(),
    "data": set(),
    "models": {"data"},
    "methods": {"data"},
    "training": {"data", "models", "methods", "plots"},
    "experiments": {"data", "models", "methods", "training"},
    "report": {"data", "models", "methods", "training", "experiments", "plots"},
    "integrations": {"data", "models", "methods", "training", "experiments"},
    "cli": {"data", "models", "methods", "training", "experiments", "report", "editor"},
}


def imported_parts(path):
    """The folders of the package that one of its files imports, "" for the core."""
    package = ["coarse2fine", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            named = [[*base, *(node.module or "").split(".")]] if node.module else []
            modules = named or [[*base, name.name] for name in node.names]
        elif isinstance(node, ast.Import):
            modules = [name.name.split(".") for name in node.names]
        else:
            continue
        for module in modules:
            if module[0] == "coarse2fine" and len(module) > 1:
                yield module[1] if (SOURCE / module[1]).is_dir() else ""


def part_of(path):
    """The folder of the package that a file is in, "" for the core."""
    return "".join(path.parent.relative_to(SOURCE).parts[:1])


def test_every_part_has_its_layer():
    assert {part_of(path) for path in SOURCE.rglob("*.py")} == set(LAYERS)


@pytest.mark.parametrize(
    "path",
    sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"}),  # that one resolves all names
    ids=lambda path: path.relative_to(SOURCE).as_posix(),
)
def test_imports_point_downwards_only(path):
    part = part_of(path)
    allowed = {"", part} | LAYERS[part]
    if not part:
        allowed |= {"_affinity", "plots"}
    assert set(imported_parts(path)) <= allowed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_installs_and_runs_in_a_clean_environment(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "clean", with_pip=True)
    python = str(tmp_path / "clean" / "bin" / "python")
    install = (python, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt")
    run(*install, "torch", cwd=ROOT)
    run(*install, str(wheel), cwd=ROOT)
    code = (
        "import torch, coarse2fine as c2f\n"
        "model = torch.nn.Linear(8, 6)\n"
        "criterion = c2f.CoarseToFineLoss(c2f.Hierarchy.from_classifier(model))\n"
        "curriculum = c2f.Curriculum(criterion, epochs=3)\n"
        "criterion(model(torch.randn(4, 8)), torch.arange(4)).backward()\n"
        "print(c2f.__version__, c2f.__file__)"
    )
    version, where = run(python, "-c", code, cwd=tmp_path).split()
    assert version == coarse2fine.__version__
    assert str(tmp_path) in where
    files = run(python, "-m", "pip", "show", "--files", "coarse2fine", cwd=tmp_path)
    assert "coarse2fine/py.typed" in files
    pages = ("_colours.css", "report/page/report.html", "report/page/js/main.js")
    for page in (*pages, "editor/page/editor.html"):
        assert f"coarse2fine/{page}" in files
