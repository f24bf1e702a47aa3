"""Hierarchies by an encoder of the user's: from features of the samples, or from class names."""

import json

import numpy as np
import pytest
import torch
from studies import (
    NAMES,
    TRAIN,
    ConvNet,
    SmallNet,
    compare,
    image_data,
    same_tensors,
    table_source,
)
from torch import nn

from coarse2fine import Hierarchy, RunError
from coarse2fine.data import sample
from coarse2fine.distances import class_distances
from coarse2fine.training import encoders

ALONE = {"baseline": False, "max_levels": None}
WORDS = ("money", "card", "hello", "again", "bank", "joke")


def names(path):
    return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))


def squares(batch):
    """An encoder: no weights, and nothing that the model has."""
    return torch.cat([batch, batch**2], 1)


def lengths(batch):
    return batch.abs().cumsum(1).numpy()


def letters(texts):
    """How often each letter is in each text: an encoder of strings."""
    return np.array(
        [[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    )


# ------------------------------------------------------------------------------- features


def class_means(encode, split):
    """By hand, one class after the other."""
    found = [
        np.mean([encode(split.inputs[row : row + 1])[0].tolist() for row in rows], axis=0)
        for rows in (np.flatnonzero(split.targets.numpy() == label) for label in range(6))
    ]
    return np.array(found)


def training_samples(run):
    """The samples of a run."""
    return sample(table_source(), val_share=0.2, seed=run.seed)


@pytest.mark.parametrize("encode", [squares, lengths], ids=["tensor", "array"])
def test_features_give_the_hierarchy_of_the_class_means_of_the_training_samples(encode, tmp_path):
    result = compare(tmp_path, hierarchy="features", encoder=encode, seeds=(0, 1), **ALONE)
    assert names(tmp_path / "seed-0") == ["continuous"]
    made = [class_means(encode, training_samples(run).train) for run in result.runs]
    assert not np.allclose(*made)  # each seed has samples of its own
    for run, means in zip(result.runs, made, strict=True):
        assert run.hierarchy() == Hierarchy.from_embeddings(means, class_names=NAMES)
        assert run.hierarchy_epochs is None


def test_means_are_those_of_numpy_and_see_no_other_samples(monkeypatch, tmp_path):
    seen, found = [], []
    compute = encoders.feature_means

    def noting(batch):
        seen.append(batch)
        return squares(batch)

    def keeping(*given):
        found.append(compute(*given))
        return found[-1]

    monkeypatch.setattr("coarse2fine.training.seed.feature_means", keeping)
    (run,) = compare(tmp_path, hierarchy="features", encoder=noting, **ALONE).runs
    train = training_samples(run).train
    assert torch.equal(torch.cat(seen), train.inputs)  # each once, none of validation or test
    assert len(seen) == 5  # batches of 32
    np.testing.assert_allclose(found[0], class_means(squares, train), rtol=1e-6)


@pytest.mark.parametrize("metric", ["embedding", "embedding_similarity", "random"])
@pytest.mark.parametrize("linkage", ["average", "complete"])
def test_metric_and_linkage_count_for_features(metric, linkage, tmp_path):
    options = {"hierarchy": "features", "encoder": squares, "metric": metric, "linkage": linkage}
    (run,) = compare(tmp_path, seeds=3, **ALONE, **options).runs
    means = class_means(squares, training_samples(run).train)
    distances = class_distances(means, metric, num_classes=6, seed=3)
    wanted = Hierarchy.from_distances(distances, linkage=linkage, class_names=NAMES)
    assert run.hierarchy() == wanted


def test_a_module_encodes_in_evaluation_mode_and_learns_nothing(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.Dropout(0.9))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    first = compare(tmp_path / "a", hierarchy="features", encoder=module, **ALONE)
    again = compare(tmp_path / "b", hierarchy="features", encoder=module, **ALONE)
    assert first.runs[0].hierarchy() == again.runs[0].hierarchy()
    assert same_tensors(module.state_dict(), before)
    assert all(parameter.grad is None for parameter in module.parameters())
    with torch.no_grad():
        means = class_means(module, training_samples(first.runs[0]).train)
    assert first.runs[0].hierarchy() == Hierarchy.from_embeddings(means, class_names=NAMES)


def test_images_come_as_the_model_gets_them(tmp_path):
    seen = []

    def encode(batch):
        seen.append(batch)
        return batch.view(len(batch), -1)  # which needs the common layout

    data = image_data(90)
    options = {"model": ConvNet, "normalise": True, "augment": True, "batch_size": 16}
    pair = (data.train.inputs, data.train.targets)
    compare(
        tmp_path,
        pair,
        pair,
        class_names=NAMES,
        hierarchy="features",
        encoder=encode,
        **ALONE,
        **options,
    )
    batch = torch.cat(seen)
    assert (batch.dtype, tuple(batch.shape[1:])) == (torch.float32, (3, 8, 8))
    assert abs(batch.mean()) < 1e-3  # of all training samples, none of them cropped or mirrored
    assert batch.std() == pytest.approx(1, abs=0.01)


def sentences(count=120):
    targets = [row % 6 for row in range(count)]
    return [f"{WORDS[label]} number {row}" for row, label in enumerate(targets)], targets


def test_text_comes_as_the_sentences_that_it_was(tmp_path):
    seen = []

    def encode(texts):
        seen.extend(texts)
        return letters(texts)

    texts, targets = sentences()
    options = {"model": "bag", "hierarchy": "features", "encoder": encode, **ALONE}
    (run,) = compare(tmp_path, (texts, targets), (texts, targets), **options).runs
    assert len(seen) == 96
    assert set(seen) < set(texts)
    rows = [texts.index(text) for text in seen]
    means = np.array(
        [
            letters([texts[row] for row in rows if targets[row] == label]).mean(0)
            for label in range(6)
        ]
    )
    assert run.hierarchy() == Hierarchy.from_embeddings(means, class_names=NAMES)


def test_tokens_that_are_given_as_such_stay_tokens(tmp_path):
    seen = []

    def encode(batch):
        seen.append(batch)
        return batch.double()

    inputs = torch.randint(1, 50, (120, 5), generator=torch.Generator().manual_seed(0))
    targets = torch.arange(120) % 6
    options = {"model": "bag", "hierarchy": "features", "encoder": encode, **ALONE}
    compare(tmp_path, (inputs, targets), (inputs, targets), **options)
    assert seen[0].dtype == torch.int64


# ---------------------------------------------------------------------------------- names


def test_names_give_the_hierarchy_of_their_vectors(tmp_path):
    seen = []

    def encode(texts):
        seen.append(texts)
        return letters(texts)

    options = {"hierarchy": "names", "encoder": encode, "linkage": "average", "seeds": (0, 1)}
    result = compare(tmp_path, **ALONE, **options)
    assert seen == [list(NAMES)]
    wanted = Hierarchy.from_embeddings(letters(NAMES), linkage="average", class_names=NAMES)
    assert {run.hierarchy() for run in result.runs} == {wanted}


def test_classes_that_are_only_numbers_have_no_names_to_compare(tmp_path):
    with pytest.raises(
        ValueError, match=r"these are only numbers, such as 0, 1, 2; give hierarchy"
    ):
        compare(tmp_path, class_names=None, hierarchy="names", encoder=letters, **ALONE)


def test_a_file_of_the_same_name_is_meant_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained_run = compare(tmp_path / "features", methods="continuous", max_levels=None).runs[1]
    for given in (
        "./features",
        tmp_path / "features",
        trained_run.path.parents[1].relative_to(tmp_path),
    ):
        (run,) = compare(tmp_path / "out", hierarchy=given, **ALONE).runs
        assert run.hierarchy() == trained_run.hierarchy()
    with pytest.raises(RunError, match="begun with"):  # it is another hierarchy than the file
        compare(tmp_path / "out", hierarchy="features", encoder=squares, **ALONE)


# ------------------------------------------------------------------------------- refusals


class Counting:
    """Gives ever longer vectors."""

    def __init__(self):
        self.calls = 0

    def __call__(self, batch):
        self.calls += 1
        return torch.ones(len(batch), self.calls)


def spoiled(batch):
    return torch.where(batch > 4, torch.nan, batch)


@pytest.mark.parametrize(
    ("word", "encode", "message"),
    [
        ("features", lambda batch: batch.mean(1), r"\(N, D\).*Got the shape \(32,\) for 32"),
        ("features", lambda batch: batch.mean(0, keepdim=True), r"Got the shape \(1, 10\) for 32"),
        ("features", lambda batch: batch[:, :0], r"Got the shape \(32, 0\) for 32"),
        ("features", lambda batch: [*batch.tolist()[0], "x"], "encoder must take a batch of"),
        ("features", lambda batch: batch.nothing, "shape \\(32, 10\\) .*AttributeError"),
        ("features", lambda _: None, "encoder must take a batch of shape"),
        ("features", lambda batch: batch[:, :3] @ batch[:, :4].T @ batch, "encoder must take"),
        ("features", Counting(), "vectors of one length. Got 1 numbers .* and 2 for another"),
        ("features", spoiled, "Got a NaN or an infinity in the vector of the class '"),
        ("features", lambda batch: 0 * batch, "Got zeros for the vector of the class 'cat'"),
        ("names", lambda _: np.ones((3, 4)), r"Got the shape \(3, 4\) for 6 of them"),
        (
            "names",
            lambda _: np.full((6, 4), np.inf),
            "infinity in the vector of the class 'cat'",
        ),
        ("names", squares, "encoder must take the names of the classes and return"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 10 else "",
)
def test_an_encoder_that_gives_something_else_is_refused_before_training(
    word, encode, message, tmp_path
):
    with pytest.raises(ValueError, match=message):
        compare(tmp_path, hierarchy=word, encoder=encode)
    assert not list(tmp_path.rglob("metrics.jsonl"))


@pytest.mark.parametrize(
    ("encode", "error", "message"),
    [
        (SmallNet, TypeError, "that is made. Got the class SmallNet"),
        (3, TypeError, "encoder must be a string or None. Got 3"),
        ("studies", ValueError, "must have the form package.module:callable"),
        ("studies:nothing", ValueError, "studies has no nothing"),
        ("studies:NAMES", TypeError, "a function or an nn.Module that is made. Got tuple"),
    ],
    ids=["class", "number", "form", "missing", "object"],
)
def test_what_is_no_encoder_is_refused(encode, error, message, tmp_path):
    with pytest.raises(error, match=message):
        compare(tmp_path, hierarchy="features", encoder=encode)


@pytest.mark.filterwarnings("ignore:1 of 6 classes")
def test_a_class_without_training_samples_has_no_mean(tmp_path):
    inputs, targets = TRAIN
    without = (inputs[targets != 2], targets[targets != 2])
    with pytest.raises(ValueError, match="the class 'fox' has no training samples, so hierarchy="):
        compare(tmp_path, without, hierarchy="features", encoder=squares)


# ---------------------------------------------------------------------------- directories


def two_layers(seed):
    torch.manual_seed(seed)
    return nn.Linear(10, 4)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"hierarchy_epochs": 2}),
        ({"hierarchy_epochs": 2}, {"hierarchy_epochs": 3}),
        ({}, {"hierarchy": "features", "encoder": squares}),
        (
            {"hierarchy": "features", "encoder": squares},
            {"hierarchy": "features", "encoder": lengths},
        ),
        (
            {"hierarchy": "features", "encoder": two_layers(0)},
            {"hierarchy": "features", "encoder": two_layers(1)},
        ),
        (
            {"hierarchy": "features", "encoder": two_layers(0).forward},
            {"hierarchy": "features", "encoder": two_layers(1).forward},
        ),
        (
            {"hierarchy": "names", "encoder": letters},
            {"hierarchy": "names", "encoder": lambda texts: letters(texts) % 2 + 0.1},
        ),
    ],
    ids=["short", "epochs", "word", "encoder", "weights", "method", "names"],
)
def test_other_sources_have_another_directory_by_default(one, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [compare(None, methods=(), epochs=1, **changes).path for changes in (one, other, one)]
    assert paths[0] == paths[2] != paths[1]


def test_an_encoder_by_its_place_is_that_of_the_object(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_encoder.py").write_text("def encode(batch):\n    return batch**2 + batch\n")
    options = {"hierarchy": "features", "encoder": "own_encoder:encode", **ALONE}
    by_place = compare(tmp_path / "a", **options)
    given = compare(tmp_path / "b", **{**options, "encoder": lambda batch: batch**2 + batch})
    assert by_place.runs[0].hierarchy() == given.runs[0].hierarchy()
    stored = json.loads((tmp_path / "a" / "config.json").read_text())["config"]
    assert (stored["hierarchy"], stored["encoder"]) == ("features", "own_encoder:encode")
