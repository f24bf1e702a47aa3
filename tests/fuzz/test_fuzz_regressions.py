"""Faults that fuzzing found: what happens now instead."""

import gzip
import io
import json
import os
import tarfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from fuzz_choices import Choices
from fuzz_data import cifar_files, tarred, tiny_files, zipped
from fuzz_images import picture, put
from fuzz_runs import make_run, torch_saved, zip_parts
from safetensors.torch import save_file

from coarse2fine import Config, Hierarchy, RunResult
from coarse2fine.checkpoints import read_state_dict
from coarse2fine.data.load import load_data
from coarse2fine.data.sets import archives
from coarse2fine.data.sets.cifar import load_cifar10
from coarse2fine.data.sets.tiny_imagenet import load_tiny_imagenet
from coarse2fine.data.sources.image_sources import image_names, load_folder
from coarse2fine.data.sources.tables import load_table
from coarse2fine.errors import RunError
from coarse2fine.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, signed
from coarse2fine.runs.directory import Run
from coarse2fine.runs.hierarchies import read_hierarchy
from coarse2fine.runs.restore import load_trained
from coarse2fine.runs.result import Result

ARCHIVE = "cifar-10-python.tar.gz"
pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")


@pytest.fixture
def images(tmp_path):
    for name in ("a/1.png", "b/1.png"):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(picture("PNG"))
    return tmp_path / "images"


# ------------------------------------------------------------------------ trees and matrices


@pipes
def test_a_pipe_in_place_of_a_hierarchy_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "h.json")
    for read in (Hierarchy.load, Hierarchy.from_taxonomy, read_hierarchy):
        with pytest.raises(ValueError, match="h.json is not a regular file"):
            read(tmp_path / "h.json")


def test_what_a_file_holds_neither_floods_nor_steers_the_terminal(write):
    path = write("t.csv", [["\x1b[31m" + "x" * 3000, "b"]])
    with pytest.raises(ValueError, match="the first row must name") as caught:
        Hierarchy.from_taxonomy(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("shape", ["(3, (", "(9999999999999, 2)", "(2"])
def test_a_matrix_whose_header_lies_is_refused(write, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with pytest.raises(ValueError, match="m.npy: not readable as an array"):
        read_hierarchy(write("m.npy", data))


def test_embeddings_too_short_to_be_scaled_are_refused():
    rows = np.array([[1, 0], [0, 1e-44]], np.float32)
    with pytest.raises(ValueError, match=r"embeddings\[1\] is too short"):
        Hierarchy.from_embeddings(rows)


def test_numbers_of_a_machine_of_the_other_byte_order_are_read(tmp_path):
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 1]])
    for name, kind in (("own.npy", "=f8"), ("other.npy", ">f8"), ("whole.npy", ">i4")):
        np.save(tmp_path / name, (10 * rows).astype(kind))
    assert read_hierarchy(tmp_path / "own.npy") == read_hierarchy(tmp_path / "other.npy")
    assert read_hierarchy(tmp_path / "whole.npy") == read_hierarchy(tmp_path / "own.npy")


# --------------------------------------------------------------------------------- archives


@pytest.mark.parametrize(
    "data", [b"", b"no gzip", gzip.compress(b"no tar", mtime=0), b"\x1f\x8b\x08\x00"]
)
def test_a_broken_archive_is_named(write, tmp_path, data):
    write(ARCHIVE, data)
    with pytest.raises(ValueError, match=f"{ARCHIVE} cannot be read"):
        load_cifar10(tmp_path, checksums={})


def test_a_file_in_an_archive_that_claims_to_be_huge_is_not_read(write, tmp_path):
    header = tarfile.TarInfo("data_batch_1")
    header.size = archives.MOST_BYTES + 1
    write(ARCHIVE, gzip.compress(header.tobuf() + b"x" * 512))
    with pytest.raises(ValueError, match="data_batch_1 would have"):
        load_cifar10(tmp_path, checksums={})


@pytest.mark.parametrize("names", [b"\x80\x02}.", b"\x80\x02}(U\x0blabel_namesK\x05u."])
def test_class_names_of_another_kind_are_refused(write, tmp_path, names):
    files = {**cifar_files(ARCHIVE), "batches.meta": names}
    write(ARCHIVE, tarred(files, Choices(b"")))
    with pytest.raises(ValueError, match="batches.meta holds no label_names"):
        load_cifar10(tmp_path, checksums={})


def archive(**changed):
    files = {name: changed.get(name, content) for name, content in tiny_files().items()}
    return zipped({f"tiny-imagenet-200/{name}": x for name, x in files.items() if x is not None})


