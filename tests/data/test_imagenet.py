"""ImageNet in the layouts that people have it in."""

import pickle
from io import BytesIO

import numpy as np
import pytest
from image_files import encoded, photo, write_image, write_parquet
from PIL import Image
from scipy.io import savemat

from coarse2fine.data.sets.imagenet import load_imagenet
from coarse2fine.data.sources.image_sources import LazyImages

WNIDS = ["n01440764", "n02012849", "n03126707"]
SYNSETS = (
    "n01440764 tench, Tinca tinca\nn01443537 goldfish, Carassius auratus\n"
    "n02012849 crane\nn03126707 crane\n"
)
NAMES = ("tench", "crane (n02012849)", "crane (n03126707)")
TRAIN = [0, 0, 1, 2, 2, 2]
VAL = [2, 0, 1, 0]
VAL_NAMES = [f"ILSVRC2012_val_{number:08d}" for number in range(1, 5)]


def picture(seed):
    return photo(120 + 6 * (seed % 100), 96, seed)


def write_train(folder):
    for seed, target in enumerate(TRAIN):
        wnid = WNIDS[target]
        write_image(folder / "train" / wnid / f"{wnid}_{seed}.JPEG", picture(seed))


def write_flat_val(folder):
    for number, name in enumerate(VAL_NAMES):
        write_image(folder / "val" / f"{name}.JPEG", picture(100 + number))


def write_class_folders(folder):
    write_train(folder)
    for number, (name, target) in enumerate(zip(VAL_NAMES, VAL, strict=True)):
        write_image(folder / "val" / WNIDS[target] / f"{name}.JPEG", picture(100 + number))


def write_kaggle(folder):
    images = folder / "ILSVRC" / "Data" / "CLS-LOC"
    write_train(images)
    write_flat_val(images)
    boxes = [f"{name},{WNIDS[target]} 1 2 3 4 {WNIDS[target]} 5 6 7 8 " for name, target in
             zip(VAL_NAMES, VAL, strict=True)]  # fmt: skip
    # Its lines are in no order.
    text = "\n".join(["ImageId,PredictionString", *reversed(boxes)]) + "\n"
    (folder / "LOC_val_solution.csv").write_text(text)


def write_kit(folder):
    write_train(folder)
    write_flat_val(folder)
    data = folder / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    # The kit numbers classes from 1 in an order of its own, inner nodes of WordNet last.
    numbered = [(1, WNIDS[1]), (2, WNIDS[2]), (3, WNIDS[0]), (1001, "n00001740")]
    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("num_children", "O")]
    synsets = np.array([(number, wnid, 0) for number, wnid in numbered], dtype=fields)
    savemat(data / "meta.mat", {"synsets": synsets[:, None]})
    ids = {wnid: number for number, wnid in numbered}
    lines = [str(ids[WNIDS[target]]) for target in VAL]
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text("\n".join(lines) + "\n")


def write_hub(folder):
    names = {"label": [line.split(" ", 1)[1] for line in SYNSETS.splitlines()]}
    names["label"].pop(1)
    train = [encoded(picture(seed), "JPEG") for seed in range(len(TRAIN))]
    val = [encoded(picture(100 + number), "JPEG") for number in range(len(VAL))]
    for part, rows in enumerate((slice(0, 4), slice(4, 6))):
        path = folder / "data" / f"train-0000{part}-of-00002.parquet"
        write_parquet(path, train[rows], {"label": TRAIN[rows]}, names, row_group_size=3)
    path = folder / "data" / "validation-00000-of-00001.parquet"
    write_parquet(path, val, {"label": VAL}, names)


def evaluated(seed):
    """An image as it is evaluated at 56, by hand: the side of 96 becomes 64, as 256 is to 224."""
    image = Image.open(BytesIO(encoded(picture(seed), "JPEG")))
    width = image.width * 64 // 96
    resized = np.asarray(image.resize((width, 64), Image.Resampling.BILINEAR)).astype(int)
    left = (width - 56) // 2
    return resized[4:60, left : left + 56]


