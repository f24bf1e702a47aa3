"""The example images of a report, and why there may be none."""

import base64
from io import BytesIO

import numpy as np
import pytest
import torch
from made_runs import make_run
from PIL import Image
from plain import plain_content

from coarse2fine import Hierarchy
from coarse2fine.data import Source, Split, load_data, sample
from coarse2fine.report import examples
from coarse2fine.runs import restorer

DATA = "shapes:120"


@pytest.fixture(scope="module")
def shapes():
    return sample(load_data(DATA, image_size=16), val_share=0.2, seed=3)


@pytest.fixture
def run(tmp_path):
    """Write a run on some samples, all of whose classes are in two clusters."""

    def run(data, /, **settings):
        count = len(data.class_names)
        tree = Hierarchy.from_levels([np.arange(count) % 2], data.class_names)
        given = {"kind": data.kind, "seed": 3, "fingerprint": data.fingerprint(), "data": DATA}
        given |= {"hierarchy": tree, "val_share": 0.2, "image_size": 16}
        targets = data.test.targets.numpy()
        make_run(tmp_path / "run", predictions=targets, targets=targets, **given | settings)
        return tmp_path / "run"

    return run


def pictures(found):
    """The images of each class, by position."""
    kind, _, text = found["sheet"].partition(",")
    assert kind == "data:image/webp;base64"
    sheet = np.asarray(Image.open(BytesIO(base64.b64decode(text))), dtype=float)
    size, columns = found["size"], found["columns"]

    def cut(place):
        row, column = divmod(place, columns)
        return sheet[row * size : (row + 1) * size, column * size : (column + 1) * size]

    return [[cut(place) for place in places] for places in found["places"]]


def test_the_first_test_images_of_each_class_are_shown_in_the_order_of_the_classes(run, shapes):
    content = plain_content([run(shapes)], examples=2)
    assert content["examples"]["size"] == 16
    shown = pictures(content["examples"])
    for index, own in zip(content["classes"]["index"], shown, strict=True):
        wanted = shapes.test.inputs[shapes.test.targets == index][:2].permute(0, 2, 3, 1)
        assert len(own) == len(wanted)
        for one, other in zip(own, wanted.numpy().astype(float), strict=True):
            assert np.abs(one - other).mean() < 12  # what WebP loses
    assert 0 < sum(map(len, shown)) < len(shapes.test)
    assert content["remarks"] == []


def test_without_examples_nothing_is_loaded_or_said(run, shapes):
    content = plain_content([run(shapes, data="no-such-file.csv")], examples=0)
    assert content["examples"] is None
    assert content["remarks"] == []


@pytest.mark.parametrize("kind", ["text", "table", "other"])
def test_data_without_images_have_no_examples_and_need_no_reason(run, shapes, kind):
    content = plain_content([run(shapes, kind=kind, data="no-such-file.csv")])
    assert content["examples"] is None
    assert content["remarks"] == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"data": "moved.parquet", "image_size": None}, "there is no data 'moved.parquet'"),
        ({"data": "given"}, "the data were Python objects, which cannot be read again."),
        ({"fingerprint": "other"}, "the data shapes:120 are not those that the run was trained"),
        ({"train_size": 10**6}, "the data shapes:120 are not those that the run was trained"),
        ({"data": "cifar10", "image_size": None}, "cifar10 must be on this machine: say in which"),
    ],
)
def test_images_that_cannot_be_had_are_remarked(run, shapes, monkeypatch, settings, reason):
    monkeypatch.delenv("COARSE2FINE_DATA", raising=False)
    content = plain_content([run(shapes, **settings)])
    assert content["examples"] is None
    (remark,) = content["remarks"]
    assert remark.startswith(f"There are no example images: {reason}")


def test_settings_of_the_wrong_kind_are_remarked(run, shapes):
    found = run(shapes)
    config = next(found.rglob("config.json"))
    config.write_text(config.read_text().replace('"embedding"', "5"))
    content = plain_content([found])
    assert content["remarks"] == ["There are no example images: metric must be a string. Got 5."]


def test_the_folder_of_named_data_can_be_given(run, shapes, tmp_path):
    folder = tmp_path / "elsewhere"
    content = plain_content([run(shapes, data="cifar10", image_size=None)], folder=folder)
    (remark,) = content["remarks"]
    assert remark.startswith(f"There are no example images: there is no folder {folder}")


def test_after_a_search_for_t_no_sample_is_kept_back_for_validation(run):
    searched = sample(load_data(DATA, image_size=16), val_share=0.0, seed=3)
    assert plain_content([run(searched)])["examples"] is not None


# ------------------------------------------------------------------------ any kind of image


class Lazy:
    """Images that are read one by one."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def read(self, row, rng):
        assert rng is None
        return self.images[row]


def source_of(inputs):
    targets = torch.arange(len(inputs)) % 2
    split = Split(inputs, targets, ("cat", "dog", "fox"))
    return Source("image", split, test=split)


def flat(*shape):
    """Images of one colour each: 0, 60, 120, 180."""
    return (60 * torch.arange(4).view(4, 1, 1, 1)).expand(4, *shape).to(torch.uint8)


@pytest.mark.parametrize(
    ("inputs", "size"),
    [
        (flat(1, 10, 10), 10),
        (flat(3, 10, 10), 10),
        (Lazy(flat(3, 10, 10)), 10),
        (flat(3, 100, 100), 48),
        (flat(1, 96, 48), 48),
    ],
)
def test_images_of_any_size_and_colour_become_small_squares(run, monkeypatch, inputs, size):
    source = source_of(inputs)
    monkeypatch.setattr(restorer, "load_data", lambda *_, **__: source)
    found = plain_content([run(sample(source, val_share=0.2, seed=3))])["examples"]
    assert found["size"] == size
    assert found["places"] == [[0, 1], [], [2, 3]]  # cat, fox, of which there is none, dog
    cat, _, dog = pictures(found)
    for image, colour in zip([*cat, *dog], [0, 120, 60, 180], strict=True):
        assert image[size // 2, size // 2] == pytest.approx([colour] * 3, abs=3)


@pytest.mark.parametrize(
    ("inputs", "shape"),
    [
        (flat(4, 10, 10), "4×10×10 and torch.uint8"),
        (flat(3, 10, 10).float(), "3×10×10 and torch.float32"),
    ],
)
def test_what_is_no_picture_is_remarked(run, monkeypatch, inputs, shape):
    source = source_of(inputs)
    monkeypatch.setattr(restorer, "load_data", lambda *_, **__: source)
    content = plain_content([run(sample(source, val_share=0.2, seed=3))])
    assert content["examples"] is None
    (remark,) = content["remarks"]
    assert f"samples of {shape} are no pictures of 1 or 3 colours" in remark


def test_many_classes_have_fewer_images_each_and_very_many_only_some_have_any():
    def counts(classes, each):
        targets = np.tile(np.arange(classes), 6)
        order = np.random.default_rng(0).permutation(classes)
        rows = examples.chosen_rows(targets, order, each)
        for place, own in enumerate(rows):
            assert all(targets[row] == order[place] for row in own)
        return [len(own) for own in rows]

    assert counts(100, 4) == [4] * 100
    assert counts(1000, 4) == [2] * 1000
    assert counts(1500, 4) == [1] * 1500
    assert counts(5000, 4) == [1, 0, 0] * 1666 + [1, 0]


def test_a_sheet_of_noise_is_kept_small():
    pixels = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), dtype=np.uint8)
    text = examples._encoded(Image.fromarray(pixels))
    assert len(text) <= 4 / 3 * examples.MOST_BYTES + 30
