"""The package as a whole: what importing it costs, its layers, its wheel."""

import ast
import re
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


# The parts from the bottom up, as docs/design.md has them. Each may import what comes before it;
# the core is the top-level files and their two folders.
CORE = {"", "_affinity", "_hierarchy"}
ORDER = (
    {"_util"},
    CORE,
    {"editor", "data"},
    {"models", "methods"},
    {"runs"},
    {"training"},
    {"inference"},
    {"figures"},
    {"experiments"},
    {"report", "integrations"},
    {"cli"},
)


def parts_below(part):
    """What a part may import."""
    place = next(place for place, parts in enumerate(ORDER) if part in parts)
    own = CORE if part in CORE else {part}
    return set().union(own, *ORDER[:place])


# The methods `plot` of a hierarchy and of a result import their figures when they are called.
PLOTTED = {SOURCE / "hierarchy.py", SOURCE / "runs" / "result.py"}


def imported_parts(path, *, at_once=False):
    """The folders of the package that one of its files imports, "" for the core.

    With `at_once`, only those that are imported with the file itself.
    """
    package = ["coarse2fine", *path.relative_to(SOURCE).parent.parts]
    tree = ast.parse(path.read_text())
    for node in tree.body if at_once else ast.walk(tree):
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


def test_the_design_has_the_same_order():
    design = (ROOT / "docs" / "design.md").read_text()
    order = re.search(r"in this order: (.+?)\. tests/", design)[1].split(";")
    found = [set(re.findall(r"`(\w+)`", layer)) or CORE for layer in order]
    assert found == list(ORDER)


def test_every_public_file_of_the_core_is_in_the_design():
    layout = (ROOT / "docs" / "design.md").read_text().partition("## Four paths")[0]
    for path in set(SOURCE.glob("[!_]*.py")) - {SOURCE / "errors.py"}:
        assert path.name in layout, path


def test_every_part_has_its_layer():
    assert {part_of(path) for path in SOURCE.rglob("*.py")} == set().union(*ORDER)


@pytest.mark.parametrize(
    "path",
    sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"}),  # that one resolves all names
    ids=lambda path: path.relative_to(SOURCE).as_posix(),
)
def test_imports_point_downwards_only(path):
    part = part_of(path)
    later = {"figures"} if path in PLOTTED else set()
    assert set(imported_parts(path)) <= parts_below(part) | later
    assert later.isdisjoint(imported_parts(path, at_once=True))


FILES = {"config.json", "metrics.jsonl", "result.json", "predictions.safetensors"}
FILE_NAMES = {"CONFIG", "METRICS", "HIERARCHY", "RESULT", "CHECKPOINT", "MODEL", "PREDICTIONS"}
# What parses JSON but that of runs: hierarchies and taxonomies, the class names in a checkpoint,
# the editor's requests, an experiment's results, whether a folder is an export.
JSON_READERS = {
    "_hierarchy/files.py",
    "checkpoints.py",
    "cli/hierarchy_edit.py",
    "data/sets/sentences.py",
    "editor/requests.py",
    "editor/session.py",
    "experiments/content.py",
    "inference/folder.py",
    "taxonomy.py",
}


def imported_names(path, module):
    """What a file imports of a module whose name ends like that."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    return {a.name for n in nodes if (n.module or "").endswith(module) for a in n.names}


def constants(path):
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)]
    return {node.value for node in nodes if isinstance(node.value, str)}


def test_one_module_knows_the_names_of_a_runs_files():
    owner = SOURCE / "runs" / "directory.py"
    assert constants(owner) >= FILES
    for path in set(SOURCE.rglob("*.py")) - {owner}:
        assert not FILES & constants(path), path
        if path.parent != owner.parent:  # others get typed values, and no names
            assert not FILE_NAMES & imported_names(path, "runs.directory"), path


def test_one_module_knows_what_the_folders_of_seeds_are_called():
    naming = {path for path in SOURCE.rglob("*.py") if "seed-" in constants(path)}
    assert naming == {SOURCE / "runs" / "find.py"}


def test_nobody_else_opens_the_json_of_a_run():
    readers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if {"parse_json", "decode_json"} & imported_names(path, "_util.files")
    }
    assert {name for name in readers if not name.startswith("runs/")} == JSON_READERS


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
    pages = ("figures/colours.css", "report/page/report.html", "report/page/js/main.js")
    for page in (*pages, "editor/page/editor.html"):
        assert f"coarse2fine/{page}" in files
