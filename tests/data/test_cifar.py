"""CIFAR in all forms in which people have it."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import Cifar, md5, python2_pickle, write_files, write_tar

from coarse2fine.data.sets.cifar import OFFICIAL, load_cifar10, load_cifar100
from coarse2fine.data.sets.pickles import plain_values

LOADERS = {10: load_cifar10, 100: load_cifar100}
FOLDERS = {
    (10, "python"): "cifar-10-batches-py",
    (10, "binary"): "cifar-10-batches-bin",
    (100, "python"): "cifar-100-python",
    (100, "binary"): "cifar-100-binary",
}
FORMS = ["python.tar.gz", "binary.tar.gz", "python", "binary", "parquet"]


def write(cifar, form, folder):
    """Write a form of a data set and return the checksums to load it with."""
    if form == "parquet":
        cifar.write_parquet(folder)
        return {}
    version = form.removesuffix(".tar.gz")
    files = cifar.python_files() if version == "python" else cifar.binary_files()
    top = FOLDERS[cifar.kind, version]
    if form == version:
        write_files(folder / top, files)
        return {name: md5(content) for name, content in files.items()}
    folder.mkdir(parents=True, exist_ok=True)
    name = f"cifar-{cifar.kind}-{form}"
    return {name: write_tar(folder / name, top, files)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [10, 100])
def test_every_form_gives_the_same_images_labels_and_order(tmp_path, kind, form):
    cifar = Cifar(kind)
    checksums = write(cifar, form, tmp_path)
    source = LOADERS[kind](tmp_path, checksums=checksums)
    assert source.kind == "image"
    for split, names in ((source.train, cifar.batches), (source.test, [cifar.test])):
        pixels = np.concatenate([cifar.parts[name][0] for name in names])
        labels = [label for name in names for label in cifar.parts[name][1]]
        assert split.inputs.dtype == torch.uint8
        assert torch.equal(split.inputs, torch.from_numpy(pixels).reshape(-1, 3, 32, 32))
        assert split.targets.tolist() == labels
        assert split.class_names == tuple(cifar.fine_names)


@pytest.mark.parametrize("form", FORMS)
def test_the_coarse_labels_of_cifar100(tmp_path, form):
    cifar = Cifar(100)
    checksums = write(cifar, form, tmp_path)
    source = load_cifar100(tmp_path, coarse=True, checksums=checksums)
    assert source.train.targets.tolist() == cifar.parts["train"][2]
    assert source.test.class_names == tuple(cifar.coarse_names)


@pytest.mark.parametrize("form", FORMS)
def test_the_coarse_labels_of_cifar100_are_groups_of_its_classes(tmp_path, form):
    cifar = Cifar(100)
    pixels, fine, _ = cifar.parts["train"]
    cifar.parts["train"] = (pixels, fine, [label // 5 for label in fine])
    source = load_cifar100(tmp_path, checksums=write(cifar, form, tmp_path))
    assert source.groups.labels.tolist() == cifar.parts["train"][2]
    assert source.groups.names == tuple(cifar.coarse_names)


def test_other_sets_have_no_groups(tmp_path):
    assert load_cifar10(tmp_path, checksums=write(Cifar(10), "python", tmp_path)).groups is None
    folder = tmp_path / "coarse"
    checksums = write(Cifar(100), "python", folder)
    assert load_cifar100(folder, coarse=True, checksums=checksums).groups is None


@pytest.mark.parametrize(
    ("kind", "form", "inner"),
    [
        (10, "python", "cifar10"),
        (10, "parquet", "plain_text"),
        (10, "parquet", "cifar10/data"),
        (100, "binary.tar.gz", "cifar100"),
        (100, "parquet", "cifar100"),
    ],
)
def test_the_usual_sub_folders_are_looked_into(tmp_path, kind, form, inner):
    checksums = write(Cifar(kind), form, tmp_path / inner)
    assert len(LOADERS[kind](tmp_path, checksums=checksums).test) == 4


def test_the_unpacked_folder_itself_may_be_given(tmp_path):
    checksums = write(Cifar(100), "python", tmp_path)
    folder = str(tmp_path / "cifar-100-python")
    assert len(load_cifar100(folder, checksums=checksums).train) == 4


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.parametrize("stored_by", [np.ascontiguousarray, np.asfortranarray])
def test_arrays_are_read_as_by_pickle_itself(stored_by):
    pixels = stored_by(np.arange(12, dtype=np.uint8).reshape(3, 4))
    stored = python2_pickle({"data": pixels, "labels": [1, 2, 3]})
    found, usual = plain_values(stored, "file"), pickle.loads(stored, encoding="latin1")
    assert found["data"].tolist() == usual["data"].tolist() == pixels.tolist()
    assert found["labels"] == usual["labels"] == [1, 2, 3]


# -------------------------------------------------------------------------- what is refused


def test_without_any_form_what_is_looked_for_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no CIFAR-10; .*cifar-10-python.tar.gz.*parquet"):
        load_cifar10(tmp_path / "nowhere")


@pytest.mark.parametrize("form", ["python.tar.gz", "binary.tar.gz"])
@pytest.mark.parametrize("kind", [10, 100])
def test_an_archive_that_is_not_the_official_one_is_refused(tmp_path, kind, form):
    (name,) = write(Cifar(kind), form, tmp_path)
    message = rf"{name} is not the official archive: md5 \w+, expected {OFFICIAL[name]}; download"
    with pytest.raises(ValueError, match=message):
        LOADERS[kind](tmp_path)


@pytest.mark.parametrize(
    ("kind", "name"), [(10, "data_batch_1"), (10, "test_batch"), (100, "test"), (100, "meta")]
)
def test_an_unpacked_file_that_is_not_the_official_one_is_refused(tmp_path, kind, name):
    checksums = write(Cifar(kind), "python", tmp_path) | {name: OFFICIAL[name]}
    with pytest.raises(
        ValueError, match=rf"{name} is not the official file: md5 .* {OFFICIAL[name]}"
    ):
        LOADERS[kind](tmp_path, checksums=checksums)


def test_a_missing_batch_is_named(tmp_path):
    checksums = write(Cifar(10), "binary", tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"bin lacks data_batch_3.bin; download"):
        load_cifar10(tmp_path, checksums=checksums)


def test_a_binary_file_that_is_cut_off_is_refused(tmp_path):
    write(Cifar(100), "binary", tmp_path)
    path = tmp_path / "cifar-100-binary" / "train.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"train.bin must hold records of 3074 bytes. Got 12295"):
        load_cifar100(tmp_path)


def test_parquet_files_of_another_data_set_are_refused(tmp_path):
    write(Cifar(10), "parquet", tmp_path)
    with pytest.raises(ValueError, match=r"train-.*parquet has no column fine_label; it has img"):
        load_cifar100(tmp_path)


class Command:
    """Runs a command when it is unpickled in the usual way."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def test_a_pickle_that_would_run_a_command_runs_nothing(tmp_path):
    marker = tmp_path / "was-run"
    attack = pickle.dumps({"data": Command(marker)}, protocol=2)
    pickle.loads(attack)
    assert marker.exists(), "the attack itself must work"
    marker.unlink()
    files = Cifar(100).python_files() | {"train": attack}
    write_files(tmp_path / "cifar-100-python", files)
    checksums = {name: md5(content) for name, content in files.items()}
    with pytest.raises(ValueError, match=r"cifar-100-python/train is not a pickle of plain values"):
        load_cifar100(tmp_path, checksums=checksums)
    assert not marker.exists()


