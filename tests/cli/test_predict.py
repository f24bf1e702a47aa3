"""`c2f predict`."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from coarse2fine import Result, fit, load_classifier


@pytest.fixture(scope="session")
def images(comparison):
    return load_classifier(comparison)


@pytest.fixture
def photos(tmp_path, rng):
    """A folder of five images at several depths."""
    folder = tmp_path / "photos"
    for number, place in enumerate(("b", "a", "in/c", "in/ner/d", "in/ner/e")):
        path = folder / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = (24 + number, 24, 3)
        Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(path)
    (folder / "notes.txt").write_text("not an image")
    return folder


ORDER = ["a.png", "b.png", "in/c.png", "in/ner/d.png", "in/ner/e.png"]


def used(comparison):
    """The first line on the standard error."""
    best = Result.load(comparison).best
    name = "the baseline" if best.method == "baseline" else best.method
    return (
        f"using {name} of seed 0, validation accuracy {100 * best.val_accuracy:.2f} %, test "
        f"accuracy {100 * best.accuracy:.2f} % ({best.path})\n"
    )


def test_a_folder_is_looked_through_and_every_image_predicted(c2f, comparison, photos, images):
    code, out, err = c2f("predict", comparison, photos, "--json")
    assert (code, err) == (0, used(comparison))
    found = [json.loads(line) for line in out.splitlines()]
    paths = [photos / name for name in ORDER]
    assert [each["input"] for each in found] == [str(path) for path in paths]
    wanted = [prediction.to_dict() for prediction in images.stream(paths)]
    for each, other in zip(found, wanted, strict=True):
        assert each["class"] == other["class"]
        assert each["probability"] == pytest.approx(other["probability"])
        assert len(each["guesses"]) == 2
        assert each["clusters"] == other["clusters"]
        assert len(each["clusters"]) == 1


def test_people_get_an_aligned_table(c2f, comparison, photos, images):
    _, out, _ = c2f("predict", comparison, photos, "--top", "2")
    header, *rows = out.splitlines()
    assert header.split() == ["class", "next", "of", "2", "clusters", "input"]
    assert len(rows) == 5
    place = header.index("input")
    assert [row[place:] for row in rows] == [str(photos / name) for name in ORDER]
    shown = [row[: header.index("next")].rsplit(maxsplit=1) for row in rows]
    assert [name for name, _ in shown] == images.predict(photos)
    assert all(share.endswith("%") for _, share in shown)


def test_csv_has_a_column_for_each_guess_and_level(c2f, comparison, photos):
    _, out, _ = c2f("predict", comparison, photos / "a.png", "--csv", "--top", "3")
    (row,) = csv.DictReader(io.StringIO(out))
    assert list(row) == [
        *("input", "class", "probability", "class_2", "probability_2"),
        *("class_3", "probability_3", "level_0"),
    ]
    assert float(row["probability"]) > float(row["probability_2"]) > float(row["probability_3"])


def test_a_file_is_written_whole_or_not_at_all(c2f, comparison, photos, tmp_path):
    out = tmp_path / "found.jsonl"
    code, shown, _ = c2f("predict", comparison, photos, "--json", "--out", out)
    assert (code, shown) == (0, "")
    before = out.read_text()
    assert len(before.splitlines()) == 5
    (photos / "z.png").write_bytes(b"no image")
    arguments = ("predict", comparison, photos, "--json", "--out", out, "--batch-size", "1")
    assert c2f(*arguments)[0] == 2
    assert out.read_text() == before
    assert {path.name for path in tmp_path.iterdir()} == {"photos", "found.jsonl"}
    code, _, err = c2f("predict", comparison, photos, "--out", "no/found.csv")
    assert (code, err) == (2, "error: no/found.csv: there is no folder no; make it first.\n")


def test_a_faulty_file_is_named(c2f, comparison, photos):
    (photos / "in" / "broken.png").write_bytes(b"no image")
    code, _, err = c2f("predict", comparison, photos)
    assert code == 2
    assert err.splitlines()[1:] == [
        f"error: {photos}/in/broken.png is not an image that Pillow can read; replace or remove it."
    ]


def test_faulty_files_are_skipped_and_counted_to_keep_going(c2f, comparison, photos):
    (photos / "in" / "broken.png").write_bytes(b"no image")
    code, out, err = c2f("predict", comparison, photos, "no.png", "--keep-going", "--json")
    assert code == 0
    assert len(out.splitlines()) == 5
    first, *skipped, last = err.splitlines()
    assert f"{first}\n" == used(comparison)
    assert [line.startswith("skipped: ") for line in skipped] == [True, True]
    assert f"{photos}/in/broken.png" in skipped[0]
    assert "no.png" in skipped[1]
    assert last == "5 predicted, 2 skipped"
    code, _, err = c2f("predict", comparison, "no.png", "--keep-going")
    assert code == 2
    assert err.endswith("error: nothing could be predicted: all 1 were skipped.\n")


def test_paths_of_images_come_by_the_standard_input(c2f, comparison, photos, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{photos}/a.png\n{photos}/in/c.png\n\n"))
    _, out, _ = c2f("predict", comparison, "-", "--json")
    inputs = [json.loads(line)["input"] for line in out.splitlines()]
    assert inputs == [f"{photos}/a.png", f"{photos}/in/c.png"]


def test_arrays_and_parquet_hold_images_too(c2f, comparison, photos, rng, tmp_path, images):
    pixels = rng.integers(0, 256, (3, 24, 24, 3), dtype=np.uint8)
    np.save(tmp_path / "new.npy", pixels)
    encoded = [(photos / name).read_bytes() for name in ORDER[:2]]
    table = pa.table(
        {"image": [{"bytes": data, "path": None} for data in encoded], "label": [0, 1]}
    )
    pq.write_table(table, tmp_path / "new.parquet")
    _, out, _ = c2f("predict", comparison, "new.npy", "new.parquet", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["input"] for each in found] == [
        *(f"new.npy, row {number}" for number in (1, 2, 3)),
        *(f"new.parquet, row {number}" for number in (1, 2)),
    ]
    wanted = [*images.predict(pixels), *images.predict([photos / name for name in ORDER[:2]])]
    assert [each["class"] for each in found] == wanted


@pytest.fixture(scope="session")
def intents(tmp_path_factory):
    """The folder of a comparison on sentences."""
    folder = tmp_path_factory.mktemp("intents")
    said = {"lost": "my card is lost", "pin": "I forgot my pin", "top up": "add some money"}
    rows = [f"{text} {number % 5},{name}" for number in range(15) for name, text in said.items()]
    (folder / "intents.csv").write_text("\n".join(["sentence,intent", *rows, ""]))
    fit(str(folder / "intents.csv"), epochs=2, curriculum_epochs=1, out=folder / "run")
    return folder / "run"


def test_sentences_come_by_the_standard_input(c2f, intents, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("my card is lost\n\na pin"))
    code, out, _ = c2f("predict", intents, "-", "--json", "--batch-size", "2")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [each["input"] for each in found] == ["my card is lost", "", "a pin"]
    assert [each["class"] for each in found] == load_classifier(intents).predict(
        ["my card is lost", "", "a pin"]
    )


def test_labels_in_a_table_are_ignored(c2f, intents, write):
    with_labels = write("with.csv", [["intent", "id", "sentence"], ["nonsense", 7, "a pin"]])
    without = write("without.csv", [["sentence"], ["a pin"]])
    _, first, _ = c2f("predict", intents, with_labels, "--json")
    _, second, _ = c2f("predict", intents, without, "--json")
    found, other = (json.loads(text) for text in (first, second))
    assert found.pop("input") == f"{with_labels}, row 1"
    assert other.pop("input") == f"{without}, row 1"
    assert found == other


def test_the_column_of_the_text_can_be_named(c2f, intents, write):
    file = write("new.csv", [["one", "other"], ["my card is lost", "a pin"]])
    for column, sentence in (("one", "my card is lost"), ("other", "a pin")):
        _, out, _ = c2f("predict", intents, file, "--json", "--text", column)
        assert json.loads(out)["class"] == load_classifier(intents).predict(sentence)[0]


def test_rows_at_fault_are_skipped_by_their_numbers(c2f, intents, write):
    file = write("new.jsonl", '{"sentence": "a"}\n{broken\n{"other": 1}\n{"sentence": "b"}\n')
    code, out, err = c2f("predict", intents, file, "--keep-going", "--csv")
    assert code == 0
    assert [row["input"] for row in csv.DictReader(io.StringIO(out))] == [
        f"{file}, row 1",
        f"{file}, row 4",
    ]
    assert f"skipped: {file}, row 2 cannot be read as JSON" in err
    assert f"skipped: {file}, row 3: the text is missing" in err
    assert err.endswith("2 predicted, 2 skipped\n")
    code, _, err = c2f("predict", intents, file)
    assert code == 2
    assert f"error: {file}, row 2 cannot be read as JSON" in err


def test_what_cannot_be_predicted_is_refused(c2f, comparison, photos, write, tmp_path):
    table = write("table.csv", [["a", "b"], [1, 2]])
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ([table], f"the model takes images of 3×24×24. Got the file {table}."),
        (["empty"], "empty holds no image; the model takes images of 3×24×24."),
        ([photos, "-"], "the standard input (-) cannot be mixed with files."),
        ([photos, "--csv", "--json"], "--csv and --json cannot be given together."),
        ([photos, "--seed", "4"], "has no seed 4, but 0."),
        ([photos / "notes.txt"], "notes.txt is not an image that Pillow can read"),
    ):
        code, out, err = c2f("predict", comparison, *arguments)
        assert (code, out) == (2, "")
        assert message in err
