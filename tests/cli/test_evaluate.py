"""`c2f evaluate`."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import recall_score

from coarse2fine import Result, RunResult, level_accuracies, mistake_severity, top_k_accuracy
from coarse2fine.cli.evaluate import with_classes
from coarse2fine.data import Source, Split
from coarse2fine.data import load as data_load
from coarse2fine.runs.best import described
from coarse2fine.runs.restore import load_trained

CLASSES = ("gray circle", "cyan polygon[3]", "magenta ellipse")


@pytest.fixture
def photos(tmp_path, rng):
    """A folder of images of three of the run's classes, and the pixels by class."""
    folder = tmp_path / "photos"
    images = {name: rng.integers(0, 256, (4, 24, 24, 3), dtype=np.uint8) for name in CLASSES}
    for name, pixels in images.items():
        (folder / name).mkdir(parents=True)
        for number, image in enumerate(pixels):
            Image.fromarray(image).save(folder / name / f"{number}.png")
    return folder, images


def evaluated(c2f, *arguments):
    code, out, err = c2f("evaluate", *arguments, "--json")
    assert code == 0
    found = json.loads(out)
    assert err == f"using {described(RunResult.load(Path(found['run'])))}\n"
    return found


def test_it_finds_what_the_training_found_on_its_test_samples(c2f, comparison):
    run = RunResult.load(comparison / "seed-0" / "continuous")
    predictions, targets = run.predictions()
    found = evaluated(c2f, comparison, "shapes:300", "--method", "continuous")
    assert found["run"] == str(run.path)
    assert found["samples"] == len(targets)
    assert found["accuracy"] == pytest.approx(run.accuracy)
    levels = level_accuracies(predictions, targets, run.hierarchy())
    assert [level["accuracy"] for level in found["levels"]] == pytest.approx(levels.tolist())
    assert [level["clusters"] for level in found["levels"]] == list(run.num_clusters)
    severity = mistake_severity(predictions, targets, run.hierarchy())
    assert found["mistake_severity"] == pytest.approx(severity)


def test_of_a_comparison_it_takes_the_run_that_validates_best(c2f, comparison):
    best = Result.load(comparison).best
    found = evaluated(c2f, comparison, "shapes:300")
    assert (found["run"], found["method"], found["seed"]) == (str(best.path), best.method, 0)
    assert found["accuracy"] == pytest.approx(best.accuracy)


def test_it_divides_the_data_as_the_training_did(c2f, comparison):
    run = RunResult.load(comparison / "seed-0" / "baseline")
    found = evaluated(c2f, comparison, "shapes:300", "--method", "baseline", "--split", "val")
    assert found["accuracy"] == pytest.approx(run.val_accuracy)
    assert found["samples"] == 48
    assert "levels" not in found  # a baseline has no hierarchy
    found = evaluated(c2f, comparison, "shapes:300", "--split", "train")
    assert found["samples"] == 192


def test_of_other_data_it_takes_all_and_matches_classes_by_name(c2f, comparison, photos):
    trained = load_trained(comparison / "seed-0" / "continuous")
    logits, targets = [], []
    folder, images = photos
    for name, pixels in images.items():
        inputs = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
        logits.append(trained.model(inputs).detach())
        targets += [trained.class_names.index(name)] * len(pixels)
    found = evaluated(c2f, comparison, folder, "--method", "continuous")
    assert found["samples"] == 12
    assert found["accuracy"] == pytest.approx(top_k_accuracy(torch.cat(logits), targets))
    assert found["top_5_accuracy"] == pytest.approx(top_k_accuracy(torch.cat(logits), targets, 5))
    predictions, own = torch.cat(logits).argmax(1), sorted(set(targets))
    wanted = recall_score(targets, predictions, labels=own, average="macro", zero_division=0)
    assert found["balanced_accuracy"] == pytest.approx(wanted)


def test_images_are_brought_to_the_size_of_the_training(c2f, comparison, photos):
    folder, _ = photos
    Image.new("RGB", (70, 50)).save(folder / CLASSES[0] / "large.png")
    assert evaluated(c2f, comparison, folder)["samples"] == 13


def test_people_get_a_table(c2f, comparison):
    arguments = ("shapes:300", "--batch-size", "7", "--method", "continuous")
    _, out, _ = c2f("evaluate", comparison, *arguments)
    first, *rows = out.splitlines()
    assert first == f"{comparison}/seed-0/continuous on shapes:300, test: 60 samples"
    assert [row.rpartition("  ")[0].strip() for row in rows] == [
        "accuracy",
        "balanced accuracy",
        "top-5 accuracy",
        "accuracy at 2 clusters",
        "mistake severity",
    ]


def test_what_cannot_be_evaluated_is_refused(c2f, comparison, write, photos):
    folder, _ = photos
    write("table.csv", [["a", "b", "label"], *([n, n % 3, CLASSES[n % 2]] for n in range(9))])
    (folder / CLASSES[0]).rename(folder / "beige circle")
    for arguments, message in (
        (["shapes:300", "--split", "tset"], "split must be one of test, val, train. Got 'tset'."),
        (["shapes:300", "--seed", "4"], "has no seed 4, but 0."),
        (["table.csv"], "the run was trained on data of kind 'image'. Got 'table'."),
        ([folder], "beige circle"),
        (["shapes:400", "--split", "val"], "the data has no val samples."),
    ):
        code, out, err = c2f("evaluate", comparison, *arguments)
        assert (code, out) == (2, "")
        assert message in err


def test_samples_of_another_shape_are_refused(c2f, comparison, monkeypatch):
    names = load_trained(comparison / "seed-0" / "baseline").class_names
    split = Split(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.arange(4), names)
    monkeypatch.setattr(data_load, "load_data", lambda *_, **__: Source("image", split))
    _, _, err = c2f("evaluate", comparison, "x")
    message = "error: the run was trained on samples of 3×24×24, and these are of 3×8×8.\n"
    assert err.endswith(f"\n{message}")


def test_targets_follow_their_names():
    split = Split(torch.zeros(3, 1), torch.tensor([0, 1, 1]), ("dog", "cat", "unused"))
    assert with_classes(split, ("ant", "cat", "dog")).targets.tolist() == [2, 1, 1]
    with pytest.raises(ValueError, match="the data has the class 'dog', which is not one of"):
        with_classes(split, ("ant", "cat"))
