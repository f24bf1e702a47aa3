"""Predictions as lines that other programs read."""

import csv
import io

import pytest
import torch

from coarse2fine import Hierarchy
from coarse2fine.cli.prediction_formats import choose_format
from coarse2fine.inference.classifier import Classifier, Guess, Prediction
from coarse2fine.inference.preprocessing import Preprocessing

AWKWARD = ("plain", "one, two", 'the "third"', "two\nlines")


@pytest.fixture
def classifier():
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]], AWKWARD)
    return Classifier(torch.nn.Linear(2, 4), Preprocessing("table", (2,)), AWKWARD, hierarchy)


@pytest.mark.parametrize("top", [1, 2, 4])
def test_any_name_is_read_back_from_csv(classifier, top):
    shares = (0.5, 0.25, 0.125, 1 / 3e6)
    guesses = [Guess(name, share) for name, share in zip(AWKWARD, shares, strict=True)]
    predictions = [
        Prediction(given, *guesses[0], tuple(guesses[1:top]), classifier.clusters[number])
        for number, given in enumerate(["", *AWKWARD[1:]])
    ]
    form = choose_format(classifier, top, as_csv=True, as_json=False)
    text = f"{form.header}\n{form.lines(predictions)}\n"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    cells = [cell for name, share in guesses[:top] for cell in (name, f"{share:.6g}")]
    assert rows == [[each.input, *cells, *each.clusters] for each in predictions]
    further = [f"{what}_{rank}" for rank in range(2, top + 1) for what in ("class", "probability")]
    assert header == ["input", "class", "probability", *further, "level_0"]
