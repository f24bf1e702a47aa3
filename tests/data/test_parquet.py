"""Images in parquet files as the hub has them."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from image_files import encoded, photo, write_parquet

from coarse2fine.data.sources import parquet
from coarse2fine.data.sources.parquet import (
    ParquetImages,
    read_parquet_images,
    read_parquet_labels,
)
from coarse2fine.data.sources.table_files import find_parquet

PICTURES = [photo(6, 5, seed) for seed in range(7)]
IMAGES = [encoded(picture) for picture in PICTURES]


@pytest.fixture
def two_files(tmp_path):
    """Seven images in two files, in row groups of two."""
    names = {"label": ["cat", "dog"]}
    parts = {"a.parquet": slice(0, 3), "b.parquet": slice(3, 7)}
    return [
        write_parquet(
            tmp_path / name, IMAGES[rows], {"label": [0, 1, 1, 0, 0, 1, 0][rows]}, names,
            row_group_size=2,
        )
        for name, rows in parts.items()
    ]  # fmt: skip


def test_images_labels_and_names_come_in_order(two_files):
    images, labels, names = read_parquet_images(two_files)
    assert np.array_equal(images.permute(0, 2, 3, 1), np.stack(PICTURES))
    assert labels.tolist() == [0, 1, 1, 0, 0, 1, 0]
    assert names == ("cat", "dog")


def test_images_can_be_brought_to_a_size(two_files):
    assert read_parquet_images(two_files, size=(4, 4))[0].shape == (7, 3, 4, 4)


def test_rows_are_read_when_asked_for_in_any_order(two_files):
    rows = ParquetImages(two_files)
    assert len(rows) == 7
    assert [rows[row] for row in (6, 0, 3, 2, 5)] == [IMAGES[row] for row in (6, 0, 3, 2, 5)]
    again = pickle.loads(pickle.dumps(rows))
    assert again[4] == IMAGES[4]
    assert again.name(4) == f"{two_files[1]}, row 2"


def test_neighbours_are_read_from_the_file_once(two_files):
    rows = ParquetImages(two_files)
    parquet._encoded_and_kept.cache_clear()
    for row in range(7):
        rows[row]
    assert parquet._encoded_and_kept.cache_info().misses == len(rows.groups) == 4


@pytest.mark.parametrize("column", ["img", "image"])
def test_the_usual_columns_are_found(tmp_path, column):
    path = write_parquet(tmp_path / "a", IMAGES, {"fine_label": [0] * 7}, None, column)
    images, labels, names = read_parquet_images([path])
    assert (len(images), labels.tolist(), names) == (7, [0] * 7, None)


def test_columns_may_be_named(tmp_path):
    columns = {"label": [0] * 7, "colour": list(range(7))}
    path = write_parquet(tmp_path / "a", IMAGES, columns, {"colour": list("abcdefg")}, "photo")
    _, labels, names = read_parquet_images([path], "photo", "colour")
    assert labels.tolist() == list(range(7))
    assert names == tuple("abcdefg")


def test_images_without_a_path_beside_them_are_read(tmp_path):
    pq.write_table(pa.table({"image": IMAGES, "label": [0] * 7}), tmp_path / "a")
    assert len(read_parquet_images([tmp_path / "a"])[0]) == 7


# -------------------------------------------------------------------------- finding the files


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize(
    "names",
    [
        ("train-00000-of-00001.parquet", "test-00000-of-00001.parquet"),
        ("data/train-00000-of-00001-ab12.parquet", "data/test-00000-of-00001-cd34.parquet"),
        ("default/train/0000.parquet", "default/test/0000.parquet"),
        ("plain_text/train.parquet", "plain_text/test.parquet"),
    ],
)
def test_the_layouts_of_the_hub_are_known(tmp_path, names):
    touch(tmp_path, *names)
    assert find_parquet(tmp_path, "test") == ([tmp_path / names[0]], [tmp_path / names[1]])


def test_many_files_come_in_order(tmp_path):
    names = [f"train-{number:05d}-of-00012.parquet" for number in range(12)]
    touch(tmp_path, *reversed(names), "test.parquet")
    train, _ = find_parquet(tmp_path, "test")
    assert [path.name for path in train] == names


def test_where_there_are_none_there_is_nothing(tmp_path):
    touch(tmp_path, "other.parquet")
    assert find_parquet(tmp_path, "test") is None
    assert find_parquet(tmp_path / "nowhere", "test") is None


def test_a_part_that_is_missing_is_an_error(tmp_path):
    touch(tmp_path, "train-00000-of-00003.parquet", "train-00002-of-00003.parquet")
    with pytest.raises(FileNotFoundError, match=r"holds 2 of the 3 files .*download the others"):
        find_parquet(tmp_path, "test")


def test_training_images_without_others_are_an_error(tmp_path):
    touch(tmp_path, "train.parquet", "validation.parquet")
    with pytest.raises(FileNotFoundError, match=r"train.parquet but no .*split test; download"):
        find_parquet(tmp_path, "test")


# --------------------------------------------------------------------------------- bad files


def test_a_broken_image_is_named_by_file_and_row(tmp_path):
    good = write_parquet(tmp_path / "a.parquet", IMAGES[:2], {"label": [0, 0]})
    images = [*IMAGES[:3], IMAGES[3][:60]]
    bad = write_parquet(tmp_path / "b.parquet", images, {"label": [0] * 4}, row_group_size=2)
    with pytest.raises(ValueError, match=r"b.parquet, row 4 cannot be decoded"):
        read_parquet_images([good, bad])


def test_a_row_without_an_image_is_named(tmp_path):
    images = [*IMAGES[:3], None]
    path = write_parquet(tmp_path / "a", images, {"label": [0] * 4}, row_group_size=2)
    with pytest.raises(ValueError, match=r"a, row 4 holds no image; only images .* inside"):
        read_parquet_images([path])


def test_a_group_of_other_than_the_claimed_rows_is_named(two_files):
    images = ParquetImages(two_files)
    images.groups[1] = images.groups[1]._replace(rows=5)
    with pytest.raises(ValueError, match=r"a.parquet has 1 images where it claims 5; download"):
        images[2]


@pytest.mark.parametrize("content", [b"", b"PAR1 not really PAR1"])
def test_a_broken_file_is_named(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"a.parquet cannot be read as parquet .*download it again"
    ):
        read_parquet_labels([tmp_path / "a.parquet"])


def test_a_file_with_damage_inside_is_named(tmp_path, rng):
    noise = rng.integers(0, 256, (50, 6, 5, 3), dtype=np.uint8)
    images = [encoded(picture) for picture in noise]
    path = write_parquet(tmp_path / "a.parquet", images, {"label": [0] * 50})
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a.parquet"):
        read_parquet_images([path])


@pytest.mark.parametrize("labels", [["cat"] * 7, [0.5] * 7, [0, None, 0, 0, 0, 0, 0]])
def test_labels_must_be_integers(tmp_path, labels):
    path = write_parquet(tmp_path / "a", IMAGES, {"label": labels})
    with pytest.raises(ValueError, match=r"a: the column label must hold an integer in each row"):
        read_parquet_images([path])


def test_missing_columns_are_named_with_those_there_are(tmp_path):
    path = write_parquet(tmp_path / "a", IMAGES, {"kind": [0] * 7}, None, "photo")
    with pytest.raises(ValueError, match=r"a has no column img or image; it has photo, kind"):
        read_parquet_images([path])
    with pytest.raises(ValueError, match=r"a has no column class; it has photo, kind"):
        read_parquet_labels([path], "class")
