"""Predictions, read from a file and written as CSV, against the model alone on tensors."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from measure import Row, compare

from coarse2fine import Hierarchy
from coarse2fine.cli.prediction_formats import choose_format
from coarse2fine.data import Transform
from coarse2fine.inference.classifier import Classifier
from coarse2fine.inference.preprocessing import Preprocessing
from coarse2fine.models import build_model

IMAGES, CLASSES, SHAPE, BATCH = 20_000, 100, (3, 32, 32), 256


def classifier() -> Classifier:
    names = [f"class {index}" for index in range(CLASSES)]
    hierarchy = Hierarchy.from_levels([np.arange(CLASSES) // 20, np.arange(CLASSES) // 5], names)
    transform = Transform(mean=(0.5,) * 3, std=(0.25,) * 3)
    model = build_model("cnn", CLASSES, SHAPE)
    return Classifier(model, Preprocessing("image", SHAPE, transform), names, hierarchy)


def rows() -> list[Row]:
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, 32, 32, 3), dtype=np.uint8)
    ours = classifier()
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2) / 255  # channels last, as ours are
    form = choose_format(ours, 3, as_csv=True, as_json=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "images.npy")
        np.save(path, images)

        def predict() -> None:
            with Path(os.devnull).open("w") as file:
                for batch in ours.batches(path, batch_size=BATCH):
                    file.write(form.lines(batch))

        @torch.inference_mode()
        def model_alone() -> None:
            for batch in tensors.split(BATCH):
                ours.model(batch)

        found = compare(predict, model_alone, repeats=5)
    rates = [f"{IMAGES / seconds:,.0f}" for seconds in (found.ours, found.peer)]
    what = f"predictions of {IMAGES:,} images in a .npy file, against the model alone on tensors"
    return [
        Row.at_least(what, 1 / found.ratio, 0.8, "×", f"{' against '.join(rates)} images a second")
    ]
