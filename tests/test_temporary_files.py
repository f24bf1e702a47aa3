"""What a killed process was writing is removed by the next who writes the same file."""

import os
import sys

import pytest

from coarse2fine._util import files
from coarse2fine._util.files import remove_abandoned, replacing, temporary_file, write_atomically

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")


def abandoned(path, letters="abcdefgh"):
    """What is left where a process was killed: the file without its lock."""
    left = path.with_name(f".{path.name}.c2f-{letters}.tmp")
    left.write_text("hal")
    return left


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_what_was_abandoned_is_removed_by_the_next_writer(tmp_path):
    for letters in ("abcdefgh", "____0000"):
        abandoned(tmp_path / "result.json", letters)
    write_atomically(tmp_path / "result.json", "whole")
    assert names_in(tmp_path) == ["result.json"]


def test_what_somebody_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "result.json"
    with temporary_file(path) as (handle, name):
        write_atomically(path, "theirs")
        assert names_in(tmp_path) == [os.path.basename(name), "result.json"]  # noqa: PTH119
        os.close(handle)
        remove_abandoned(path)  # it is closed, but not yet renamed
        os.replace(name, path)
    assert names_in(tmp_path) == ["result.json"]


@pytest.mark.parametrize(
    "name",
    [
        "result.json.c2f-abcdefgh.tmp",
        ".result.json.abcdefgh.tmp",
        ".result.json.c2f-abcdefghi.tmp",
        ".result.json.c2f-abcdefgh.tmp~",
        ".config.json.c2f-abcdefgh.tmp",
        ".resultXjson.c2f-abcdefgh.tmp",
    ],
)
def test_other_files_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    write_atomically(tmp_path / "result.json", "whole")
    assert (tmp_path / name).read_text() == "mine"


def test_what_is_no_file_of_its_own_is_left_alone(tmp_path):
    path, mine = tmp_path / "result.json", tmp_path / "mine"
    mine.write_text("mine")
    path.with_name(".result.json.c2f-aaaaaaaa.tmp").symlink_to(mine)
    path.with_name(".result.json.c2f-bbbbbbbb.tmp").mkdir()
    os.mkfifo(path.with_name(".result.json.c2f-cccccccc.tmp"))  # whose opening would block
    write_atomically(path, "whole")
    assert len(names_in(tmp_path)) == 5
    assert mine.read_text() == "mine"


def test_a_file_that_was_taken_for_abandoned_before_it_was_locked_is_made_again(
    tmp_path, monkeypatch
):
    path, removals = tmp_path / "result.json", []

    lock = files._fcntl.flock

    def flock(handle, how):
        if not removals:
            removals.append(abandoned)
            for entry in tmp_path.iterdir():
                entry.unlink()
        lock(handle, how)

    monkeypatch.setattr(files._fcntl, "flock", flock)
    write_atomically(path, "whole")
    assert removals
    assert path.read_text() == "whole"


def test_what_a_library_left_in_a_former_attempt_is_removed(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(KeyboardInterrupt), replacing(path) as unfinished:
        raise KeyboardInterrupt
    assert names_in(tmp_path) == []
    unfinished.parent.mkdir()
    unfinished.with_name(".tmpA1b2C3").write_text("half")
    with replacing(path) as unfinished:
        assert names_in(unfinished.parent) == []
        unfinished.write_text("whole")
    assert names_in(tmp_path) == ["model.safetensors"]
    assert path.read_text() == "whole"
