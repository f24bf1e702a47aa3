"""Saving from the editor: what is written, what is kept, and that nothing is lost."""

import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from coarse2fine import Hierarchy
from coarse2fine.editor import Session
from coarse2fine.editor.session import ChangedError

from .conftest import CLASSES, LEVELS, OTHER, content


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_it_writes_what_hierarchy_save_would(client, path, tmp_path):
    status, saved = client.save(OTHER, cluster_names=[["cat", "the rest 😀"]])
    assert (status, saved["backup"]) == (200, "animals.json.~1~")
    expected = Hierarchy.from_levels(OTHER, CLASSES, [["cat", "the rest 😀"]])
    expected.save(tmp_path / "expected.json")
    assert path.read_bytes() == (tmp_path / "expected.json").read_bytes()
    assert saved["digest"] == client.digest()


def test_the_old_file_is_kept_once_a_session(client, serve, path):
    old = path.read_bytes()
    assert client.save(OTHER)[1]["backup"] == "animals.json.~1~"
    first = path.read_bytes()
    assert client.save([[0, 0, 0, 1]])[1]["backup"] is None
    second = path.read_bytes()
    assert serve(path).save(OTHER)[1]["backup"] == "animals.json.~2~"
    kept = [path.with_name(f"animals.json.~{number}~").read_bytes() for number in (1, 2)]
    assert kept == [old, second]
    assert path.read_bytes() == first


def test_no_kept_file_is_ever_overwritten(client, path):
    for name in ("animals.json.~1~", "animals.json.~7~", "animals.json.~8~x"):
        path.with_name(name).write_text(name)
    path.with_name("animals.json.~x~").mkdir()
    assert client.save()[1]["backup"] == "animals.json.~8~"
    for name in ("animals.json.~1~", "animals.json.~7~", "animals.json.~8~x"):
        assert path.with_name(name).read_text() == name


def test_a_number_taken_at_the_last_moment_is_left_alone(path, monkeypatch):
    monkeypatch.setattr("coarse2fine.editor.backups._highest", lambda _: 0)
    taken = path.with_name("animals.json.~1~")
    taken.write_text("theirs")
    session = Session(path)
    saved = session.save(content(), session.read().digest)
    assert saved.backup == path.with_name("animals.json.~2~")
    assert taken.read_text() == "theirs"


def test_where_the_disk_knows_no_second_names_the_old_file_is_copied(client, path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    old = path.read_bytes()
    monkeypatch.setattr(os, "link", refuse)
    assert client.save()[1]["backup"] == "animals.json.~1~"
    assert path.with_name("animals.json.~1~").read_bytes() == old


def test_a_hierarchy_without_coarse_levels_can_be_saved(client, path):
    assert client.save([])[0] == 200
    assert json.loads(path.read_text())["levels"] == []


def test_a_private_file_stays_private(client, path):
    path.chmod(0o600)
    client.save()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_and_the_file_behind_it_is_written(serve, path, tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link.json"
    link.symlink_to(path)
    assert serve(link).save()[1]["backup"] == "animals.json.~1~"
    assert link.is_symlink()
    assert Hierarchy.load(path) == Hierarchy.from_levels(OTHER, CLASSES)
    assert names_in(tmp_path) == ["animals.json", "animals.json.~1~", "folder"]


# -------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"levels": [[0, 0, 0, 0]]}, "puts all classes into one cluster"),
        ({"levels": [[0, 0, 2, 2]]}, "skips the id 1"),
        ({"levels": [[0, 0, 1, 1], [0, 1, 1, 2]]}, "not nested"),
        ({"levels": [[0, 0, 1]]}, "must be a list of 4 clusters"),
        ({"cluster_names": [["a"]]}, "must hold 2 names"),
        ({"cluster_names": [["a", 1]]}, "must be a string"),
        ({"version": 2}, "version 2 of the format is not known"),
        ({"class_names": ["cat", "dog", "car", "bus"]}, "the classes are not those"),
        ({"class_names": None}, "the classes are not those"),
        ({"class_names": ["dog", "cat", "car", "van"]}, "the classes are not those"),
        ({"num_classes": 3, "levels": [[0, 0, 1]], "class_names": CLASSES[:3]}, "not those"),
    ],
    ids=str,
)
def test_what_is_no_hierarchy_of_these_classes_is_not_saved(client, path, changed, message):
    before = path.read_bytes()
    answer = client.put(content(**changed), client.digest())
    assert answer.status == 422
    assert message in json.loads(answer.content)["error"]
    assert path.read_bytes() == before
    assert names_in(path.parent) == ["animals.json"]


def test_a_file_that_somebody_changed_is_not_overwritten_unless_asked(client, path):
    seen = client.digest()
    theirs = Hierarchy.from_levels([[0, 1, 0, 1]], CLASSES)
    theirs.save(path)
    answer = client.put(content(), seen)
    conflict = json.loads(answer.content)
    assert answer.status == 409
    assert conflict["error"] == "animals.json was changed by somebody else meanwhile."
    assert Hierarchy.load(path) == theirs
    assert client.put(content(), conflict["digest"]).status == 200
    assert Hierarchy.load(path.with_name("animals.json.~1~")) == theirs