def test_an_archive_without_one_of_its_files_says_which(write, tmp_path):
    write("tiny-imagenet-200.zip", archive(**{"words.txt": None}))
    with pytest.raises(FileNotFoundError, match="zip lacks words.txt"):
        load_tiny_imagenet(tmp_path, checksums={})


@pytest.mark.parametrize(
    "data", [b"", b"PK\x05\x06", archive()[:-30], archive(**{"wnids.txt": b"\xff"})]
)
def test_a_broken_zip_is_named(write, tmp_path, data):
    write("tiny-imagenet-200.zip", data)
    with pytest.raises(ValueError, match="tiny-imagenet-200.zip.* cannot be read"):
        load_tiny_imagenet(tmp_path, checksums={})


def test_a_list_of_images_cannot_name_one_outside(tmp_path):
    secret = tmp_path / "secret.JPEG"
    secret.write_bytes(picture("JPEG"))
    listed = {"val/val_annotations.txt": f"{secret}\tn01\n".encode()}
    for name, content in {**tiny_files(), **listed}.items():
        put(tmp_path / "data" / name, content)
    with pytest.raises(ValueError, match="val_annotations.txt names .*not an image beside it"):
        load_tiny_imagenet(tmp_path / "data", checksums={})


# --------------------------------------------------------------------------- image folders


def test_no_format_is_read_whose_reader_starts_programs(images):
    (images / "a" / "2.png").write_bytes(picture("EPS"))
    with pytest.raises(ValueError, match="2.png is not an image that Pillow can read"):
        load_folder(images)


@pipes
def test_a_pipe_among_images_is_refused_rather_than_waited_for(images):
    os.mkfifo(images / "a" / "2.png")
    with pytest.raises(ValueError, match="2.png is no file"):
        load_folder(images)


@pytest.mark.parametrize("to", ["2.png", "nothing", "/dev/zero"])
def test_a_link_to_no_file_is_refused(images, to):
    (images / "a" / "2.png").symlink_to(to)
    with pytest.raises(ValueError, match="2.png is no file, or a link to none"):
        load_folder(images)


def test_many_folders_that_link_to_each_other_are_each_looked_into_once(tmp_path):
    count = 30  # the ways through them all are more than could ever be gone
    folders = [tmp_path / f"{number:02d}" for number in range(count)]
    for folder in folders:
        folder.mkdir()
        (folder / "1.png").touch()
    for folder in folders:
        for other in folders:
            (folder / f"to{other.name}").symlink_to(other)
    assert len(list(image_names(tmp_path))) == count


# ----------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("content", [b"Unnamed: 0\n1\n2\n", b'\n"\n', b",\n,\n"])
def test_a_table_without_columns_is_refused(write, content):
    with pytest.raises(ValueError, match="t.csv"):
        load_table(write("t.csv", content))


def test_half_a_character_in_the_name_of_a_column_is_no_obstacle(write):
    lines = [{"\ud800": "a b", "label": label} for label in "xyx"]
    source = load_table(write("t.json", json.dumps(lines).encode()))
    assert source.train.class_names == ("x", "y")


def test_labels_that_are_no_integers_of_this_machine_are_refused(write):
    lines = [{"x": 1, "label": value} for value in (1e300, 2.0, 1.0)]
    with pytest.raises(ValueError, match="t.json"):
        load_table(write("t.json", json.dumps(lines).encode()))


def parquet(tmp_path, image, labels):
    pq.write_table(pa.table({"image": image, "label": labels}), tmp_path / "train.parquet")
    return tmp_path / "train.parquet"


def test_one_huge_label_does_not_make_as_many_classes(tmp_path):
    image = pa.array([picture("PNG")] * 2, pa.binary())
    with pytest.raises(ValueError, match=f"has the label {2**62}; number the classes"):
        load_data(parquet(tmp_path, image, [0, 2**62]))


def test_a_column_of_images_without_images_is_refused(tmp_path):
    kind = pa.struct([("bytes", pa.string()), ("path", pa.string())])
    cells = pa.array([{"bytes": "a", "path": ""}], kind)
    hub = json.dumps({"info": {"features": {"image": {"_type": "Image"}}}})
    table = pa.table({"image": cells, "label": [0]}).replace_schema_metadata({"huggingface": hub})
    pq.write_table(table, tmp_path / "train.parquet")
    with pytest.raises(ValueError, match="train.parquet: the column image holds no images"):
        load_data(tmp_path / "train.parquet")


