"""Small runs of images, text and tables, trained once."""

import numpy as np
import pytest
import torch
from PIL import Image

from coarse2fine import fit, load_classifier

SHORT = {"epochs": 2, "curriculum_epochs": 1, "batch_size": 16, "learning_rate": 0.01}
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "grey": (99,) * 3}
SENTENCES = {
    "lost": "my card is lost",
    "stolen": "my card was stolen",
    "pin": "I forgot my pin",
    "top up": "how can I add money",
}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trained(tmp_path_factory, name, write):
    """The folder of a comparison on what `write` leaves in a folder."""
    folder = tmp_path_factory.mktemp(name)
    data = write(folder, np.random.default_rng(0))
    fit(data, out=folder / "run", **SHORT)
    return folder / "run"


@pytest.fixture(scope="session")
def image_run(tmp_path_factory):
    """A run on 20×20 images in a folder, called photos, beside it."""

    def write(folder, rng):
        for name, colour in COLOURS.items():
            (folder / "photos" / name).mkdir(parents=True)
            for number in range(12):
                pixels = np.clip(colour + rng.normal(0, 30, (20, 20, 3)), 0, 255)
                image = Image.fromarray(pixels.astype(np.uint8))
                image.save(folder / "photos" / name / f"{number:02}.png")
        return str(folder / "photos")

    return trained(tmp_path_factory, "images", write)


@pytest.fixture(scope="session")
def text_run(tmp_path_factory):
    """A run on sentences in a file, intents.csv, beside it."""

    def write(folder, rng):
        words = ("please", "now", "today", "thanks")
        rows = [
            f"{text} {rng.choice(words)},{name}"
            for _ in range(15)
            for name, text in SENTENCES.items()
        ]
        (folder / "intents.csv").write_text("\n".join(["sentence,intent", *rows, ""]))
        return str(folder / "intents.csv")

    return trained(tmp_path_factory, "text", write)


@pytest.fixture(scope="session")
def table_run(tmp_path_factory):
    """A run on a table of numbers and a category, table.csv, beside it."""

    def write(folder, rng):
        forms = ("round", "flat")
        rows = [
            f"{number + rng.normal(0, 0.2):.3f},{rng.choice(forms)},{10 * number},c{number}"
            for _ in range(15)
            for number in range(4)
        ]
        (folder / "table.csv").write_text("\n".join(["width,form,height,label", *rows, ""]))
        return str(folder / "table.csv")

    return trained(tmp_path_factory, "table", write)


@pytest.fixture(scope="session")
def images(image_run):
    return load_classifier(image_run)


@pytest.fixture(scope="session")
def text(text_run):
    return load_classifier(text_run)


@pytest.fixture(scope="session")
def table(table_run):
    return load_classifier(table_run)