def test_what_somebody_wrote_between_two_saves_is_kept_too(client, path):
    client.save()
    theirs = Hierarchy.from_levels([[0, 1, 0, 1]], CLASSES)
    theirs.save(path)
    assert client.save([[0, 0, 0, 1]])[1]["backup"] == "animals.json.~2~"
    assert Hierarchy.load(path.with_name("animals.json.~2~")) == theirs


def test_what_another_page_wrote_is_kept_when_overwritten(client, path):
    seen = client.digest()
    client.save()
    first = path.read_bytes()
    conflict = json.loads(client.put(content([[0, 0, 0, 1]]), seen).content)
    answer = client.put(content([[0, 0, 0, 1]]), conflict["digest"])
    assert json.loads(answer.content)["backup"] == "animals.json.~2~"
    assert path.with_name("animals.json.~2~").read_bytes() == first


def test_a_file_that_is_gone_is_only_made_anew_if_asked(client, path):
    seen = client.digest()
    path.unlink()
    missing = client.get("hierarchy")
    assert missing.status == 409
    assert json.loads(missing.content)["error"] == (
        "animals.json could not be read: No such file or directory."
    )
    answer = client.put(content(), seen)
    assert (answer.status, json.loads(answer.content)["digest"]) == (409, None)
    assert not path.exists()
    assert client.put(content(), None).status == 200
    assert Hierarchy.load(path) == Hierarchy.from_levels(OTHER, CLASSES)


@pytest.mark.parametrize("text", ["{", '{"format": "other"}', None])
def test_what_somebody_broke_is_said_when_it_is_read_again(client, path, text):
    text = json.dumps(content(class_names=["a", "b", "c", "d"])) if text is None else text
    path.write_text(text)
    answer = client.get("hierarchy")
    assert answer.status == 409
    assert "animals.json" in json.loads(answer.content)["error"]


# ---------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("broken", ["os.fsync", "os.replace", "tempfile.mkstemp"])
def test_a_save_that_fails_leaves_everything_as_it_was(client, path, monkeypatch, broken):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    before, seen = path.read_bytes(), client.digest()
    with monkeypatch.context() as patch:
        patch.setattr(broken, fail)
        answer = client.put(content(), seen)
    assert answer.status == 500
    assert json.loads(answer.content)["error"] == (
        "It could not be saved: No space left on device; free some, then do the same again. "
        "The file is as it was."
    )
    assert path.read_bytes() == before
    assert names_in(path.parent) == ["animals.json"]
    assert client.put(content(), seen).status == 200


def test_a_file_deleted_amid_a_save_that_fails_is_still_there_as_its_copy(
    client, path, monkeypatch
):
    def fail(*_):
        path.unlink()
        raise OSError(errno.ENOSPC, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    assert client.save()[0] == 500
    assert path.with_name("animals.json.~1~").read_bytes() == before


def test_a_copy_that_fails_is_not_left_half_written(client, path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(os, "fsync", fail)
    assert client.save()[0] == 500
    assert names_in(path.parent) == ["animals.json"]


def test_a_read_only_file_is_not_replaced(client, path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    status, answer = client.save()
    assert status == 500
    assert "the file is read-only" in answer["error"]
    assert names_in(path.parent) == ["animals.json"]


def test_of_saves_at_the_same_time_one_wins_and_the_others_are_told(client, path):
    seen = client.digest()
    choices = [[[0, 1, 1, 1]], [[0, 0, 0, 1]], [[0, 1, 0, 1]], [[0, 1, 1, 0]]] * 4
    with ThreadPoolExecutor(len(choices)) as pool:
        answers = list(pool.map(lambda levels: client.put(content(levels), seen).status, choices))
    assert sorted(answers) == [200] + [409] * (len(choices) - 1)
    won = choices[answers.index(200)]
    assert Hierarchy.load(path) == Hierarchy.from_levels(won, CLASSES)
    assert names_in(path.parent) == ["animals.json", "animals.json.~1~"]


# ------------------------------------------------------------------------------ the session


def test_it_tells_in_the_end_what_was_saved(path):
    session = Session(path)
    assert session.outcome() == f"nothing was saved; {path} is as it was"
    with pytest.raises(ChangedError):
        session.save(content(), "0")
    assert session.outcome().startswith("nothing was saved")
    session.save(content(), session.read().digest)
    assert session.outcome() == f"saved as {path}; the old one is {path}.~1~"


def test_names_that_no_utf8_can_hold_survive(serve, path):
    names = ["caf\udce9", "dog", "car", "van"]
    Hierarchy.from_levels(LEVELS, names).save(path)
    client = serve(path)
    found = json.loads(client.get("hierarchy").content)
    assert found["hierarchy"]["class_names"] == names
    assert client.save(class_names=names)[0] == 200
    assert Hierarchy.load(path) == Hierarchy.from_levels(OTHER, names)
