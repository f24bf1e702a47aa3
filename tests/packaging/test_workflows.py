"""GitHub's workflows check what .ci/run checks, and nothing they use changes unnoticed.

That they are well-formed is checked by actionlint, in `make lint`.
"""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path.read_text() for path in (GITHUB / "workflows").glob("*.yml")}
JOBS = [
    pytest.param(job, id=f"{name}-{key}")
    for name, text in WORKFLOWS.items()
    for key, job in yaml.safe_load(text)["jobs"].items()
]
FORMS = [path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]


def targets(text):
    return {name for line in re.findall(r"\bmake ([a-z -]+)", text) for name in line.split()}


def test_they_are_those_that_are_described():
    assert WORKFLOWS.keys() == {"ci", "release"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_to_commits(name):
    used = re.findall(r"uses: (.*)", WORKFLOWS[name])
    assert len(used) > 5
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\S+", action), action


def test_an_action_has_one_pin():
    pins = {tuple(pin) for t in WORKFLOWS.values() for pin in re.findall(r"uses: (.*)@(.*)", t)}
    assert len({action for action, _ in pins}) == len(pins) > 5


def test_what_must_hold_before_a_change_lands_is_checked_there_too():
    ci = yaml.safe_load(WORKFLOWS["ci"])["jobs"]
    found = targets(WORKFLOWS["ci"])
    for job in ci.values():
        for entry in job.get("strategy", {}).get("matrix", {}).get("target", ()):
            found |= set(entry.split())
    makefile = (ROOT / "Makefile").read_text()
    assert (
        targets((ROOT / ".ci" / "run").read_text()) - {"environment", "environment-lowest"} <= found
    )
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in found | targets(makefile))


def test_the_versions_of_python_are_those_that_the_package_names():
    project = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    matrix = yaml.safe_load(WORKFLOWS["ci"])["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == named
    assert f'requires-python = ">={named[0]}"' in project
    assert [os.partition("-")[0] for os in matrix["os"]] == ["ubuntu", "macos", "windows"]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_has_no_rights_that_it_does_not_need(job):
    writes = {name for name, right in job.get("permissions", {}).items() if right == "write"}
    used = " ".join(step.get("uses", "") + step.get("run", "") for step in job.get("steps", ()))
    needs = {
        "id-token": "gh-action-pypi-publish" in used or "deploy-pages" in used,
        "pages": "deploy-pages" in used,
        "contents": "gh release" in used,
    }
    assert writes == {name for name, needed in needs.items() if needed}
    assert not (writes and "actions/checkout" in used)  # nor runs code of this repository with them


@pytest.mark.parametrize("text", WORKFLOWS.values(), ids=WORKFLOWS)
def test_there_are_no_secrets_and_names_of_others_are_no_code(text):
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    scripts = re.findall(r"run: (?:\|\n(?:\s{10,}.*\n)+|.*)", text)
    assert scripts
    assert not any("${{ github" in script for script in scripts)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one_of_github(path):
    form = yaml.safe_load(path.read_text())
    assert (
        {"name", "description", "body"} <= form.keys() <= {"name", "description", "labels", "body"}
    )
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert ids
    assert len(set(ids)) == len(ids)
    for part in form["body"]:
        assert part["type"] in {"markdown", "textarea"}
        assert "value" in part["attributes"] or "label" in part["attributes"]


def test_a_report_of_a_bug_has_versions():
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text())
    (versions,) = (part for part in form["body"] if part.get("id") == "versions")
    assert "`python -m coarse2fine`" in versions["attributes"]["description"]
    assert versions["validations"] == {"required": True}