@pytest.mark.parametrize("write", [write_class_folders, write_kaggle, write_kit, write_hub])
def test_every_layout_gives_the_same_images_and_labels(tmp_path, write):
    write(tmp_path)
    source = load_imagenet(tmp_path, size=56)
    assert source.train.targets.tolist() == TRAIN
    # Class folders order the images by class, other layouts by number.
    order = np.argsort(VAL, kind="stable") if write is write_class_folders else range(len(VAL))
    assert source.test.targets.tolist() == [VAL[row] for row in order]
    for split, seeds in ((source.train, range(6)), (source.test, [100 + row for row in order])):
        inputs = pickle.loads(pickle.dumps(split.inputs))
        assert isinstance(inputs, LazyImages)
        for row, seed in enumerate(seeds):
            read = inputs.read(row, None).permute(1, 2, 0).numpy()
            assert np.abs(read - evaluated(seed)).max() <= 1
        random = inputs.read(0, np.random.default_rng(0))
        assert random.shape == (3, 56, 56)


def test_classes_are_called_by_the_first_of_their_synonyms(tmp_path):
    write_kaggle(tmp_path)
    assert load_imagenet(tmp_path).train.class_names == tuple(WNIDS)
    (tmp_path / "LOC_synset_mapping.txt").write_text(SYNSETS)
    assert load_imagenet(str(tmp_path)).train.class_names == NAMES


def test_the_hubs_classes_of_one_name_are_told_apart_by_their_numbers(tmp_path):
    write_hub(tmp_path / "imagenet")
    assert load_imagenet(tmp_path).test.class_names == ("tench", "crane (1)", "crane (2)")


def test_the_usual_size_is_224(tmp_path):
    write_class_folders(tmp_path)
    assert load_imagenet(tmp_path).train.inputs.read(0, None).shape == (3, 224, 224)
    with pytest.raises(ValueError, match=r"size must be at least 1. Got -1"):
        load_imagenet(tmp_path, size=-1)


# ---------------------------------------------------------------------------- what is refused


def test_without_any_layout_what_is_looked_for_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no ImageNet; put the folders train and val .*parq"
    ):
        load_imagenet(tmp_path)


def test_without_images_for_validation_the_folder_is_named(tmp_path):
    write_train(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder .*val"):
        load_imagenet(tmp_path)
    (tmp_path / "val").mkdir()
    with pytest.raises(ValueError, match="val holds no images; put those for validation there"):
        load_imagenet(tmp_path)


def test_images_side_by_side_need_something_that_tells_their_classes(tmp_path):
    write_train(tmp_path)
    write_flat_val(tmp_path)
    message = r"told by neither .*LOC_val_solution.csv nor .*ground_truth.txt; put one"
    with pytest.raises(FileNotFoundError, match=message):
        load_imagenet(tmp_path)


def test_an_image_that_the_solution_lacks_is_named(tmp_path):
    write_kaggle(tmp_path)
    path = tmp_path / "LOC_val_solution.csv"
    path.write_text(path.read_text().replace("val_00000003", "val_00000099"))
    with pytest.raises(
        ValueError, match=r"solution.csv tells no class of .*val_00000003.JPEG that"
    ):
        load_imagenet(tmp_path)


def test_a_broken_solution_is_named(tmp_path):
    write_kaggle(tmp_path)
    (tmp_path / "LOC_val_solution.csv").write_text("ImageId,PredictionString\nonly this\n")
    with pytest.raises(ValueError, match=r"LOC_val_solution.csv cannot be used .*; download it"):
        load_imagenet(tmp_path)


def test_the_kit_must_have_a_line_for_each_image(tmp_path):
    write_kit(tmp_path)
    (tmp_path / "val" / f"{VAL_NAMES[0]}.JPEG").unlink()
    with pytest.raises(ValueError, match=r"ground_truth.txt cannot be used .*4 lines for 3 images"):
        load_imagenet(tmp_path)


def test_a_class_to_test_on_must_be_one_to_train_on(tmp_path):
    write_class_folders(tmp_path)
    write_image(tmp_path / "val" / "n99999999" / "1.JPEG", picture(0))
    with pytest.raises(ValueError, match=r"val/n99999999 is of a class that is not among"):
        load_imagenet(tmp_path)
