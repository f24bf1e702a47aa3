"""Commands on data whose labels are classes and clusters."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coarse2fine import Result, RunResult
from coarse2fine.report.content import report_content

KINDS = {"cat": "animal", "dog": "animal", "fox": "animal", "car": "thing", "bus": "thing"}
TREE = {"animal": ["cat", "dog", "fox"], "thing": ["car", "bus"]}
QUICK = "--model mlp --epochs 2 --patience 0 --batch-size 32 --curriculum-epochs 1 --out run"


def rows(count=300):
    """Two numbers, the group, the class of every third row, and the finest label there is."""
    rng = np.random.default_rng(0)
    lines = [["x", "y", "group", "kind", "label"]]
    for row in range(count):
        kind = list(KINDS)[row % 5]
        x, y = rng.normal(row % 5, 1, 2).round(3)
        known = "" if row % 3 else kind
        lines.append([x, y, KINDS[kind], known, known or KINDS[kind]])
    return lines


@pytest.fixture
def zoo(write):
    (write("tree.json", json.dumps(TREE)), write("rows.csv", rows()))


def test_data_says_how_many_samples_have_a_class(c2f, zoo):  # noqa: ARG001
    columns = ("data", "rows.csv", "--target", "group", "--target", "kind")
    code, out, err = c2f(*columns)
    assert (code, err) == (0, "")
    table, *said = out.splitlines()[1:]
    assert table.split() == ["rows.csv", "table", "5", "192", "48", "60", "9"]
    assert len(said) == 1
    assert said[0].startswith("rows.csv: 64 of 192 training, 16 of 48 validation and 20 of 60 test")
    assert json.loads(c2f(*columns, "--json")[1])["with_class"] == [64, 16, 20]
    by_tree = c2f("data", "rows.csv", "--target", "label", "--hierarchy", "tree.json", "--json")
    assert json.loads(by_tree[1])["with_class"] == [64, 16, 20]
    assert "with_class" not in json.loads(c2f("data", "rows.csv", "--target", "group", "--json")[1])


FORMS = {
    "columns": "--target group --target kind --no-baseline",
    "tree": "--target label --hierarchy tree.json",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_training_tells_what_its_accuracies_count_and_can_be_used_like_any_other(c2f, zoo, form):  # noqa: ARG001
    code, out, _ = c2f("train", "rows.csv", *QUICK.split(), *FORMS[form].split())
    assert code == 0
    note = (
        "note: seed 0: 64 of 192 training, 16 of 48 validation and 20 of 60 test samples have a "
        "class, the others a coarser label; accuracies count those with a class."
    )
    assert note in out
    assert ["samples", "60", "20"] in [line.split() for line in out.splitlines()]
    run = Result.load(Path("run")).of("continuous")[0]
    assert run.hierarchy().num_clusters == (2, 5)
    code, out, err = c2f("evaluate", "run", "rows.csv", "--method", "continuous", "--json")
    assert code == 0
    assert "20 of 60 test samples have a class; the others are counted at coarser levels" in err
    found = json.loads(out)
    hits, counts = run.level_hits(run.hierarchy())
    assert [level["samples"] for level in found["levels"]] == counts.tolist() == [60, 20]
    expected = pytest.approx((hits / counts).tolist())
    assert [level["accuracy"] for level in found["levels"]] == expected
    out = c2f("evaluate", "run", "rows.csv", "--method", "continuous")[1]
    assert "accuracy at 2 clusters, 60 samples  " in out
    if form == "tree":  # with a baseline, which has no levels
        err = c2f("evaluate", "run", "rows.csv", "--method", "baseline")[2]
        assert "20 of 60 test samples have a class; the others are left out" in err
    assert found["samples"] == 20
    assert found["accuracy"] == pytest.approx(run.accuracy)
    remarks = report_content([Path("run")]).remarks
    assert f"{note[6].upper()}{note[7:]}" in remarks
    assert report_content([Path("run")]).level_accuracy.samples == [60, 20]
    assert c2f("report", "run", "--out", "report.html")[0] == 0
    page = Path("report.html").read_text()
    assert '<th scope="row">samples that count</th><td>60</td><td>20</td>' in page
    assert c2f("predict", "run", "rows.csv")[0] == 0


def test_other_data_are_matched_by_the_names_of_their_classes(c2f, zoo, write):  # noqa: ARG001
    c2f("train", "rows.csv", *QUICK.split(), *FORMS["tree"].split())
    lines = [line for line in rows(60) if line[4] in ("label", "cat", "animal", "bus")]
    write("other.csv", lines)
    code, out, _ = c2f("evaluate", "run", "other.csv", "--json")
    assert (code, json.loads(out)["samples"]) == (0, 8)
    write("coarse.csv", [lines[0], *(line for line in lines if line[4] == "animal")])
    code, _, err = c2f("evaluate", "run", "coarse.csv")
    assert (code, err.splitlines()[-1][:6]) == (2, "error:")
    assert "test samples has a class" in err


def test_a_dry_run_names_the_folder_that_the_training_takes(c2f, zoo):  # noqa: ARG001
    columns = ("--target", "group", "--target", "kind", "--model", "mlp", "--epochs", "2")
    code, out, _ = c2f("train", "rows.csv", *columns, "--dry-run", "--json")
    shown = json.loads(out)
    assert (code, shown["config"]["target"]) == (0, ["group", "kind"])
    code, _, err = c2f("train", "rows.csv", *columns, "--method", "dp-l", "--dry-run")
    assert code == 2
    assert err.startswith(
        "error: the method dp-l needs the class of every training sample, and 200"
    )


def test_nested_folders_are_trained_on_and_shown_in_a_report(c2f, tmp_path):
    rng = np.random.default_rng(0)
    for row in range(120):
        kind = list(KINDS)[row % 5]
        folder = tmp_path / "photos" / KINDS[kind] / ("" if row % 2 else kind)
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 80 + 40 * (row % 5), (20, 20, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{row}.png")
    quick = QUICK.replace("--model mlp", "--model cnn").split()
    code, out, err = c2f("train", "photos/", *quick, "--target", "folders")
    assert code == 0, err
    assert "of 24 test samples have a class" in out
    runs = [
        RunResult.load(tmp_path / "run" / "seed-0" / name) for name in ("baseline", "continuous")
    ]
    assert runs[1].num_clusters == (2, 5)
    content = report_content([Path("run")])
    assert content.examples is not None
    code, out, _ = c2f("evaluate", "run", "photos/", "--method", "continuous", "--json")
    assert json.loads(out)["accuracy"] == pytest.approx(runs[1].accuracy)
    code, _, err = c2f("train", "photos/", *quick, "--target", "a", "--target", "b")
    assert (code, "is a folder of images, which has no columns of labels" in err) == (2, True)
