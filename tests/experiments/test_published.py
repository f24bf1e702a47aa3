"""The paper's own figures are those of its tables, read from its LaTeX where that is at hand."""

import os
import re
from pathlib import Path

import pytest

from coarse2fine.experiments.paper import shapes
from coarse2fine.experiments.paper.published import CNN_SIZES, COMPARISON, LARGE_SIZES, STAGED_GAINS
from coarse2fine.experiments.paper.real import LABELS, WHOLE

DATA = {label: name for name, label in LABELS.items()}
MODELS = {"CNN": "cnn", "Resnet18": "resnet18", "Resnet50": "resnet50", "WRN-28-10": "wrn-28-10"}
COMPARED = ("spl", "dp-l", "dp-li", "multitask", "nbdt", "continuous")
MEASURES = {
    "ConfusionDist": "continuous-confusion_distance",
    "EmbeddingDist": "continuous",
    "Confusion": "continuous-confusion",
    "EmbeddingSim": "continuous-embedding_similarity",
    "Random": "continuous-random",
}


@pytest.fixture(scope="module")
def tables():
    """The cells of the paper's tables, row by row."""
    path = os.environ.get("COARSE2FINE_PAPER")
    if path is None:
        pytest.skip("COARSE2FINE_PAPER does not name the paper's LaTeX file")
    text = Path(path).read_text(encoding="utf-8")
    return re.findall(r"\\begin\{tabularx\}(.*?)\\end\{tabularx\}", text, re.DOTALL)


def rows(tables, heading):
    """The rows of the one table that has a heading, each after its model's name."""
    (table,) = (table for table in tables if heading in table)
    model, found = "", []
    for line in table.splitlines():
        model = next(iter(re.findall(r"\\texttt\{(.*?)\}", line)), model)
        if r"\diff" in line:
            cells = line.replace(r"{\leavevmode\hphantom{0}}", "").split("&")
            found.append([model, *(cell.strip(" \\") for cell in cells if cell.strip())])
    return found


def figure(cell):
    """A mean and its error; None for what the table leaves out."""
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", cell)]
    assert len(numbers) <= 2
    return (numbers[0], numbers[1] if len(numbers) == 2 else None) if numbers else None


def figures(names, cells):
    found = dict(zip(names, map(figure, cells), strict=True))
    return {name: value for name, value in found.items() if value is not None}


def size(data, text):
    count = int(text.replace("k", "000").replace(",", ""))
    return None if count == WHOLE[data] else count


def comparable(published):
    return [(row.model, row.data, row.size, dict(row.figures)) for row in published]


def test_data_sets_and_sizes(tables):
    found = [
        (MODELS[model], DATA[data], size(DATA[data], count),
         figures(("baseline", "continuous"), cells))
        for model, data, count, *cells in rows(tables, r"\#Train")
    ]  # fmt: skip
    assert len(found) == 27
    assert comparable((*CNN_SIZES, *LARGE_SIZES)) == found


def test_the_comparison_with_other_methods(tables):
    found = [
        (MODELS[model], DATA[data], None, figures(("baseline", *COMPARED), cells))
        for model, data, _, *cells in rows(tables, r"\textbf{SPL}")
    ]
    assert len(found) == 11
    assert comparable(COMPARISON) == found


def test_staged_and_continuous(tables):
    found = [
        ("cnn", DATA[data], size(DATA[data], count),
         figures(("baseline", "staged", "continuous"), cells))
        for _, data, _, count, *cells in rows(tables, "Coarse-to-Fine-Staged")
    ]  # fmt: skip
    assert len(found) == 16
    assert comparable(STAGED_GAINS) == found


def test_the_distances_on_shapes(tables):
    found = {
        MEASURES[name]: (figure(baseline), figure(gain))
        for _, name, baseline, _, gain in rows(tables, "Distance Metric")
    }
    published = dict(shapes.PUBLISHED)
    baseline = published.pop("baseline")
    assert found == {name: (baseline, gain) for name, gain in published.items()}
