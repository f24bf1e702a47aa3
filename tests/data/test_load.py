"""Which loader a name, a path or an object goes to, and with what; the loaders are fakes."""

import importlib
from pathlib import Path

import pytest
import torch
from image_files import encoded, photo, write_parquet

from coarse2fine.data.load import SETS, VARIABLE, load_data
from coarse2fine.data.sources.trees import GivenTree

LOADERS = {
    "sets.cifar": ("load_cifar10", "load_cifar100"),
    "sets.imagenet": ("load_imagenet",),
    "sets.sentences": ("load_banking77", "load_clinc150", "load_trec"),
    "sets.shapes": ("load_shapes",),
    "sets.sklearn_tables": ("load_digits", "make_table"),
    "sets.tiny_imagenet": ("load_tiny_imagenet",),
    "sources.image_sources": ("load_folder",),
    "sources.hub": ("load_hub",),
    "sources.objects": ("from_python",),
    "sources.tables": ("load_table",),
}
NO_TABLE = {"target": None, "text": None, "class_names": None, "columns": None}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    """Put loaders in place of the real ones, which return how they were called."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name, loaders in LOADERS.items():
        module = importlib.import_module(f"coarse2fine.data.{name}")
        for loader in loaders:
            monkeypatch.setattr(module, loader, calling(loader))


def calling(loader):
    def call(*given, **options):
        options.pop("tree", None)
        return loader, tuple(each for each in given if not isinstance(each, GivenTree)), options

    return call


@pytest.mark.parametrize(
    ("name", "loader", "options"),
    [
        ("cifar10", "load_cifar10", {}),
        ("cifar100", "load_cifar100", {}),
        ("cifar100-coarse", "load_cifar100", {"coarse": True}),
        ("tiny-imagenet", "load_tiny_imagenet", {}),
        ("imagenet", "load_imagenet", {}),
    ],
)
def test_a_named_set_is_read_from_the_folder_that_is_given(name, loader, options, tmp_path):
    assert load_data(name, folder=str(tmp_path)) == (loader, (), {**options, "folder": tmp_path})


def test_the_environment_says_where_a_set_lies_unless_it_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert load_data("cifar10")[2] == {"folder": tmp_path}
    (tmp_path / "own").mkdir()
    assert load_data("cifar10", folder=tmp_path / "own")[2] == {"folder": tmp_path / "own"}


def test_shapes_need_no_folder_and_can_have_a_number_and_a_size():
    assert load_data("shapes") == ("load_shapes", (), {})
    assert load_data("shapes:6000", image_size=32)[2] == {"count": 6000, "size": 32}


def test_images_of_imagenet_can_have_a_size(tmp_path):
    assert load_data("imagenet", folder=tmp_path, image_size=64)[2]["size"] == 64


def test_every_set_can_be_loaded():
    for known in SETS.values():
        assert known.loader in LOADERS[f"sets.{known.module}"]


def test_a_file_is_a_table_and_a_folder_holds_images(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("x,label\n1.5,a\n")
    table = {"target": "label", "text": "review", "class_names": ("a", "b"), "columns": ("x",)}
    assert load_data(rows, **table) == ("load_table", (rows,), table)
    assert load_data(str(rows)) == ("load_table", (rows,), NO_TABLE)
    loader, given, options = load_data(tmp_path, image_size=32, class_names=("a", "b"))
    assert (loader, given) == ("load_folder", (tmp_path,))
    assert options == {"size": 32, "class_names": ("a", "b")}


def test_parquet_files_with_images_are_no_tables(tmp_path):
    for role, count in (("train", 3), ("test", 2)):
        images = [encoded(photo(10, 8, seed)) for seed in range(count)]
        write_parquet(tmp_path / f"{role}.parquet", images, {"label": list(range(count))})
    found = load_data(tmp_path)
    assert (found.kind, len(found.train), len(found.test), found.val) == ("image", 3, 2, None)
    assert found.train.class_names == found.test.class_names == ("0", "1", "2")
    assert torch.equal(found.train.inputs[1], torch.tensor(photo(10, 8, 1)).permute(2, 0, 1))
    small = load_data(tmp_path / "train.parquet", image_size=4, class_names=("a", "b", "c"))
    assert small.train.inputs.shape == (3, 3, 4, 4)
    assert small.train.class_names == ("a", "b", "c")


def test_another_file_is_refused_by_its_name(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="notes.txt: not a csv, json-lines or parquet file"):
        load_data(tmp_path / "notes.txt")


@pytest.mark.parametrize("name", ["user/set", "user/set:config", "an-org/set-1.0"])
def test_what_looks_like_a_hub_name_is_one_unless_a_path_has_it(name, tmp_path, monkeypatch):
    loader, given, options = load_data(name, image_size=32, target="label")
    assert (loader, given) == ("load_hub", (name,))
    assert options == {"folder": None, "image_size": 32, **NO_TABLE, "target": "label"}
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(parents=True)
    assert load_data(name)[0] == "load_folder"


def test_objects_go_to_python_with_what_belongs_to_them():
    data, test, val = object(), object(), object()
    found = load_data(data, test, val, class_names=("a", "b"))
    assert found == ("from_python", (data, test, val, ("a", "b")), {})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"data": "cifar10"}, ValueError, "cifar10 must be on this machine.*COARSE2FINE_DATA"),
        ({"data": "cifar10", "folder": "nowhere"}, FileNotFoundError, "no folder nowhere"),
        ({"data": "cifar10", "folder": ".", "image_size": 8}, ValueError, "cifar10 have one size"),
        ({"data": "cifar10:5", "folder": "."}, ValueError, "only shapes can have a number.*'5'"),
        ({"data": "shapes:many"}, ValueError, "as shapes:6000. Got 'many'"),
        ({"data": "shapes", "test": object()}, TypeError, "for Python objects; a named set brings"),
        ({"data": "shapes", "val": object()}, TypeError, "for Python objects; a named set brings"),
        ({"data": "cifr10"}, FileNotFoundError, "no data 'cifr10': not one of shapes, cifar10"),
        ({"data": "missing/rows.csv"}, FileNotFoundError, "no data 'missing/rows.csv'"),
        ({"data": Path("user/set")}, FileNotFoundError, "no data 'user/set'"),
    ],
)
def test_what_cannot_be_found_is_said_in_a_sentence(given, error, message):
    with pytest.raises(error, match=message):
        load_data(**given)
