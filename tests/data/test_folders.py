"""Folders of images, one for each class."""

import os
import pickle

import numpy as np
import pytest
from image_files import photo, write_image

from coarse2fine.data.sources.image_sources import LazyImages, load_folder
from coarse2fine.data.split import LazyInputs


def write(folder, *names, size=(8, 8)):
    """Write an image of its own under each name."""
    for seed, name in enumerate(names):
        write_image(folder / name, photo(*size, seed))


def names_and_targets(split):
    return [split.class_names[target] for target in split.targets]


def test_each_folder_is_a_class(tmp_path):
    write(tmp_path, "dog/b.png", "dog/a.png", "cat/1.png", "ant/x.png")
    source = load_folder(tmp_path)
    assert source.kind == "image"
    assert source.train.class_names == ("ant", "cat", "dog")
    assert source.train.targets.tolist() == [0, 1, 2, 2]
    expected = np.stack([photo(8, 8, seed) for seed in (3, 2, 1, 0)])
    assert np.array_equal(source.train.inputs.permute(0, 2, 3, 1), expected)
    assert source.test is source.val is None


def test_the_classes_and_their_order_may_be_given(tmp_path):
    write(tmp_path, "cat/1.png", "dog/1.png")
    train = load_folder(tmp_path, class_names=["dog", "fox", "cat"]).train
    assert train.class_names == ("dog", "fox", "cat")
    assert train.targets.tolist() == [2, 0]
    with pytest.raises(ValueError, match=r"/cat is of a class that is not among those to train on"):
        load_folder(tmp_path, class_names=["dog", "fox"])


@pytest.mark.parametrize("val", ["val", "valid", "validation", "dev", "Val"])
def test_splits_may_have_folders_of_their_own(tmp_path, val):
    write(tmp_path, "train/a/1.png", "train/b/1.png", "test/b/1.png", f"{val}/a/1.png")
    write(tmp_path, f"{val}/b/1.png")
    source = load_folder(str(tmp_path))
    assert names_and_targets(source.train) == ["a", "b"]
    assert names_and_targets(source.test) == ["b"]
    assert names_and_targets(source.val) == ["a", "b"]


def test_train_alone_is_enough_and_others_are_optional(tmp_path):
    write(tmp_path, "train/a/1.png", "train/b/1.png")
    assert load_folder(tmp_path).train.class_names == ("a", "b")
    write(tmp_path, "val/a/1.png")
    source = load_folder(tmp_path)
    assert (len(source.val), source.test) == (1, None)


def test_a_class_may_be_called_train(tmp_path):
    write(tmp_path, "train/1.png", "ship/1.png", "test/1.png")
    assert load_folder(tmp_path).train.class_names == ("ship", "test", "train")


def test_images_are_known_by_their_extension_and_found_at_any_depth(tmp_path):
    names = ["1.JPEG", "2.jpg", "3.PNG", "4.webp", "5.bmp", "6.gif", "7.tif", "x/y/8.png"]
    write(tmp_path, *(f"a/{name}" for name in names), "b/1.png")
    write(tmp_path, "a/.hidden.png", "a/.folder/1.png", ".git/1.png")
    (tmp_path / "a" / "notes.txt").write_text("not an image")
    (tmp_path / "a" / "png").write_text("not an image")
    (tmp_path / "labels.csv").touch()
    assert load_folder(tmp_path).train.targets.tolist() == [0] * 8 + [1]


def test_links_are_followed_but_not_in_circles(tmp_path):
    write(tmp_path / "store", "one/1.png", "one/2.png", "two/1.png")
    images = tmp_path / "images"
    images.mkdir()
    for name in ("one", "two"):
        (images / name).symlink_to(tmp_path / "store" / name)
    (tmp_path / "store" / "one" / "back").symlink_to(tmp_path / "store" / "one")
    assert load_folder(images).train.targets.tolist() == [0, 0, 1]


def test_names_need_not_be_ascii(tmp_path):
    write(tmp_path, "Bär/ä 1.png", "猫/1.png", os.fsdecode(b"caf\xe9/1.png"))
    assert len(load_folder(tmp_path).train) == 3