GLOBALS = [
    b"cposix\nsystem\n", b"cbuiltins\neval\n", b"c__builtin__\neval\n", b"cnumpy\nload\n",
    b"cnumpy\nmemmap\n", b"c_codecs\nencode\n", b"ccopy_reg\n_reconstructor\n",
    b"cnumpy.core.multiarray\nscalar\n", b"cnumpy\ndtype.__init__.__globals__\n",
]  # fmt: skip


@pytest.mark.parametrize("asked", GLOBALS)
def test_a_pickle_may_name_nothing_but_arrays(asked):
    with pytest.raises(ValueError, match=r"^some/file is not a pickle of plain .*it asks for"):
        plain_values(b"\x80\x02}(T\x01\0\0\0a" + asked + b"u.", "some/file")


SMALL = python2_pickle({"data": np.zeros((2, 2), np.uint8)})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        python2_pickle([1, 2]),
        SMALL[:-9],
        SMALL.replace(b"u1", b"O8"),
        SMALL.replace(b"J\x02\0\0\0", b"J\xff\xff\xff\x7f"),
    ],
    ids=["empty", "text", "list", "cut off", "objects", "too large"],
)
def test_broken_pickles_are_refused_by_name(content):
    with pytest.raises(ValueError, match=r"^some/file is not a pickle of plain values \("):
        plain_values(content, "some/file")


