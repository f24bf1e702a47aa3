"""Images in every form that people have them in."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from coarse2fine.data.sources.images import decode
from coarse2fine.inference.classifier import Classifier
from coarse2fine.inference.preprocessing import Preprocessing


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)


@pytest.fixture
def file(pixels, tmp_path):
    Image.fromarray(pixels).save(tmp_path / "new.png")
    return tmp_path / "new.png"


FORMS = {
    "a path": lambda given: given.file,
    "a string": lambda given: str(given.file),
    "a folder": lambda given: given.file.parent,
    "an image": lambda given: Image.open(given.file),
    "bytes, channels last": lambda given: given.pixels,
    "bytes, channels first": lambda given: given.pixels.transpose(2, 0, 1),
    "a tensor of bytes": lambda given: torch.from_numpy(given.pixels),
    "floats, channels last": lambda given: given.pixels / 255,
    "floats, channels first": lambda given: torch.from_numpy(given.pixels).permute(2, 0, 1) / 255,
    "a batch": lambda given: given.pixels[None],
    "a batch, channels first": lambda given: given.pixels.transpose(2, 0, 1)[None],
    "a list of paths": lambda given: [given.file],
    "a list of strings": lambda given: [str(given.file)],
    "a list of images": lambda given: [Image.open(given.file)],
    "a list of arrays": lambda given: [given.pixels],
    "a list of tensors": lambda given: [torch.from_numpy(given.pixels)],
    "an array of strings": lambda given: np.array([str(given.file)]),
    "a generator": lambda given: (path for path in [given.file]),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_image_is_the_same_in_every_form(images, pixels, file, form):
    given = SimpleNamespace(pixels=pixels, file=file)
    inputs = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    logits = images.model(images.preprocessing.transform.normalise(inputs))
    wanted = logits.softmax(1).detach().numpy()
    found = images.predict_proba(FORMS[form](given))
    assert found == pytest.approx(wanted, abs=1e-6)
    assert images.predict(FORMS[form](given)) == [images.class_names[int(wanted.argmax())]]


def test_images_of_other_sizes_are_brought_to_that_of_the_training(images, rng, tmp_path):
    large = rng.integers(0, 256, (50, 70, 3), dtype=np.uint8)
    Image.fromarray(large).save(tmp_path / "large.png")
    wanted = images.predict_proba(decode(tmp_path / "large.png", (20, 20)))
    forms = (tmp_path / "large.png", Image.fromarray(large), large, large.transpose(2, 0, 1))
    for form in forms:
        assert images.predict_proba(form) == pytest.approx(wanted, abs=1e-6)


def test_an_image_that_is_given_stays_as_it_is(images, rng, tmp_path):
    large = rng.integers(0, 256, (200, 300, 3), dtype=np.uint8)
    Image.fromarray(large).save(tmp_path / "large.jpg")
    with Image.open(tmp_path / "large.jpg") as image:
        images.predict(image)
        assert image.size == (300, 200)


def test_batches_are_in_order(images, rng):
    pixels = rng.integers(0, 256, (30, 20, 20, 3), dtype=np.uint8)
    single = np.concatenate([images.predict_proba(image) for image in pixels])
    assert images.predict_proba(pixels, batch_size=7) == pytest.approx(single, abs=1e-6)
    assert images.predict_proba(list(pixels), batch_size=4) == pytest.approx(single, abs=1e-6)


def test_arrays_and_files_among_each_other_stay_in_order(images, rng, tmp_path):
    pixels = rng.integers(0, 256, (12, 20, 20, 3), dtype=np.uint8)
    paths = []
    for number, some in enumerate(pixels.reshape(4, 3, 20, 20, 3)):
        paths.append(tmp_path / f"{number}.npy")
        np.save(paths[-1], some[:2])
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(some[2]).save(paths[-1])
    found = images.predict_proba(paths, batch_size=1)
    assert found == pytest.approx(images.predict_proba(pixels), abs=1e-6)


def grey_classifier():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    return Classifier(model, Preprocessing("image", (1, 8, 8)), ("a", "b", "c"))


def test_grey_models_take_greys_with_and_without_a_channel(rng, tmp_path):
    classifier = grey_classifier()
    grey = rng.integers(0, 256, (8, 8), dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    wanted = classifier.predict_proba(grey)
    assert wanted.shape == (1, 3)
    for form in (grey[None], grey[..., None], grey / 255, tmp_path / "grey.png"):
        assert classifier.predict_proba(form) == pytest.approx(wanted, abs=1e-6)
    several = np.stack([grey] * 5)
    assert classifier.predict_proba(several) == pytest.approx(np.repeat(wanted, 5, 0), abs=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((4, 20, 20), np.uint8), "is of 4×20×20, but the model takes images of 3×20×20"),
        (np.zeros((20, 20), np.uint8), "is of 20×20, but the model takes images of 3×20×20"),
        (np.zeros((3, 8, 8), np.float32), "is of 3×8×8, but .*; resize it first"),
        (np.zeros((3, 20, 20), np.int64), "of bytes .uint8. or of floats from 0 to 1. Got int64"),
        (np.full((3, 20, 20), np.nan), "sample 0 holds NaN or infinity"),
        (3.5, "the model takes images of 3×20×20. Got a float"),
        ({"text": ["a"]}, "the model takes images of 3×20×20. Got the table the table"),
        ("no/such.png", "there is no file no/such.png"),
        ([None], "sample 0 must be an image"),
    ],
)
def test_what_is_no_such_image_is_refused_in_a_sentence(images, given, message):
    with pytest.raises((ValueError, TypeError, OSError), match=message) as caught:
        images.predict(given)
    assert "\n" not in str(caught.value)


def test_no_images_are_no_predictions(images):
    assert images.predict([]) == []
    assert images.predict_proba([]).shape == (0, 4)
