"""`c2f hierarchy edit`."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest
from made_runs import make_run

from coarse2fine import Hierarchy
from coarse2fine.cli import hierarchy_edit
from coarse2fine.errors import RunError

NAMES = ["cat", "dog", "car", "van"]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.json"
    Hierarchy.from_levels([[0, 0, 1, 1]], NAMES).save(path)
    return path


@pytest.fixture
def start(tmp_path):
    """A function that runs `c2f hierarchy edit` as a process, and returns it with its address."""
    processes = []

    def start(*arguments):
        words = [sys.executable, "-m", "coarse2fine.cli", "hierarchy", "edit", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen([*words, "--no-browser"], cwd=tmp_path, **pipes))
        return processes[-1], processes[-1].stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def ask(address, method, name, body=None):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    headers = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body)
    connection.request(method, parts.path + name, data, headers)
    content = json.loads(connection.getresponse().read())
    connection.close()
    return content


def save(address, levels):
    found = ask(address, "GET", "hierarchy")
    hierarchy = {**found["hierarchy"], "levels": levels}
    return ask(address, "PUT", "hierarchy", {"hierarchy": hierarchy, "replaces": found["digest"]})


def save_all(address, choices):
    for levels in choices:
        save(address, levels)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda it: it.name)
def test_a_signal_ends_it_well(start, saved, number):
    process, address = start("saved.json")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{40,}/", address)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "")
    assert err.splitlines() == [
        "editing saved.json; Ctrl-C here or Close on the page ends it",
        f"nothing was saved; {saved.resolve()} is as it was",
    ]


def test_the_page_ends_it_and_the_last_word_is_where_the_old_file_is(start, saved):
    process, address = start("saved.json")
    save(address, [[0, 1, 1, 1]])
    ask(address, "POST", "quit", {})
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err.splitlines()[-1] == f"saved as {saved.resolve()}; the old one is {saved}.~1~"
    assert Hierarchy.load(saved) == Hierarchy.from_levels([[0, 1, 1, 1]], NAMES)


def test_a_kill_amid_saving_leaves_a_whole_file_and_the_old_one(start, saved):
    choices = [[0, 1, 1, 1]], [[0, 0, 0, 1]]
    old = saved.read_bytes()
    process, address = start("saved.json")
    save(address, choices[0])
    threading.Timer(0.3, process.kill).start()
    with pytest.raises((OSError, http.client.HTTPException)):
        save_all(address, choices * 100_000)
    process.communicate(timeout=120)
    whole = [Hierarchy.from_levels(levels, NAMES) for levels in choices]
    assert Hierarchy.load(saved) in whole
    assert saved.with_name("saved.json.~1~").read_bytes() == old


def test_it_opens_the_browser_at_its_address(saved, capsys, monkeypatch):
    opened = threading.Event()

    def open_page(address):
        opened.address = address
        opened.set()
        ask(address, "POST", "quit", {})

    monkeypatch.setattr("webbrowser.open", open_page)
    hierarchy_edit.command(saved)
    assert opened.is_set()
    assert capsys.readouterr().out == f"{opened.address}\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tree.csv", "parent,child\na,b\n", "is not a hierarchy's JSON; make one by c2f hierarchy"),
        ("tree.json", '{"animal": ["cat", "dog"]}', "make one by c2f hierarchy"),
        ("model.safetensors", b"\x00\xff", "make one by c2f hierarchy"),
        ("broken.json", "{", "not readable as JSON"),
        ("wrong.json", '{"format": "coarse2fine-hierarchy", "version": 9}', "version 9"),
    ],
)
def test_what_is_no_hierarchy_is_said_in_one_sentence(write, name, content, message):
    path = write(name, content)
    with pytest.raises(ValueError, match=message) as caught:
        hierarchy_edit.command(path)
    assert str(path) in str(caught.value)


def test_a_folder_and_a_missing_file_are_said(tmp_path):
    with pytest.raises(ValueError, match="is not a hierarchy's JSON"):
        hierarchy_edit.command(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.json"):
        hierarchy_edit.command(tmp_path / "nothing.json")


# ------------------------------------------------------------------------------- from a run

TREE = Hierarchy.from_levels([[0, 0, 1, 1]], NAMES)


@pytest.fixture
def run(tmp_path):
    """A comparison in runs/animals, begun by `c2f train`."""
    command = "/bin/c2f train 'my animals/' --seeds 2 --out=runs/animals --hierarchy old.json"
    for method, hierarchy in (("baseline", None), ("continuous", TREE)):
        path = tmp_path / "runs" / "animals" / "seed-0" / method
        data = {"predictions": [0, 1, 2, 3], "targets": [0, 1, 2, 3], "class_names": NAMES}
        make_run(path, method=method, hierarchy=hierarchy, command=command, **data)
    return tmp_path / "runs" / "animals"


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["runs/animals"], "runs/animals-hierarchy.json"),
        (["runs/animals/"], "runs/animals-hierarchy.json"),
        (["runs/animals/seed-0/continuous"], "runs/animals-hierarchy.json"),
        (["runs/animals", "--out", "tree.json"], "tree.json"),
    ],
)
def test_a_run_is_edited_as_a_new_file_and_never_changed(start, run, tmp_path, arguments, name):
    before = files(run)
    process, address = start(*arguments)
    found = ask(address, "GET", "hierarchy")
    assert (found["hierarchy"]["levels"], found["digest"]) == ([[0, 0, 1, 1]], None)
    assert not (tmp_path / name).exists()
    assert save(address, [[0, 1, 1, 1]])["backup"] is None
    save(address, [[0, 0, 0, 1]])
    ask(address, "POST", "quit", {})
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert Hierarchy.load(tmp_path / name) == Hierarchy.from_levels([[0, 0, 0, 1]], NAMES)
    assert files(run) == before
    command = out.strip().removeprefix("train with it by: ")
    assert command.startswith("c2f train 'my animals/' --seeds 2 --hierarchy ")
    assert (tmp_path / command.split()[-1]).resolve() == tmp_path / name
    assert found["command"] == command


def test_a_run_that_is_not_saved_leaves_nothing(start, run):
    process, address = start(str(run))
    ask(address, "POST", "quit", {})
    out, err = process.communicate(timeout=120)
    assert out == ""
    assert err.splitlines()[-1].startswith("nothing was saved; there is no ")
    assert [path.name for path in run.parent.iterdir()] == ["animals"]


def test_the_command_for_a_file_leaves_the_data_open(start, saved):
    process, address = start(saved.name)
    save(address, [[0, 1, 1, 1]])
    ask(address, "POST", "quit", {})
    out, _ = process.communicate(timeout=120)
    assert out == "train with it by: c2f train DATA --hierarchy saved.json\n"


def test_a_file_that_is_there_is_not_overwritten(run, saved):
    with pytest.raises(FileExistsError, match=r"edit it by c2f hierarchy edit .*saved\.json, or"):
        hierarchy_edit.command(run, saved)


def test_a_run_without_a_hierarchy_says_how_to_make_one(run):
    with pytest.raises(RunError, match="has no hierarchy to edit; make one by c2f hierarchy"):
        hierarchy_edit.command(run / "seed-0" / "baseline")


def test_a_folder_for_the_file_that_is_not_there_is_said(run, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere; make it first"):
        hierarchy_edit.command(run, tmp_path / "nowhere" / "tree.json")