# -------------------------------------------------------------------------------------- sizes


def test_one_size_is_kept(tmp_path):
    write(tmp_path, "a/1.png", "b/1.png", size=(300, 7))
    assert load_folder(tmp_path).train.inputs.shape == (2, 3, 7, 300)


def test_other_sizes_are_brought_to_the_median_shorter_side(tmp_path):
    for name, size in {"a/1": (10, 30), "a/2": (40, 20), "b/1": (50, 50)}.items():
        write(tmp_path / "train", f"{name}.png", size=size)
    write(tmp_path / "test", "a/1.png", size=(5, 5))
    source = load_folder(tmp_path)
    assert source.train.inputs.shape == (3, 3, 20, 20)
    assert source.test.inputs.shape == (1, 3, 20, 20)


def test_large_images_are_brought_to_224(tmp_path):
    write(tmp_path, "a/1.jpg", size=(500, 400))
    write(tmp_path, "b/1.jpg", size=(400, 500))
    assert load_folder(tmp_path).train.inputs.shape == (2, 3, 224, 224)


def test_a_size_may_be_given(tmp_path):
    write(tmp_path, "a/1.png", "b/1.png")
    assert load_folder(tmp_path, size=5).train.inputs.shape == (2, 3, 5, 5)
    with pytest.raises(ValueError, match=r"size must be at least 1. Got 0"):
        load_folder(tmp_path, size=0)


def test_more_than_memory_may_hold_is_read_when_needed(tmp_path):
    write(tmp_path, "train/a/1.png", "train/b/1.png", "train/b/2.png", "test/a/1.png")
    held = load_folder(tmp_path, memory_limit=4 * 3 * 8 * 8)
    lazy = load_folder(tmp_path, memory_limit=4 * 3 * 8 * 8 - 1)
    assert isinstance(lazy.train.inputs, LazyImages)
    assert isinstance(lazy.train.inputs, LazyInputs)
    inputs = pickle.loads(pickle.dumps(lazy.train.inputs))
    for row in range(3):
        assert (inputs.read(row, None) == held.train.inputs[row]).all()
    assert lazy.test.take([0]).inputs.read(0, None).shape == (3, 8, 8)


# --------------------------------------------------------------------------- what is refused


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere"):
        load_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(("names", "found"), [((), "none"), (("cat/1.png",), "cat")])
def test_two_classes_are_the_least(tmp_path, names, found):
    write(tmp_path, *names)
    with pytest.raises(ValueError, match=rf"for each of two or more classes. Got {found}\."):
        load_folder(tmp_path)


def test_a_class_without_images_is_refused(tmp_path):
    write(tmp_path, "a/1.png", "b/1.png")
    (tmp_path / "c").mkdir()
    with pytest.raises(ValueError, match=r"/c holds no images; remove the folder or put some"):
        load_folder(tmp_path)


def test_a_class_to_test_on_must_be_one_to_train_on(tmp_path):
    write(tmp_path, "train/a/1.png", "train/b/1.png", "test/c/1.png")
    with pytest.raises(ValueError, match=r"test/c is of a class that is not among .*images of c"):
        load_folder(tmp_path)


def test_images_to_test_on_need_class_folders(tmp_path):
    write(tmp_path, "train/a/1.png", "train/b/1.png", "test/1.png")
    with pytest.raises(ValueError, match=r"test holds no class folders; put its images into some"):
        load_folder(tmp_path)


def test_splits_without_one_to_train_on_are_refused(tmp_path):
    write(tmp_path, "test/a/1.png", "test/b/1.png", "val/a/1.png")
    with pytest.raises(ValueError, match=r"holds test, val but no folder train; add that"):
        load_folder(tmp_path)


@pytest.mark.parametrize("size", [None, 8])
def test_a_broken_image_is_named(tmp_path, size):
    write(tmp_path, "a/1.png", "b/1.png")
    (tmp_path / "b" / "2.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"b/2.png is not an image that Pillow can read"):
        load_folder(tmp_path, size)
