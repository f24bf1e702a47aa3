"""What the package needs is pinned, listed with its licence, and put into a bill of materials."""

import json
import re
import sys
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("tomllib", reason="the tools need Python 3.11, as constraints.txt does")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import dependencies  # noqa: E402
import licences  # noqa: E402
import lowest  # noqa: E402
import sbom  # noqa: E402
from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402

LINES = (ROOT / "constraints.txt").read_text().splitlines()
PINS = [Requirement(line) for line in LINES if line and not line.startswith("#")]
GROUPS = dependencies.groups()
# pip installs all others, `make` its pinned version first; an environment may have another.
WITHOUT_PIN = {"pip"}


@pytest.fixture(scope="module")
def everything():
    return dependencies.at_run_time()


# ---------------------------------------------------------------------------------------- pins


def test_every_pin_is_exact_and_once():
    for pin in PINS:
        assert re.fullmatch(r"==[\w.]+", str(pin.specifier)), pin
    names = [canonicalize_name(pin.name) for pin in PINS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_all_that_is_installed_is_pinned_to_what_is_installed(group, everything):
    try:
        found = dependencies.needed(GROUPS[group]) if group else everything
    except SystemExit as error:
        pytest.skip(str(error))
    pins = {canonicalize_name(pin.name): str(pin.specifier) for pin in PINS}
    wanted = {name: f"=={dependencies.version_of(x)}" for name, x in found.items()}
    assert {n: v for n, v in wanted.items() if n not in WITHOUT_PIN and pins.get(n) != v} == {}


def test_the_pins_meet_what_pyproject_asks_for():
    pins = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in PINS}
    asked = [*dependencies.direct().values(), *GROUPS.values()]
    for line in (line for lines in asked for line in lines):
        assert line.specifier.contains(pins[canonicalize_name(line.name)]), line


def test_extras_are_what_users_install_and_tools_are_groups():
    extras = dependencies.direct()
    assert GROUPS.keys() == {"dev", "docs", "torture", "audit", "release"}
    assert not extras.keys() & GROUPS.keys()
    tools = {line.name for lines in GROUPS.values() for line in lines}
    assert not tools & {line.name for lines in extras.values() for line in lines}
    assert {"pytest", "ruff", "mypy", "ipykernel", "nbclient", "nbformat"} <= tools


def test_the_extra_all_stands_for_the_others():
    text = (ROOT / "pyproject.toml").read_text()
    named = re.search(r'^all = \["coarse2fine\[(.*)\]"\]$', text, re.M)[1]
    assert named.split(",") == sorted(dependencies.direct().keys() - {dependencies.CORE})


def test_the_lowest_versions_are_those_that_pyproject_begins_with():
    core = dependencies.direct()[dependencies.CORE]
    pins = [Requirement(line) for line in lowest.pins()]
    floors = {pin.name: next(iter(pin.specifier)).version for pin in pins}
    assert {f"{each.name}>={floors[each.name]}" for each in core} == set(map(str, core))
    assert set(lowest.TEST_TOOLS) <= floors.keys()


def test_what_is_needed_in_turn_is_found(everything):
    assert {"torch", "sympy", "mpmath", "datasets", "aiohttp", "narwhals"} <= everything.keys()
    assert not {"pytest", "ruff", "cyclonedx-bom", "pip"} & everything.keys()


# ------------------------------------------------------------------------------------ licences

# Licences by which a work that needs the package may be given away under Apache-2.0.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause",
    "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip


def test_every_licence_is_known_and_goes_with_apache(everything):
    for name, found in everything.items():
        licence = licences.licence_of(found)
        assert set(re.split(r" AND | OR ", licence)) <= ALLOWED, (name, licence)


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "AGPL-3.0", "MIT AND GPL-2.0", "", "None"])
def test_other_licences_would_be_noticed(licence):
    other = SimpleNamespace(metadata=Message())
    other.metadata["Name"], other.metadata["License"] = "other", licence
    assert not set(re.split(r" AND | OR ", licences.licence_of(other))) <= ALLOWED


def test_the_page_is_what_the_tool_writes():
    assert licences.PAGE.read_text() == licences.page(), "write it anew by: make licences"


def test_the_page_lists_what_pyproject_asks_for():
    page = licences.PAGE.read_text()
    for extra, lines in dependencies.direct().items():
        title = f"extra `{extra}`" if extra else "Always"
        part = re.search(rf"{re.escape(title)}\n\n(.*?)\n\n", page + "\n", re.S)[1]
        listed = {canonicalize_name(row.split("|")[1].strip()) for row in part.splitlines()[2:]}
        assert listed == {canonicalize_name(line.name) for line in lines}


# ------------------------------------------------------------------------- the bill of materials


def test_a_bill_keeps_what_is_wanted_and_what_needs_what():
    parts = [("numpy", "2"), ("torch", "3"), ("sympy", "1"), ("pytest", "9")]
    whole = {
        "bomFormat": "CycloneDX",
        "metadata": {"component": {"name": "coarse2fine"}, "tools": {}},
        "components": [
            {"name": name, "bom-ref": f"{name}=={version}", "externalReferences": []}
            for name, version in parts
        ],
        "dependencies": [
            {"ref": "torch==3", "dependsOn": ["sympy==1"]},
            {"ref": "pytest==9", "dependsOn": ["numpy==2"]},
            {"ref": "numpy==2"},
        ],
    }
    found = sbom.reduced(whole, {"numpy", "torch", "sympy"})
    assert [part["name"] for part in found["components"]] == ["numpy", "torch", "sympy"]
    assert {entry["ref"]: entry["dependsOn"] for entry in found["dependencies"]} == {
        "numpy==2": [],
        "root-component": ["numpy==2", "torch==3"],
        "sympy==1": [],
        "torch==3": ["sympy==1"],
    }
    assert "externalReferences" not in json.dumps(found)


@pytest.mark.slow
def test_the_bill_is_the_same_every_time_and_names_everything(tmp_path, everything):
    pytest.importorskip("cyclonedx_py", reason="needs the group audit")
    for name in ("one", "two"):
        sbom.main(tmp_path / f"{name}.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    found = json.loads((tmp_path / "one.json").read_text())
    listed = {canonicalize_name(part["name"]): part for part in found["components"]}
    assert listed.keys() == everything.keys()
    assert all(part["version"] == everything[name].version for name, part in listed.items())
    assert all(part["purl"].startswith("pkg:") for part in listed.values())
    assert "timestamp" not in found["metadata"]
    assert "serialNumber" not in found
