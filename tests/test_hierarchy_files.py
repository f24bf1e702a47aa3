"""What comes back from a file, and files that are wrong."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hierarchies import (
    COARSE,
    MIDDLE,
    NAMES,
    assert_loads_or_says_why,
    hierarchies,
    make,
    named,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from coarse2fine import Hierarchy

# ------------------------------------------------------------------------ to_dict and save


ODD_NAMES = ["", '"quoted"', "line\nbreak\ttab\\", "日本語 é 🦊", "\u2028\x00\x7f"]


@given(hierarchies())
def test_to_dict_and_from_dict_are_inverse(hierarchy: Hierarchy) -> None:
    content = hierarchy.to_dict()
    assert Hierarchy.from_dict(content) == hierarchy
    assert Hierarchy.from_dict(json.loads(json.dumps(content))) == hierarchy


@pytest.mark.parametrize("as_path", [str, Path])
def test_save_and_load_are_inverse(tmp_path: Path, as_path: Any) -> None:
    path = as_path(tmp_path / "hierarchy.json")
    for hierarchy in (named(), make(), make(class_names=ODD_NAMES)):
        hierarchy.save(path)
        assert Hierarchy.load(path) == hierarchy
    assert [file.name for file in tmp_path.iterdir()] == ["hierarchy.json"]


def test_names_that_are_not_unicode_survive(tmp_path: Path) -> None:
    # What the name of a folder in another encoding looks like.
    hierarchy = make(class_names=[b"caf\xe9".decode("utf-8", "surrogateescape"), *"bcde"])
    hierarchy.save(tmp_path / "h.json")
    assert Hierarchy.load(tmp_path / "h.json") == hierarchy


def test_names_are_readable_in_the_file(tmp_path: Path) -> None:
    make(class_names=ODD_NAMES).save(tmp_path / "h.json")
    assert "日本語 é 🦊" in (tmp_path / "h.json").read_text(encoding="utf-8")


def test_a_hierarchy_of_the_classes_alone_can_be_saved_and_loaded(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="plain training"):
        hierarchy = Hierarchy.from_levels([[0, 1]], ["a", "b"])
    hierarchy.save(tmp_path / "h.json")
    with pytest.warns(UserWarning, match="plain training"):
        assert Hierarchy.load(tmp_path / "h.json") == hierarchy


@pytest.mark.skipif(os.name != "posix", reason="about POSIX permissions")
def test_a_saved_file_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    make().save(tmp_path / "h.json")
    assert (tmp_path / "h.json").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    named().save(tmp_path / "h.json")
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        make().save(tmp_path / "h.json")
    monkeypatch.undo()
    assert Hierarchy.load(tmp_path / "h.json") == named()
    assert [file.name for file in tmp_path.iterdir()] == ["h.json"]


def test_the_file_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, do=original: (calls.append(name), do(*args))[1]
        )
    make().save(tmp_path / "h.json")
    assert calls == ["fsync", "replace"]


def test_saving_into_a_folder_that_is_not_there_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder .*missing"):
        make().save(tmp_path / "missing" / "h.json")


def test_saving_over_a_folder_fails_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "h.json").mkdir()
    with pytest.raises(OSError, match=r"h\.json"):
        make().save(tmp_path / "h.json")
    assert [file.name for file in tmp_path.iterdir()] == ["h.json"]


def test_file_names_may_be_as_long_as_the_system_lets_them(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    make().save(path)
    assert Hierarchy.load(path) == make()


# ------------------------------------------------------------------- files that are wrong


@pytest.fixture
def load_text(tmp_path: Path) -> Any:
    path = tmp_path / "bad.json"

    def load(text: str | bytes) -> Hierarchy:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Hierarchy.load(path)

    return load


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "null",
        "[]",
        '"coarse2fine-hierarchy"',
        "7",
        "{}",
        '{"format": "another"}',
        '{"format": ["coarse2fine-hierarchy"]}',
        b"\xff\xfe\x00",
        b'{"format": "\xe9"}',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "1" * 5000,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_a_file_that_is_no_hierarchy_is_refused_by_name(load_text: Any, text: Any) -> None:
    with pytest.raises(ValueError, match=r"bad\.json: .*(JSON|not a hierarchy)"):
        load_text(text)


WRONG_NUMBERS = ["-1", "5", "1.0", "1e400", "-1e400", "true", '"1"', "null", "[1]", "{}"]
HUGE = str(10**400)


def with_number(number: str) -> str:
    return json.dumps(named().to_dict()).replace("[0, 0, 1, 2, 3]", f"[0, 0, {number}, 2, 3]")


@pytest.mark.parametrize("number", [*WRONG_NUMBERS, HUGE])
def test_an_id_that_is_no_cluster_is_refused_with_its_place(load_text: Any, number: str) -> None:
    with pytest.raises(ValueError, match=r'bad\.json: "levels"\[1\]\[2\] must be a whole number'):
        load_text(with_number(number))


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN"])
def test_what_json_does_not_count_as_a_number_is_refused(load_text: Any, number: str) -> None:
    with pytest.raises(ValueError, match=rf"bad\.json: .*{number} is not a JSON number"):
        load_text(with_number(number))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 2, "version 2 of the format is not known"),
        ("version", None, "version None"),
        ("version", "1", "version '1'"),
        ("version", True, "version True"),
        ("version", 1.0, r"version 1\.0"),
        ("version", 10**400, r"version 10+\.\.\.0+ of"),
        ("num_classes", 4, r'"levels"\[0\] must be a list of 4 clusters\. Got 5 of them'),
        ("num_classes", 1, '"num_classes" must be a whole number from 2. Got 1'),
        ("num_classes", -5, '"num_classes" must be a whole number'),
        ("num_classes", True, '"num_classes" must be a whole number'),
        ("num_classes", 5.0, '"num_classes" must be a whole number'),
        ("num_classes", "5", '"num_classes" must be a whole number'),
        ("num_classes", None, '"num_classes" must be a whole number'),
        ("num_classes", 10**400, r'"levels"\[0\] must be a list of 1000'),
        ("levels", None, '"levels" must be a list of levels. Got None'),
        ("levels", {}, '"levels" must be a list of levels'),
        ("levels", [0, 1], r'"levels"\[0\] must be a list of 5 clusters\. Got 0'),
        ("levels", [COARSE, MIDDLE[:4]], r'"levels"\[1\] must be .*Got 4 of them'),
        ("levels", [MIDDLE, COARSE], "not nested"),
        ("levels", [COARSE, COARSE], "the same clusters"),
        ("levels", [[0, 0, 2, 2, 2], MIDDLE], "skips the id 1"),
        ("levels", [[0] * 5, MIDDLE], "one cluster"),
        ("class_names", NAMES[:4], "class_names must hold 5 names. Got 4"),
        ("class_names", "abcde", "class_names must be a sequence of 5 strings"),
        ("class_names", dict.fromkeys(NAMES), "class_names must be a sequence of 5 strings"),
        ("class_names", ["a", "b", "c", "d", 5], r"class_names\[4\] must be a string\. Got 5"),
        ("class_names", [None] * 5, r"class_names\[0\] must be a string"),
        ("class_names", 5, "class_names must be a sequence"),
        ("cluster_names", [["a", "b"]], "names for 1 levels"),
        ("cluster_names", {"a": 1, "b": 2}, "cluster_names must be a sequence"),
        ("cluster_names", ["ab", "abcd"], r"cluster_names\[0\] must be a sequence"),
        ("cluster_names", [[1, 2], ["a"] * 4], r"cluster_names\[0\]\[0\] must be a string"),
    ],
)
def test_a_wrong_part_of_a_file_is_named(
    load_text: Any, key: str, value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=rf"bad\.json: .*{message}"):
        load_text(json.dumps({**named().to_dict(), key: value}))


@pytest.mark.parametrize("key", ["format", "version", "num_classes", "levels"])
def test_a_missing_part_of_a_file_is_noticed(load_text: Any, key: str) -> None:
    content = named().to_dict()
    del content[key]
    with pytest.raises(ValueError, match=rf"bad\.json: .*{key}"):
        load_text(json.dumps(content))


@pytest.mark.parametrize("count", [10**8, 10**12, 2**63, 10**400])
def test_a_mere_number_of_classes_does_not_fill_the_memory(load_text: Any, count: int) -> None:
    content = {**make().to_dict(), "num_classes": count, "levels": []}
    with pytest.raises(ValueError, match=r'bad\.json: "num_classes" is .* no level'):
        load_text(json.dumps(content))


def test_a_folder_or_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{tmp_path.name} is not a regular file"):
        Hierarchy.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        Hierarchy.load(tmp_path / "missing.json")


def test_a_file_with_a_byte_order_mark_is_read(load_text: Any) -> None:
    assert load_text("\ufeff" + json.dumps(named().to_dict())) == named()


def test_a_file_cut_off_anywhere_is_refused(load_text: Any) -> None:
    content = make(class_names=ODD_NAMES).to_dict()
    whole = json.dumps(content, ensure_ascii=False).encode()
    assert load_text(whole).to_dict() == content
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"bad\.json"):
            load_text(whole[:length])


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, -1, 0, 1, 2, 5])
    | st.floats()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(content, dict):
        inside = list(content.items())
    else:
        inside = list(enumerate(content)) if isinstance(content, list) else []
    return [path, *(place for key, part in inside for place in places(part, (*path, key)))]


def replaced(content: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    content = copy.copy(content)
    content[place[0]] = replaced(content[place[0]], place[1:], value)
    return content


@given(data=st.data(), base=st.sampled_from([make(), named()]), changes=st.integers(1, 3))
@settings(max_examples=300)
def test_a_file_with_anything_in_it_loads_or_raises_a_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: Any, base: Hierarchy, changes: int
) -> None:
    content: Any = base.to_dict()
    for _ in range(changes):
        content = replaced(
            content, data.draw(st.sampled_from(places(content))), data.draw(JSON_VALUES)
        )
    path = tmp_path_factory.getbasetemp() / "anything.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert_loads_or_says_why(path)


@given(JSON_VALUES)
def test_from_dict_refuses_what_is_no_hierarchy(content: Any) -> None:
    with pytest.raises(ValueError, match="not a hierarchy"):
        Hierarchy.from_dict(content)
