"""Hierarchies as safetensors: what comes back, and files that are wrong."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hierarchies import assert_loads_or_says_why, hierarchies, make, named
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from coarse2fine import Hierarchy
from coarse2fine.editor import Session
from coarse2fine.runs.hierarchies import read_hierarchy, read_tree

# The last two would be one character if they were not kept apart.
ODD = ["", "日本語 é 🦊", b"caf\xe9".decode("utf-8", "surrogateescape"), "\ud83e", "\udd8a"]


@given(hierarchies())
def test_save_and_load_are_inverse(
    tmp_path_factory: pytest.TempPathFactory, hierarchy: Hierarchy
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    hierarchy.save(path)
    assert Hierarchy.load(path) == hierarchy


def test_odd_names_and_a_name_in_capitals_survive(tmp_path: Path) -> None:
    hierarchy = make(class_names=ODD)
    hierarchy.save(tmp_path / "H.SafeTensors")
    assert Hierarchy.load(tmp_path / "H.SafeTensors") == hierarchy
    assert (tmp_path / "H.SafeTensors").read_bytes()[8:9] == b"{"  # the header of safetensors


def test_the_classes_alone_can_be_saved_and_loaded(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="plain training"):
        hierarchy = Hierarchy.from_levels([[0, 1]], ["a", "b"])
    hierarchy.save(tmp_path / "h.safetensors")
    with pytest.warns(UserWarning, match="plain training"):
        assert Hierarchy.load(tmp_path / "h.safetensors") == hierarchy


def test_100_000_classes_take_fewer_bytes_than_as_json(tmp_path: Path) -> None:
    level = np.arange(100_000)
    groups = [[f"group {at}" for at in range(1563)], [f"pair {at}" for at in range(50_000)]]
    names = [f"class {at}" for at in level]
    hierarchy = Hierarchy.from_levels([level // 64, level // 2], names, groups)
    for name in ("h.json", "h.safetensors"):
        hierarchy.save(tmp_path / name)
    assert Hierarchy.load(tmp_path / "h.safetensors") == hierarchy
    sizes = [(tmp_path / name).stat().st_size for name in ("h.safetensors", "h.json")]
    assert sizes[0] < 0.75 * sizes[1]


@pytest.mark.slow
def test_a_million_classes_take_seconds_and_less_than_2_gb() -> None:
    benchmarks = Path(__file__).parents[1] / "benchmarks"
    code = "import hierarchy; assert all(row.kept is not False for row in hierarchy.rows())"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=benchmarks, check=True)
    assert time.perf_counter() - start < 120


# --------------------------------------------------------------------- whoever reads hierarchies


def test_it_is_told_from_the_weights_of_a_model(tmp_path: Path) -> None:
    path = tmp_path / "h.safetensors"
    named().save(path)
    assert read_hierarchy(path) == read_tree(path) == named()


def test_it_leaves_no_choice_of_metric_or_linkage(tmp_path: Path) -> None:
    named().save(tmp_path / "h.safetensors")
    with pytest.raises(ValueError, match=r"h\.safetensors leaves no choice of linkage"):
        read_hierarchy(tmp_path / "h.safetensors", linkage="average")


def test_the_editor_says_that_it_takes_json_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"h\.safetensors: the editor reads and writes JSON alone"):
        Session(tmp_path / "h.safetensors", named())


# ----------------------------------------------------------------------------------- wrong files


@pytest.fixture
def load_changed(tmp_path: Path) -> Any:
    path = tmp_path / "bad.safetensors"

    def load(metadata: dict[str, Any], arrays: dict[str, Any]) -> Hierarchy:
        named().save(path)
        with safe_open(path, "np") as file:
            metadata = {**file.metadata(), **metadata}
        arrays = {**load_file(path), **arrays}
        save_file(
            {name: array for name, array in arrays.items() if array is not None},
            path,
            {key: value for key, value in metadata.items() if value is not None},
        )
        return Hierarchy.load(path)

    return load


LEVEL = np.array([0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": None}, 'not a hierarchy: its metadata must have "format"'),
        ({"version": "2"}, "version 2 of the format is not known"),
        ({"version": "1.0"}, "version '1.0' of the format is not known"),
        ({"num_classes": None}, '"num_classes" must be a whole number from 2. Got None'),
        ({"num_classes": "9" * 30}, '"num_classes" must be a whole number from 2'),
        ({"num_classes": "6"}, r'"levels"\[0\] must be an array of 6 clusters. Got .* \(5,\)'),
    ],
)
def test_wrong_metadata_are_named(load_changed: Any, metadata: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"bad\.safetensors: .*{message}"):
        load_changed(metadata, {})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"levels.0": LEVEL.astype(float)}, r'"levels"\[0\] must be an array of 5 .*Got float64'),
        ({"levels.0": LEVEL[None]}, r'"levels"\[0\] must be an array .* shape \(1, 5\)'),
        ({"levels.0": LEVEL - 1}, r'"levels"\[0\]\[0\] must be a whole number in 0..4. Got -1'),
        ({"levels.0": LEVEL.astype(np.uint64) * 2**63}, r"\[0\]\[3\] .* Got 9223372036854775808"),
        ({"levels.0": LEVEL * 2}, r"levels\[0\] skips the id 1"),
        ({"levels.0": np.array([0, 1, 0, 1, 1])}, "the levels are not nested"),
        ({"levels.3": LEVEL}, "the array 'levels.3' is no part of a hierarchy"),
        ({"levels.0": None}, "'cluster_names.0.lengths' is no part"),
        ({"more": LEVEL}, "the array 'more' is no part of a hierarchy"),
        ({"class_names.text": None}, "'class_names.lengths' is no part"),
        ({"class_names.lengths": None}, "class_names must be the arrays 'text', of uint8, and"),
        ({"class_names.lengths": LEVEL}, "class_names must be the arrays .* Got .* int64"),
        ({"class_names.text": LEVEL.astype(np.uint16)}, "class_names must be the arrays"),
        ({"class_names.text": np.full(15, 255, np.uint8)}, "class_names must be text in UTF-8"),
        ({"class_names.lengths": np.uint8([3, 3, 3, 3, 4])}, "class_names must add up to the 15"),
        ({"class_names.lengths": np.uint64([2**63, 2**63, 5, 5, 5])}, "must add up to the 15"),
        ({"class_names.lengths": np.uint8([3, 3, 9])}, "class_names must hold 5 names. Got 3"),
        ({"class_names.lengths": np.empty(0, np.uint8)}, "must add up to the 15"),
        (
            {
                "other_names.text": np.frombuffer(b"pet", np.uint8),
                "other_names.lengths": np.uint8([1, 2]),
                "other_names.meant.text": np.frombuffer(b"animal", np.uint8),
                "other_names.meant.lengths": np.uint8([6]),
            },
            "of 2 other names, 1 say what they mean",
        ),
        ({"cluster_names.1.text": None}, r"cluster_names.1 must be the arrays"),
        ({"cluster_names.0.text": None}, "'cluster_names.0.lengths' is no part"),
    ],
)
def test_wrong_arrays_are_named(load_changed: Any, arrays: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"bad\.safetensors: .*{message}"):
        load_changed({}, arrays)


def test_a_number_of_classes_that_no_level_bears_out_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.safetensors"
    about = {"format": "coarse2fine-hierarchy", "version": "1", "num_classes": str(10**12)}
    save_file({}, path, about)
    # Older releases of safetensors read no file without arrays.
    message = r"huge\.safetensors: .*(which no level bears out|not readable as safetensors)"
    with pytest.raises(ValueError, match=message):
        Hierarchy.load(path)


def test_other_safetensors_are_no_hierarchy(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    rows = np.random.default_rng(0).standard_normal((6, 3), dtype=np.float32)
    save_file({"fc.weight": rows}, path)
    with pytest.raises(ValueError, match=r"weights\.safetensors: not a hierarchy"):
        Hierarchy.load(path)
    assert read_hierarchy(path) == Hierarchy.from_embeddings(rows)
    assert read_tree(path) is None


def test_a_file_that_is_missing_cut_or_a_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "h.safetensors"
    with pytest.raises(FileNotFoundError, match=r"h\.safetensors"):
        Hierarchy.load(path)
    named().save(path)
    for length in range(0, path.stat().st_size, 97):
        path.write_bytes(path.read_bytes()[:length])
        for read in (Hierarchy.load, read_hierarchy):
            with pytest.raises(ValueError, match=r"h\.safetensors: not readable as safetensors"):
                read(path)
        named().save(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="is not a regular file"):
        Hierarchy.load(path)


@given(data=st.data())
def test_a_file_with_any_bytes_changed_loads_or_raises_a_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.safetensors"
    named().save(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    assert_loads_or_says_why(path)
