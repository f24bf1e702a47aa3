"""Hierarchies from whatever a user has: one, what it is made from, a file or a run."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from studies import NAMES, hierarchy, train
from torch import nn

from coarse2fine import Hierarchy, RunError, class_distances
from coarse2fine.runs.hierarchies import read_hierarchy

DISTANCES = [[0, 1, 5, 6], [1, 0, 7, 8], [5, 7, 0, 2], [6, 8, 2, 0]]
ANIMALS = ("cat", "dog", "car", "van")
TAXONOMY = {"animal": ["cat", "dog"], "vehicle": ["van", "car"]}


@pytest.fixture
def vectors(rng):
    return rng.standard_normal((12, 5)).astype(np.float32)


def test_a_hierarchy_is_itself_whatever_else_is_said():
    assert read_hierarchy(hierarchy(), metric="random", class_names=["x"]) == hierarchy()


def test_a_trained_model_gives_its_final_layer(vectors):
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 12))
    model[1].weight.data = torch.from_numpy(vectors)
    assert read_hierarchy(model) == Hierarchy.from_embeddings(vectors)
    assert read_hierarchy(model, head="0", linkage="average") == Hierarchy.from_classifier(
        model, head="0", linkage="average"
    )


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_a_square_matrix_in_memory_is_of_distances(kind):
    expected = Hierarchy.from_distances(DISTANCES, linkage="average", class_names=ANIMALS)
    assert read_hierarchy(kind(DISTANCES), linkage="average", class_names=ANIMALS) == expected


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (3, "int"),
        ([[0, 0, 1]], r"list of the shape \(1, 3\)"),
        ([[0, 1], [2]], "list"),
        (np.zeros(4), r"ndarray of the shape \(4,\)"),
    ],
)
def test_what_no_hierarchy_is_read_from_is_named(given, got):
    with pytest.raises(TypeError, match=rf"must be a Hierarchy, .* file or run .* Got {got}\."):
        read_hierarchy(given)


def test_a_saved_hierarchy_keeps_its_own_names(tmp_path):
    saved = Hierarchy.from_levels([[0, 0, 1]], ["x", "y", "z"])
    saved.save(tmp_path / "h.json")
    assert read_hierarchy(tmp_path / "h.json", class_names=["a", "b", "c"]) == saved


def test_a_taxonomy_is_put_in_the_order_of_the_classes(write):
    nested = write("nested.json", json.dumps(TAXONOMY))
    pairs = [["parent", "child"], *([g, c] for g, group in TAXONOMY.items() for c in group)]
    for path in (nested, write("pairs.csv", pairs)):
        found = read_hierarchy(path, class_names=ANIMALS)
        assert found.class_names == ANIMALS
        assert found.clusters(0) == ((0, 1), (2, 3))
        assert read_hierarchy(path).class_names == ("cat", "dog", "van", "car")


def test_of_several_parents_in_a_taxonomy_the_first_may_be_taken(write):
    nested = write("nested.json", json.dumps({**TAXONOMY, "loved": ["cat"]}))
    pairs = [["parent", "child"], *([g, c] for g, group in TAXONOMY.items() for c in group)]
    for path in (nested, write("pairs.csv", [*pairs, ["loved", "cat"]])):
        with pytest.raises(ValueError, match="cat"):
            read_hierarchy(path)
        assert read_hierarchy(path, parents="first") == Hierarchy.from_taxonomy(TAXONOMY)


def test_what_is_no_taxonomy_has_no_parents_to_choose(tmp_path, write):
    hierarchy().save(tmp_path / "h.json")
    others = [hierarchy(), DISTANCES, tmp_path / "h.json", write("d.csv", DISTANCES), tmp_path]
    for given in others:
        with pytest.raises(ValueError, match="only a taxonomy has several parents"):
            read_hierarchy(given, parents="first")
    with pytest.raises(FileNotFoundError, match="missing"):
        read_hierarchy(tmp_path / "missing.csv", parents="first")


def test_a_symmetric_matrix_is_of_distances(tmp_path, write):
    expected = Hierarchy.from_distances(DISTANCES, linkage="average", class_names=ANIMALS)
    np.save(tmp_path / "d.npy", DISTANCES)
    for path in (tmp_path / "d.npy", write("d.csv", DISTANCES)):
        assert read_hierarchy(path, linkage="average", class_names=ANIMALS) == expected


@pytest.mark.parametrize(
    "rows",
    [
        [["", *ANIMALS], *([name, *row] for name, row in zip(ANIMALS, DISTANCES, strict=True))],
        [ANIMALS, *DISTANCES],
        [[name, *row] for name, row in zip(ANIMALS, DISTANCES, strict=True)],
    ],
    ids=["header and column of names", "header", "column of names"],
)
def test_a_csv_may_name_the_classes(write, rows):
    found = read_hierarchy(write("d.csv", rows), class_names=["1", "2", "3", "4"])
    assert found == Hierarchy.from_distances(DISTANCES, class_names=ANIMALS)


def test_numbers_around_a_csv_are_no_names(write):
    rows = [["", 0, 1, 2, 3], *([number, *row] for number, row in enumerate(DISTANCES))]
    assert read_hierarchy(write("d.csv", rows)) == Hierarchy.from_distances(DISTANCES)


def test_any_other_matrix_is_of_embeddings(tmp_path, vectors):
    np.save(tmp_path / "w.npy", vectors)
    assert read_hierarchy(tmp_path / "w.npy") == Hierarchy.from_embeddings(vectors)
    for metric in ("embedding_similarity", "random"):
        expected = Hierarchy.from_distances(class_distances(vectors, metric, num_classes=12))
        assert read_hierarchy(tmp_path / "w.npy", metric=metric) == expected


def test_a_square_matrix_that_is_not_symmetric_is_taken_for_embeddings_with_a_warning(write):
    rows = [[1, 2, 3], [2, 1, 0], [0, 5, 1]]
    path = write("w.csv", rows)
    with pytest.warns(UserWarning, match="w.csv is square but not symmetric, so it is read as"):
        assert read_hierarchy(path, linkage="complete").num_classes == 3
    confusion = read_hierarchy(path, metric="confusion_distance", linkage="average")
    assert confusion == Hierarchy.from_confusion(rows, "confusion_distance", linkage="average")


def test_an_npz_has_one_matrix_and_may_have_names(tmp_path, vectors):
    names = [f"class {number}" for number in range(12)]
    np.savez(tmp_path / "w.npz", W=vectors, labels=np.array(names), source=np.array("somewhere"))
    assert read_hierarchy(tmp_path / "w.npz") == Hierarchy.from_embeddings(
        vectors, class_names=names
    )


def test_a_checkpoint_gives_its_final_layer(tmp_path, vectors):
    state = {"fc.weight": torch.from_numpy(vectors), "fc.bias": torch.zeros(12)}
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "c.pt")
    save_file(state, tmp_path / "c.safetensors")
    for name in ("c.pt", "c.safetensors"):
        assert read_hierarchy(tmp_path / name) == Hierarchy.from_embeddings(vectors)


def test_the_export_of_a_run_brings_its_class_names(tmp_path, vectors):
    names = [f"class {number}" for number in range(12)]
    metadata = {"class_names": json.dumps(names)}
    save_file({"fc.weight": torch.from_numpy(vectors)}, tmp_path / "c.safetensors", metadata)
    assert read_hierarchy(tmp_path / "c.safetensors", class_names=NAMES).class_names == tuple(names)


def test_a_run_gives_the_hierarchy_it_was_trained_with(tmp_path):
    train(tmp_path / "run", "continuous")
    assert read_hierarchy(tmp_path / "run") == hierarchy()


def test_a_folder_that_is_no_run_is_not_taken_for_one(tmp_path):
    hierarchy().save(tmp_path / "hierarchy.json")
    with pytest.raises(RunError, match="it is not a run"):
        read_hierarchy(tmp_path)


def test_a_run_without_a_hierarchy_gives_that_of_its_model(tmp_path):
    run = train(tmp_path / "run")
    model = run.model()
    expected = Hierarchy.from_classifier(model, linkage="average", class_names=NAMES)
    assert read_hierarchy(run.path, linkage="average", class_names=["wrong"]) == expected
    confused = Hierarchy.from_confusion(
        run.predictions("val"), "confusion", num_classes=6, class_names=NAMES
    )
    assert read_hierarchy(run.path, metric="confusion") == confused
    given = np.subtract.outer(np.arange(6), np.arange(6)) ** 2
    expected = Hierarchy.from_distances(given, class_names=NAMES)
    assert read_hierarchy(run.path, metric=given) == expected


def test_confusion_needs_validation_samples(tmp_path):
    run = train(tmp_path / "run", val_share=0.0)
    with pytest.raises(ValueError, match="needs validation samples, and .*run had none"):
        read_hierarchy(run.path, metric="confusion")


@pytest.mark.parametrize(("metric", "linkage"), [("random", "single"), ("embedding", "average")])
def test_what_is_made_already_leaves_no_choice(tmp_path, write, metric, linkage):
    hierarchy().save(tmp_path / "h.json")
    train(tmp_path / "run", "continuous")
    paths = [tmp_path / "h.json", tmp_path / "run", write("t.json", json.dumps(TAXONOMY))]
    paths += [write("d.csv", DISTANCES)] if metric == "random" else []
    for path in paths:
        with pytest.raises(ValueError, match=f"{path.name}.* leaves no choice of"):
            read_hierarchy(path, metric=metric, linkage=linkage)


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "a hierarchy is read from .json, .npy, .npz, .csv, a checkpoint"),
        ("a.json", "[1", "not readable as JSON"),
        ("a.json", "3", "taxonomy must be a nested dict"),
        ("a.csv", "", "holds no rows of numbers"),
        ("a.csv", "a,b\nc,d\n", "neither a matrix of numbers .* nor a taxonomy"),
        ("a.csv", "1,2\n3\n", "inhomogeneous"),
        ("a.csv", b"\xff\xfe\x00", "not readable as CSV"),
        ("a.csv", "0,1\n1,nan\n", "is nan"),
        ("a.npy", b"no array", "not readable as an array of numpy"),
        ("a.npy", b"", "not readable as an array of numpy"),
        ("a.npz", b"PK\x03\x04 cut short", "not readable as an array of numpy"),
        ("a.safetensors", b"\x00" * 20, "not readable as safetensors"),
        ("a.pt", b"no pickle", "not readable as tensors alone"),
    ],
)
def test_a_bad_file_is_named(write, name, content, message):
    path = write(name, content)
    with pytest.raises(ValueError, match=f"{name}: .*{message}|{name} {message}"):
        read_hierarchy(path)


def test_an_npz_must_hold_one_matrix(tmp_path):
    two = npz(tmp_path / "two.npz", a=np.eye(3), b=np.eye(3))
    with pytest.raises(
        ValueError, match=r"two.npz must hold one matrix .* Got a float64 \(3, 3\), b"
    ):
        read_hierarchy(two)
    objects = npz(tmp_path / "objects.npz", a=np.array([{}, []], dtype=object))
    with pytest.raises(ValueError, match="objects.npz: not readable as an array of numpy"):
        read_hierarchy(objects)


def test_a_checkpoint_has_no_confusion(tmp_path):
    torch.save({"fc.weight": torch.eye(4)}, tmp_path / "c.pt")
    with pytest.raises(ValueError, match="c.pt: the metric 'confusion' needs a confusion matrix"):
        read_hierarchy(tmp_path / "c.pt", metric="confusion")


def test_names_must_be_as_many_as_classes(write):
    with pytest.raises(ValueError, match=r"d.csv: class_names .* 4"):
        read_hierarchy(write("d.csv", DISTANCES), class_names=["a", "b"])


def test_what_does_not_exist_or_is_no_run_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file or run .*nothing.json"):
        read_hierarchy(tmp_path / "nothing.json")
    with pytest.raises(RunError, match=r"has no result.json: it is not a run"):
        read_hierarchy(tmp_path)