# --------------------------------------------------------------------- settings and runs


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ([], "the settings must be a dict"),
        ({"methods": None}, "methods"),
        ({"methods": [5]}, "methods must hold a string each"),
        ({"seeds": None}, "seeds"),
        ({"data": 5}, "data must be a string"),
        ({"accumulate": None}, "accumulate must be an integer"),
        ({"curriculum_epochs": None}, "curriculum_epochs"),
        ({"milestones": ["a"]}, "milestones must hold a number each"),
        ({"baseline": 1}, "baseline must be True or False"),
        ({"weight_decay": float("inf")}, "weight_decay must be at least 0"),
    ],
)
def test_settings_of_another_type_are_named(settings, named):
    with pytest.raises((TypeError, ValueError), match=named):
        Config.from_dict(settings)


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    return tmp_path / "run"


def change(run, **parts):
    """Change a run's files and forget the checksums, as older runs have none."""
    for name in ("config", "result"):
        content = json.loads((run / f"{name}.json").read_text())
        for part in ("checksums", "data_checksum", "own"):
            content.pop(part, None)
        inner = content["data" if name == "config" else "result"]
        inner.update({key: value for key, value in parts.items() if key in inner})
        (run / f"{name}.json").write_text(json.dumps(content))


@pytest.mark.parametrize("line", [b"{\n", b"5\n", b"[" * 5000 + b"]" * 5000 + b"\n"])
def test_a_damaged_line_of_metrics_is_named(run, line):
    change(run)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(line)
    with pytest.raises(RunError, match="metrics.jsonl is damaged: line 3"):
        Run(run).metrics()


@pytest.mark.parametrize(
    "parts",
    [
        {"accuracy": "high"},
        {"method": 5},
        {"seconds": 10**400},
        {"epochs": 10**400},
        {"num_clusters": ["a"]},
    ],
)
def test_a_result_of_other_types_is_damaged(run, parts):
    change(run, **parts)
    with pytest.raises(RunError, match="result.json is damaged"):
        RunResult.load(run)


@pytest.mark.parametrize(
    "parts", [*({"input_shape": x} for x in ([0], [2.5], ["a"], 7)), {"class_names": []}]
)
def test_data_that_no_model_is_for_are_refused(run, parts):
    change(run, **parts)
    with pytest.raises(RunError, match="config.json cannot be used"):
        load_trained(run)


def test_a_config_cannot_ask_for_a_model_that_no_memory_holds(run):
    change(run, input_shape=[10**9])
    with pytest.raises(RunError, match="the weights are those of another model"):
        load_trained(run)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_predictions_that_are_no_classes_are_damaged(run, kind):
    change(run)
    tensors = {f"test.{name}": torch.zeros(5, dtype=kind) for name in ("predictions", "targets")}
    save_file(tensors, run / "predictions.safetensors")
    with pytest.raises(RunError, match="predictions.safetensors is damaged"):
        Result((RunResult.load(run),), (), run).level_table()


# -------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("name", ["/dev/zero", "../outside.safetensors"])
def test_a_checkpoint_cannot_name_files_outside(tmp_path, name):
    save_checkpoint(tmp_path / "c", Checkpoint(1, {}, {"model": {"w": torch.ones(1)}}))
    content = signed({"state": {}, "checksums": {name: "0"}})
    (tmp_path / "c" / "000001" / "state.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match="names the file"):
        load_checkpoint(tmp_path / "c")


def test_a_long_name_in_a_pickle_is_refused_at_once(write):
    pickled = b"\x80\x02cshutil\n" + b"x" * 100_000 + b"\n."
    parts = zip_parts(torch_saved({"fc.weight": torch.ones(3, 2)}))
    changed = {name: pickled if name.endswith("data.pkl") else x for name, x in parts.items()}
    path = write("w.pt", zipped(changed))
    started = time.process_time()
    with pytest.raises(ValueError, match="w.pt: not readable as tensors alone"):
        read_state_dict(path)
    assert time.process_time() - started < 2


def test_a_tar_in_place_of_weights_leaves_no_temporary_folder(write, monkeypatch):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("storages"))
    monkeypatch.setattr("tempfile.mkdtemp", lambda *_, **__: pytest.fail("it made a folder"))
    with pytest.raises(ValueError, match="it is a tar archive"):
        read_state_dict(write("w.pt", made.getvalue()))


def test_a_broken_list_of_imagenets_classes_is_named(tmp_path):
    from coarse2fine.data.sets.imagenet import load_imagenet

    for name in ("train/n01/a.JPEG", "train/n02/b.JPEG", "val/v1.JPEG"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(picture("JPEG"))
    truth = tmp_path / "ILSVRC2012_validation_ground_truth.txt"
    truth.write_text("1\n")
    Path(truth.with_name("meta.mat")).write_bytes(np.zeros(200, np.uint8).tobytes())
    with pytest.raises(ValueError, match="ground_truth.txt cannot be used"):
        load_imagenet(tmp_path, 4)
