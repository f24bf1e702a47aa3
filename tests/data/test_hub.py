"""Data sets of the hub; local folders take the same way through the library, without network."""

import time

import numpy as np
import pytest
import torch
from PIL import Image

from coarse2fine.data.sources.hub import load_hub
from coarse2fine.data.sources.text import tokens

datasets = pytest.importorskip("datasets")

NOWHERE = "http://127.0.0.1:9"  # nobody listens there


@pytest.fixture(autouse=True)
def _quiet_and_offline(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def load(tmp_path):
    def load(name=tmp_path / "data", **options):
        return load_hub(str(name), folder=tmp_path / "cache", **options)

    return load


@pytest.fixture
def files(tmp_path):
    """Write parts, each a dict of columns, as the hub keeps them."""

    def files(features=None, **parts):
        (tmp_path / "data").mkdir()
        for split, columns in parts.items():
            rows = datasets.Dataset.from_dict(columns, features=features)
            rows.to_parquet(tmp_path / "data" / f"{split}-00000-of-00001.parquet")

    return files


def features(**columns):
    return datasets.Features(columns)


TEXT = {"text": ["my card", "hello you"], "label": ["card", "talk"]}


def test_text_becomes_tokens_and_the_splits_keep_their_roles(files, load):
    files(train=TEXT, validation={**TEXT, "label": ["talk", "card"]}, test=TEXT)
    source = load()
    assert source.kind == "text"
    assert torch.equal(source.train.inputs, tokens(TEXT["text"]))
    assert source.train.class_names == ("card", "talk")
    assert source.test.targets.tolist() == [0, 1]
    assert source.val.targets.tolist() == [1, 0]


def test_without_a_test_validation_serves_as_one(files, load):
    files(train=TEXT, validation={**TEXT, "label": ["talk", "card"]})
    source = load()
    assert source.test.targets.tolist() == [1, 0]
    assert source.val is None


@pytest.mark.filterwarnings("ignore:.*integer labels are not 0 to")
def test_numbers_become_a_table_in_a_known_layout(files, load):
    files(train={"a": [1, 2], "b": [0.5, 1.5], "c": ["u", "u"], "d": [3, 1]})
    source = load(columns=["b", "c=u", "c=v"])
    assert source.kind == "table"
    assert source.train.inputs.tolist() == [[0.5, 1, 0], [1.5, 1, 0]]
    assert source.train.class_names == ("1", "3")
    assert load(target="a", class_names=("2", "1")).train.targets.tolist() == [1, 0]


def test_csv_files_will_do_as_well(load, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("text,label\nmy card,b\nhello,a\n")
    assert load().train.targets.tolist() == [1, 0]


def test_declared_classes_keep_their_names_and_are_the_target_whatever_their_column(files, load):
    declared = features(
        kind=datasets.ClassLabel(names=["z", "a", "m"]), said=datasets.Value("string")
    )
    files(declared, train={"kind": [1, 0, 1], "said": ["x", "y", "z"]})
    train = load().train
    assert train.class_names == ("z", "a", "m")
    assert train.targets.tolist() == [1, 0, 1]


def test_a_test_whose_labels_are_withheld_is_no_test(files, load):
    declared = features(
        text=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"])
    )
    rows = {"text": ["x", "y"], "label": [0, 1]}
    files(declared, train=rows, validation=rows, test={**rows, "label": [-1, -1]})
    source = load()
    assert source.test.targets.tolist() == [0, 1]
    assert source.val is None


def pixels(rng, height=6, width=5):
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_images_become_bytes(files, load, rng):
    images = [pixels(rng) for _ in range(3)]
    declared = features(label=datasets.ClassLabel(names=["cat", "dog"]), picture=datasets.Image())
    rows = {"picture": [Image.fromarray(image) for image in images], "label": [1, 0, 1]}
    files(declared, train=rows)
    source = load()
    assert source.kind == "image"
    assert source.train.class_names == ("cat", "dog")
    assert source.train.targets.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(source.train.inputs, np.stack(images).transpose(0, 3, 1, 2))
    assert load(image_size=4).train.inputs.shape == (3, 3, 4, 4)


def test_image_files_in_folders_are_read_from_there(load, tmp_path, rng):
    for name in ("train/cat/1.png", "train/dog/1.png", "test/dog/1.png"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True)
        Image.fromarray(pixels(rng)).save(path)
    source = load()
    assert source.train.class_names == ("cat", "dog")
    assert source.test.inputs.shape == (1, 3, 6, 5)


def test_more_images_than_memory_are_read_when_needed(files, load, rng, monkeypatch):
    monkeypatch.setattr("coarse2fine.data.sources.hub.MEMORY_LIMIT", 100)
    image = pixels(rng)
    rows = {"image": [Image.fromarray(image)] * 2, "label": ["a", "b"]}
    files(features(image=datasets.Image(), label=datasets.Value("string")), train=rows)
    inputs = load().train.inputs
    assert not isinstance(inputs, torch.Tensor)
    np.testing.assert_array_equal(inputs.read(1, None), image.transpose(2, 0, 1))


def test_images_of_several_sizes_need_one(files, load, rng):
    rows = {
        "image": [Image.fromarray(pixels(rng)), Image.fromarray(pixels(rng, 9, 9))],
        "label": ["a", "b"],
    }
    files(features(image=datasets.Image(), label=datasets.Value("string")), train=rows)
    with pytest.raises(ValueError, match="different sizes, from 6×5 to 9×9 pixels; give an image"):
        load()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"test": TEXT}, "has no split train; it has test"),
        ({"train": {**TEXT, "label": ["a", None]}}, "train, row 2: the label, .* is missing"),
        ({"train": {**TEXT, "text": ["a", None]}}, "train, row 2: the text, .* is missing"),
    ],
)
def test_faults_are_named_by_split_and_row(files, load, parts, message):
    files(**parts)
    with pytest.raises(ValueError, match=f"data.*{message}"):
        load()


def test_a_missing_folder_or_configuration_is_said_in_a_sentence(files, load, tmp_path):
    with pytest.raises(FileNotFoundError, match="gone' could not be had from the hub: ") as caught:
        load(tmp_path / "gone")
    assert "\n" not in str(caught.value)
    files(train=TEXT)
    with pytest.raises(ValueError, match="data:other' could not be had .*'other' not found"):
        load(f"{tmp_path / 'data'}:other")


@pytest.mark.parametrize("name", ["nobody/nothing", "nobody/nothing:config"])
def test_without_network_the_answer_comes_quickly(load, monkeypatch, name):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", NOWHERE)
    monkeypatch.setattr("coarse2fine.data.sources.hub.getproxies", dict)
    start = time.monotonic()
    with pytest.raises(FileNotFoundError, match=f"{name}' could not be had from the hub: Couldn't"):
        load(name)
    assert time.monotonic() - start < 3
    assert datasets.config.HF_HUB_OFFLINE is False