def test_an_array_that_a_pickle_calls_for_takes_no_memory():
    huge = b"J\xff\xff\xff\x7f"
    called = b"\x80\x02}(T\x01\0\0\0acnumpy\nndarray\n((" + 4 * huge + b"ttRu."
    assert plain_values(called, "some/file")["a"].size == 0


def test_the_checksums_cover_all_official_archives_and_pickles():
    pickles = Cifar(10).python_files().keys() | Cifar(100).python_files().keys()
    archives = {f"cifar-{k}-{v}.tar.gz" for k in (10, 100) for v in ("python", "binary")}
    assert OFFICIAL.keys() == pickles | archives


# --------------------------------------------------------------------------------- real data


@pytest.mark.slow
def test_the_real_cifar100():
    folder = os.environ.get("COARSE2FINE_DATA")
    if folder is None or not Path(folder, "cifar100").is_dir():
        pytest.skip("COARSE2FINE_DATA names no folder with cifar100")
    fine = load_cifar100(folder)
    assert fine.train.inputs.shape == (50_000, 3, 32, 32)
    assert fine.test.inputs.shape == (10_000, 3, 32, 32)
    assert fine.train.targets.bincount().tolist() == [500] * 100
    assert fine.test.targets.bincount().tolist() == [100] * 100
    assert (fine.train.class_names[0], fine.train.class_names[-1]) == ("apple", "worm")
    # The mean colour that is published everywhere.
    mean = fine.train.inputs.float().mean(dim=(0, 2, 3)) / 255
    assert mean.tolist() == pytest.approx([0.5071, 0.4865, 0.4409], abs=1e-4)
    coarse = load_cifar100(folder, coarse=True)
    assert coarse.train.targets.bincount().tolist() == [2500] * 20
    groups = {(int(f), int(c)) for f, c in zip(fine.test.targets, coarse.test.targets, strict=True)}
    assert len(groups) == 100


@pytest.mark.parametrize("form", ["python", "binary"])
def test_a_label_that_is_no_class_is_named_with_its_file_and_row(form, tmp_path):
    cifar = Cifar(10)
    files = cifar.python_files() if form == "python" else cifar.binary_files()
    broken = dict(files)
    if form == "binary":
        name = "data_batch_3.bin"
        broken[name] = files[name][: 3073 * 2] + bytes([200]) + files[name][3073 * 2 + 1 :]
    else:
        name = "data_batch_3"
        content = plain_values(files[name], name)
        content["labels"] = [0, 1, 200, 2]
        broken[name] = python2_pickle(content)
    write_files(tmp_path / FOLDERS[10, form], broken)
    checksums = {file: md5(data) for file, data in broken.items()}
    with pytest.raises(ValueError, match=rf"{name}: labels must lie in 0..9.*Got 200 in row 3"):
        load_cifar10(tmp_path, checksums=checksums)
