"""Tiny-ImageNet in all forms in which people have it."""

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import encoded, photo, write_files, write_parquet, write_zip
from PIL import Image

from coarse2fine.data.sets.tiny_imagenet import OFFICIAL, load_tiny_imagenet

ARCHIVE = "tiny-imagenet-200.zip"
WNIDS = ["n02124075", "n04067472", "n01641577"]
WORDS = "n00001740\tentity\nn01641577\tbullfrog, Rana catesbeiana\nn02124075\tEgyptian cat\n"
# So many that several processes decode them.
TRAIN = [(wnid, number) for wnid in WNIDS for number in range(45)]
VAL = ["n04067472", "n02124075", "n04067472", "n01641577"]


def jpeg(seed):
    picture = Image.fromarray(photo(64, 64, seed))
    return encoded(picture.convert("L") if seed % 5 == 0 else picture, "JPEG")


@pytest.fixture(scope="module")
def files():
    content = {"wnids.txt": "\n".join(WNIDS).encode(), "words.txt": WORDS.encode()}
    for seed, (wnid, number) in enumerate(TRAIN):
        content[f"train/{wnid}/images/{wnid}_{number}.JPEG"] = jpeg(seed)
        content[f"train/{wnid}/{wnid}_boxes.txt"] = b"0 0 1 1"
    lines = []
    for number, wnid in enumerate(VAL):
        content[f"val/images/val_{number}.JPEG"] = jpeg(500 + number)
        lines.append(f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62\n")
    content["val/val_annotations.txt"] = "".join(lines).encode()
    content["test/images/test_0.JPEG"] = jpeg(600)
    return content


def write(form, folder, files):
    """Write a form of the data set and return the checksums to load it with."""
    folder.mkdir(parents=True, exist_ok=True)
    if form == "zip":
        return {ARCHIVE: write_zip(folder / ARCHIVE, "tiny-imagenet-200", files)}
    if form == "unpacked":
        write_files(folder, files)
        return {}
    images = [jpeg(seed) for seed in range(len(TRAIN))]
    labels = {"label": [WNIDS.index(wnid) for wnid, _ in TRAIN]}
    write_parquet(folder / "train-00000-of-00001.parquet", images, labels, {"label": WNIDS})
    images = [jpeg(500 + number) for number in range(len(VAL))]
    labels = {"label": [WNIDS.index(wnid) for wnid in VAL]}
    write_parquet(folder / "valid-00000-of-00001.parquet", images, labels, {"label": WNIDS})
    (folder / "words.txt").write_text(WORDS)
    return {}


@pytest.mark.parametrize("form", ["zip", "unpacked", "parquet"])
def test_every_form_gives_the_same_images_labels_and_order(tmp_path, files, form):
    source = load_tiny_imagenet(tmp_path, checksums=write(form, tmp_path, files))
    seeds = [*range(len(TRAIN))], [500 + number for number in range(len(VAL))]
    wnids = [wnid for wnid, _ in TRAIN], VAL
    for split, of_split, classes in zip((source.train, source.test), seeds, wnids, strict=True):
        decoded = [Image.open(BytesIO(jpeg(seed))).convert("RGB") for seed in of_split]
        assert np.array_equal(split.inputs.permute(0, 2, 3, 1), np.stack(decoded))
        assert split.targets.tolist() == [WNIDS.index(wnid) for wnid in classes]
        assert split.class_names == ("Egyptian cat", "n04067472", "bullfrog")


@pytest.mark.parametrize(
    ("form", "inner"),
    [
        ("unpacked", "tiny-imagenet-200"),
        ("zip", "tiny-imagenet"),
        ("parquet", "tiny-imagenet/data"),
    ],
)
def test_the_usual_sub_folders_are_looked_into(tmp_path, files, form, inner):
    checksums = write(form, tmp_path / inner, files)
    assert len(load_tiny_imagenet(str(tmp_path), checksums=checksums).train) == len(TRAIN)


def test_classes_of_one_name_are_told_apart_by_their_numbers(tmp_path, files):
    words = b"n02124075\tcrane, bird\nn04067472\tcrane\nn01641577\tbullfrog\n"
    write("unpacked", tmp_path, files | {"words.txt": words})
    names = load_tiny_imagenet(tmp_path).train.class_names
    assert names == ("crane (n02124075)", "crane (n04067472)", "bullfrog")


# ---------------------------------------------------------------------------- what is refused


def test_without_any_form_what_is_looked_for_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"no Tiny-ImageNet; put {ARCHIVE} there.*parquet"):
        load_tiny_imagenet(tmp_path)


def test_an_archive_that_is_not_the_official_one_is_refused(tmp_path, files):
    (found,) = write("zip", tmp_path, files).values()
    message = rf"{ARCHIVE} is not the official archive: md5 {found}, expected {OFFICIAL[ARCHIVE]}"
    with pytest.raises(ValueError, match=message):
        load_tiny_imagenet(tmp_path)


def test_a_broken_image_in_the_archive_is_named(tmp_path, files):
    name = "val/images/val_2.JPEG"
    checksums = write("zip", tmp_path, files | {name: files[name][:300]})
    with pytest.raises(ValueError, match=rf"{ARCHIVE}/{name} cannot be decoded"):
        load_tiny_imagenet(tmp_path, checksums=checksums)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wnids.txt": b"n02124075\nn04067472"}, r"n01641577_0.JPEG is of a class that wnids.txt"),
        ({"wnids.txt": "\n".join([*WNIDS, "n99"]).encode()}, "train/n99 holds no images"),
        ({"val/val_annotations.txt": b"val_0.JPEG"}, "val_annotations.txt must have an image and"),
        ({"val/val_annotations.txt": b"val_0.JPEG\tn7\n"}, "val_0.JPEG is of a class that wnids"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, files, change, message):
    write("unpacked", tmp_path, files | change)
    with pytest.raises(ValueError, match=message):
        load_tiny_imagenet(tmp_path)


# --------------------------------------------------------------------------------- real data


@pytest.mark.slow
def test_the_real_tiny_imagenet():
    folder = os.environ.get("COARSE2FINE_DATA")
    if folder is None or not Path(folder, "tiny-imagenet").is_dir():
        pytest.skip("COARSE2FINE_DATA names no folder with tiny-imagenet")
    source = load_tiny_imagenet(folder)
    assert source.train.inputs.shape == (len(source.train), 3, 64, 64)
    assert source.test.inputs.shape == (10_000, 3, 64, 64)
    assert len(source.train) in (20_000, 100_000)
    assert source.train.targets.bincount().unique().numel() == 1
    assert source.test.targets.bincount().tolist() == [50] * 200
    assert source.train.class_names[0] == "Egyptian cat"
    assert len(set(source.train.class_names)) == 200
    # The mean colour that is published everywhere.
    mean = source.test.inputs.float().mean(dim=(0, 2, 3)) / 255
    assert torch.allclose(mean, torch.tensor([0.4802, 0.4481, 0.3975]), atol=0.01)
