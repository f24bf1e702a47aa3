"""`c2f predict --accuracy`."""

import csv
import io
import json
import shutil

import numpy as np
import pytest

from coarse2fine import LevelPredictor, fit, load_classifier
from coarse2fine.cli.evaluate import classes_of, part_of_data
from coarse2fine.inference.load import load_chosen

PLACES = {"cat": (0, 0), "dog": (0, 3), "car": (9, 0), "bus": (9, 3)}


def table(path, rng, count):
    rows = [
        ",".join([*(f"{x:.3f}" for x in rng.normal(place, 1)), name])
        for _ in range(count)
        for name, place in PLACES.items()
    ]
    path.write_text("\n".join(["width,height,label", *rows, ""]))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a comparison on a table, table.csv, beside which is held-out.csv."""
    folder, rng = tmp_path_factory.mktemp("answers"), np.random.default_rng(0)
    table(folder / "held-out.csv", rng, 40)
    data = table(folder / "table.csv", rng, 150)
    fit(str(data), epochs=6, curriculum_epochs=2, batch_size=16, out=folder / "run")
    return folder / "run"


def expected(run, data, accuracy, new):
    """By the pieces that the command is made of."""
    trained = load_chosen(run)[1]
    samples = classes_of(part_of_data(trained, str(data)), trained, "test")
    classifier = load_classifier(run)
    predictor = LevelPredictor(classifier.hierarchy, accuracy)
    classifier.level_predictor = predictor.fit(trained.logits(samples), samples.targets)
    return predictor, classifier.answer(new)


@pytest.mark.parametrize("is_named", [True, False])
def test_the_answers_are_those_of_a_calibrated_classifier(c2f, run, is_named):
    new = run.parent / "held-out.csv"
    data = new if is_named else run.parent / "table.csv"
    named = ("--calibrate", data) if is_named else ()
    code, out, err = c2f("predict", run, new, "--accuracy", 0.9, *named, "--json")
    assert code == 0
    predictor, answers = expected(run, data, 0.9, new)
    assert [json.loads(line)["answer"] for line in out.splitlines()] == answers
    assert err.splitlines()[1] == (
        f"at least 0.9 of the answers are right with a confidence of 0.9: "
        f"{predictor.accuracy_:.2%} of {predictor.num_samples_} samples at the threshold "
        f"{predictor.threshold_:.4g}"
    )


def test_tables_and_csv_have_a_column_of_answers(c2f, run):
    new = run.parent / "held-out.csv"
    arguments = ("predict", run, new, "--accuracy", 0.9)
    rows = list(csv.DictReader(io.StringIO(c2f(*arguments, "--csv")[1])))
    answers = expected(run, run.parent / "table.csv", 0.9, new)[1]
    assert [row["answer"] for row in rows] == answers
    header, *lines = c2f(*arguments)[1].splitlines()
    assert header.startswith("answer ")
    assert [line[: header.index("class")].strip() for line in lines] == answers


@pytest.mark.parametrize("is_named", [True, False])
def test_an_export_answers_by_itself(c2f, run, tmp_path, is_named):
    new = run.parent / "held-out.csv"
    named = ("--calibrate", new) if is_named else ()
    code, out, err = c2f("export", run, "--accuracy", 0.9, *named, "--out", tmp_path / "model")
    assert (code, out) == (0, f"{tmp_path / 'model'}\n")
    predictor, answers = expected(run, new if is_named else run.parent / "table.csv", 0.9, new)
    assert err.startswith("at least 0.9 of the answers are right with a confidence of 0.9: ")
    lines = c2f("predict", tmp_path / "model", new, "--json")[1].splitlines()
    assert [json.loads(line)["answer"] for line in lines] == answers
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"from the same source as the {predictor.num_samples_} that it" in card
    code, _, err = c2f("export", run, "--accuracy", 0.9, "--out", tmp_path / "model.safetensors")
    assert (code, err) == (2, "error: --accuracy is for a folder; let --out name a folder.\n")
    code, _, err = c2f("export", run, "--calibrate", new, "--out", tmp_path / "other")
    assert (code, "--calibrate is for --accuracy" in err) == (2, True)


def test_what_cannot_be_promised_is_refused(c2f, run):
    new = run.parent / "held-out.csv"
    for arguments, message in (
        (["--accuracy", 1.5], "accuracy must lie between 0 and 1, both excluded. Got 1.5."),
        (["--accuracy", 0.999], "accuracy=0.999 with confidence=0.9 needs at least 2877 samples"),
        (["--calibrate", new], "--calibrate is for --accuracy, which says what is to be kept."),
    ):
        code, out, err = c2f("predict", run, new, *arguments)
        assert (code, out) == (2, "")
        assert message in err


def test_samples_of_the_training_never_calibrate(c2f, run):
    file = run.parent / "table.csv"
    before = file.read_text()
    shutil.copy(run.parent / "held-out.csv", file)
    try:
        code, _, err = c2f("predict", run, run.parent / "held-out.csv", "--accuracy", 0.9)
    finally:
        file.write_text(before)
    assert code == 2
    assert "table.csv are not those that the run was trained with" in err


def test_a_run_on_python_objects_wants_data(c2f, tmp_path):
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(60, 2)).astype(np.float32), np.arange(60) % 4
    fit((inputs, targets), epochs=2, curriculum_epochs=1, out=tmp_path / "run")
    np.save(tmp_path / "new.npy", inputs)
    code, _, err = c2f("predict", tmp_path / "run", tmp_path / "new.npy", "--accuracy", 0.9)
    assert code == 2
    assert "the run's data were Python objects; name labelled data by --calibrate." in err
