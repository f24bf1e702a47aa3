"""What may not be written is told in one sentence, and is as it was."""

import os
import shutil
import sys

import faulty
import pytest
import tiny
from faulty import mounts  # noqa: F401

from coarse2fine import Hierarchy
from coarse2fine.editor import Session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="rights and mounts are Linux's")
SHORT = ("--epochs", "2", "--curriculum-epochs", "1")
REMEDY = "choose a place that can be written to, or make this one so"
DENIED = f"Permission denied; {REMEDY}"
READ_ONLY = f"Read-only file system; {REMEDY}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished comparison, and the table it was trained on."""
    folder = tmp_path_factory.mktemp("made")
    tiny.write_data(folder)
    Hierarchy.from_levels([[0, 0, 1, 1]]).save(folder / "levels.json")
    arguments = ("train", folder / tiny.DATA, *SHORT, "--out", folder / "run")
    ended = faulty.run(folder, faulty.c2f, *arguments)
    assert ended.code == 0, ended.err
    return folder


@pytest.fixture
def place(tmp_path):
    """A folder with a run that has only just begun, which becomes read-only."""
    place = tmp_path / "place"
    (place / "begun" / "seed-0" / "baseline").mkdir(parents=True)
    yield place
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o755)


# What each command cannot write, where everything below the place is read-only.
COMMANDS = {
    "train {made}/tiny.csv {short} --out {place}/new": "{place}/new",
    "train {made}/tiny.csv {short} --out {place}/begun": "{place}/begun",
    "report {made}/run --out {place}/report.html": "{place}/report.html",
    "figure curves {made}/run --out {place}/curves.svg": "{place}/curves.svg",
    "export {made}/run --out {place}/model.safetensors": "{place}/model.safetensors",
    "export {made}/run --out {place}/model": "{place}/model",
    "hierarchy {made}/levels.json --save {place}/h.json": "{place}/h.json",
    "paper tiny:TINY --out {place}/paper --executor processes:1": "{place}/paper/tiny.TINY.json",
}


def without_rights(place, command):
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o555)
    faulty.obey_rights()
    return faulty.c2f(*command)


def read_only_disk(place, command):
    take_disk(place)
    return faulty.c2f(*command)


def listing(place):
    return sorted(str(path) for path in place.rglob("*"))


def check(fault, what, command, unwritable, place, made):
    before = listing(place)
    names = {"made": made, "place": place, "short": " ".join(SHORT)}
    (place.parent / tiny.DATA).symlink_to(made / tiny.DATA)
    ended = faulty.run(place.parent, fault, place, command.format(**names).split())
    assert ended.code == 2, ended.err
    assert ended.last == f"error: {unwritable.format(**names)}: {what}"
    assert "Traceback" not in ended.err
    assert listing(place) == before


@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.startswith("paper")])
def test_a_folder_without_the_right_to_write_is_named(command, place, made):
    check(without_rights, DENIED, command, COMMANDS[command], place, made)


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.startswith("paper")])
def test_a_disk_that_can_only_be_read_is_named(command, place, made):
    check(read_only_disk, READ_ONLY, command, COMMANDS[command], place, made)


@pytest.mark.slow  # its worker loads torch first
@pytest.mark.usefixtures("mounts")
def test_a_sweep_that_may_not_write_ends_with_the_same_sentence(place, made):
    command = next(name for name in COMMANDS if name.startswith("paper"))
    check(read_only_disk, READ_ONLY, command, COMMANDS[command], place, made)


# ------------------------------------------------------------------------------- the editor


def edit(place, protect, what):
    path = place / "hierarchy.json"
    Hierarchy.from_levels([[0, 0, 1, 1]]).save(path)
    session = Session(path)
    before, digest = path.read_bytes(), session.read().digest
    protect(place)
    with pytest.raises(OSError, match=what) as caught:
        session.save(Hierarchy.from_levels([[0, 1, 1, 0]]).to_dict(), digest)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert session.outcome() == f"nothing was saved; {path} is as it was"
    assert faulty.names(place) == ["begun", "hierarchy.json"]


def take_rights(place):
    os.chmod(place, 0o555)
    faulty.obey_rights()


def take_disk(place):
    faulty.own_mounts()
    faulty.mount_read_only(place)
    os.chdir(place.parent)


def test_the_editor_says_that_it_may_not_save(place):
    ended = faulty.run(place.parent, edit, place, take_rights, REMEDY)
    assert ended.code == 0, ended.err


@pytest.mark.usefixtures("mounts")
def test_the_editor_says_that_the_disk_can_only_be_read(place):
    ended = faulty.run(place.parent, edit, place, take_disk, "the file is read-only")
    assert ended.code == 0, ended.err


# ------------------------------------------------------------- what is done can still be used


def test_a_finished_run_can_be_read_where_nothing_may_be_written(made, tmp_path):
    """Not even a lock is taken to show what is there, nor temporary files removed."""
    place = tmp_path / "place"
    ended = faulty.run(tmp_path, copy_and_report, made, place, tmp_path / "report.html")
    assert ended.code == 0, ended.err
    assert (tmp_path / "report.html").is_file()


def copy_and_report(made, place, page):
    shutil.copytree(made / "run", place)
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o555)
    faulty.obey_rights()
    try:
        return faulty.c2f("report", place, "--out", page)
    finally:
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o755)
