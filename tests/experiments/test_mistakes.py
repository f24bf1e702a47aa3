"""How bad mistakes are: measured from runs, told in the table, drawn."""

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contents import content, draw_figure, legend, row, stored_values, variant
from PIL import Image

from coarse2fine import RunError, fit
from coarse2fine.experiments import find_experiment
from coarse2fine.experiments.content import results_from_dict
from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.tables import table
from coarse2fine.experiments.tasks import expand
from coarse2fine.figures.mistakes import HEADINGS
from coarse2fine.metrics import mistake_heights

FINE = [f"class {number}" for number in range(6)]
COARSE = ["left", "right"]
SETTINGS = {
    "data": "cifar100",
    "model": "cnn",
    "epochs": 2,
    "patience": 0,
    "batch_size": 32,
    "curriculum_epochs": 1,
}
VARIANTS = (Variant("hxe"), Variant("hxe-own", "hxe", {"hierarchy": "own"}, "HXE, own groups"))
SMALL = Experiment(
    "Small",
    {"full": Scale("a few images", (Setting("small", SETTINGS, VARIANTS),))},
    figure="mistakes",
    num_seeds=2,
)


def write_part(folder, part, count, seed):
    """Grey images, the lighter the higher the class; the classes from 3 on are "right"."""
    rng = np.random.default_rng(seed)
    fine = [number % 6 for number in range(count)]
    images = []
    for label in fine:
        file = io.BytesIO()
        pixels = rng.integers(40 * label, 40 * label + 56, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file, "PNG")
        images.append({"bytes": file.getvalue(), "path": None})
    coarse = [label // 3 for label in fine]
    found = pa.table({"img": images, "fine_label": fine, "coarse_label": coarse})
    names = {"fine_label": FINE, "coarse_label": COARSE}
    features = {name: {"names": own, "_type": "ClassLabel"} for name, own in names.items()}
    kept = found.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    pq.write_table(kept, folder / f"{part}-00000-of-00001.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CIFAR-100 of six classes."""
    folder = tmp_path_factory.mktemp("data")
    write_part(folder, "train", 120, 0)
    write_part(folder, "test", 60, 1)
    return folder


@pytest.fixture(scope="module")
def runs(folder, tmp_path_factory):
    """Of two seeds a baseline, HXE by its hierarchy, and HXE by the data's."""
    out = tmp_path_factory.mktemp("runs")
    found = []
    for place, hierarchy in (("made", None), ("own", "own")):
        result = fit(
            SETTINGS["data"], folder=folder, out=out / place, methods=("hxe",), seeds=(0, 1),
            hierarchy=hierarchy, baseline=hierarchy is None, accelerator="cpu", devices=1,
            **{name: value for name, value in SETTINGS.items() if name != "data"},
        )  # fmt: skip
        found += result.runs
    return [replace(run, method="hxe-own") if "own" in run.path.parts else run for run in found]


def test_each_run_is_measured_by_the_groups_and_by_its_seeds_hierarchy(runs, folder, monkeypatch):
    monkeypatch.setenv("COARSE2FINE_DATA", str(folder))
    found = stored_values("mistakes", runs)["mistakes"]
    assert [it["seed"] for it in found] == [run.seed for run in runs]
    for it, run in zip(found, runs, strict=True):
        assert it["accuracy"] == pytest.approx(100 * run.accuracy)
        predictions, targets = run.predictions()
        # Of two levels: 1 within a group, 2 beyond it.
        heights = (predictions != targets) * (1 + (predictions // 3 != targets // 3))
        assert it["people"]["mean_height"] == pytest.approx(heights.mean())
        assert it["people"]["severity"] == pytest.approx(heights[heights > 0].mean())
        # Of a target's two nodes none, one or both are found, and as many are claimed.
        assert it["people"]["f1"] == pytest.approx(100 * (2 - heights).mean() / 2)
        made = next(each for each in runs if each.seed == run.seed and each.method == "hxe")
        heights = mistake_heights(predictions, targets, made.hierarchy())
        assert it["made"]["mean_height"] == pytest.approx(heights.mean())
        assert len(it["made"]["calibration"]) == len(made.num_clusters)


def test_calibration_is_that_of_the_models_probabilities(runs, folder, monkeypatch):
    monkeypatch.setenv("COARSE2FINE_DATA", str(folder))
    found = stored_values("mistakes", runs[:1])["mistakes"][0]["people"]["calibration"]
    from coarse2fine.data import load_data
    from coarse2fine.runs.restore import load_trained

    test = load_data("cifar100", folder=folder).test
    chances = load_trained(runs[0].path).logits(test).double().softmax(1).numpy()
    groups = np.stack([chances[:, :3].sum(1), chances[:, 3:].sum(1)], axis=1)
    wanted = [by_hand(groups, test.targets.numpy() // 3), by_hand(chances, test.targets.numpy())]
    assert found == pytest.approx([100 * each for each in wanted])


def by_hand(chances, targets, bins=15):
    """The mean gap of confidence and accuracy over fifteen bins, by their sizes."""
    confidences, hits = chances.max(1), chances.argmax(1) == targets
    error = 0.0
    for low in np.arange(bins) / bins:
        inside = (confidences >= low) & (confidences < low + 1 / bins)
        if inside.any():
            error += inside.mean() * abs(confidences[inside].mean() - hits[inside].mean())
    return error


def test_other_data_than_in_training_is_refused(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("COARSE2FINE_DATA", str(tmp_path))
    write_part(tmp_path, "train", 120, 7)
    write_part(tmp_path, "test", 60, 8)
    with pytest.raises(RunError, match="was trained with other data than cifar100 holds now"):
        stored_values("mistakes", runs)


def measured(method, seed, accuracy, height, severity=1.5):
    measures = {"mean_height": height, "severity": severity, "f1": 50.0, "calibration": [4.0, 9.0]}
    return {"method": method, "seed": seed, "accuracy": accuracy, "people": measures, "made": None}


FOUND = [
    measured("baseline", 0, 20, 1.0),
    measured("baseline", 1, 30, 1.2),
    measured("hxe", 0, 24, 0.8, severity=None),
]
ROW = row({"baseline": [20, 30], "hxe": [24]}, variants=[variant("hxe", "HXE")], mistakes=FOUND)


def test_the_table_has_means_over_seeds():
    results = results_from_dict(content(ROW, figure="mistakes"))
    heading, baseline, hxe, *_ = table(results, lambda rows: "\n".join(map("|".join, rows))).split(
        "\n"
    )
    assert heading.endswith("|".join(HEADINGS))
    assert baseline.endswith("|1.10 ± 0.10|1.50 ± 0.00|50.00 ± 0.00|9.00 ± 0.00|4.00 ± 0.00")
    assert hxe.endswith("|0.80|nan|50.00|9.00|4.00")


def test_a_method_without_runs_has_empty_cells():
    without = {**ROW, "variants": [variant("hxe", "HXE"), variant("hace", "HACE")]}
    results = results_from_dict(content(without, figure="mistakes"))
    assert "|".join([""] * 6) in table(results, lambda rows: "\n".join(map("|".join, rows)))


def test_mistakes_are_drawn_against_accuracy_over_all_samples_and_over_mistakes():
    figure = draw_figure("mistakes", content(ROW))
    every, wrong = figure.axes
    assert every.get_ylabel() == "mean height over all samples"
    assert wrong.get_ylabel() == "mean height over mistakes"
    points = {bar.get_label(): bar.lines[0].get_data() for bar in every.containers}
    assert points == {"baseline": ([25], [pytest.approx(1.1)]), "HXE": ([24], [0.8])}
    assert legend(figure) == ["baseline", "HXE"]


def test_the_experiment_measures_what_it_trains(folder, here, monkeypatch):
    monkeypatch.setattr("coarse2fine.experiments.reproduce.find_experiment", lambda _: SMALL)
    wanted = Reproduction("small", folder=folder, out=here, seeds=(0,))
    assert wanted.run() == {}
    stored = json.loads(wanted.path.read_text())["settings"][0]["mistakes"]
    assert [it["method"] for it in stored] == ["baseline", "hxe", "hxe-own"]
    assert all(it["made"] for it in stored)
    assert HEADINGS[0] in wanted.table()
    assert wanted.path.with_suffix(".svg").is_file()


def test_every_method_is_trained_by_both_hierarchies(tmp_path):
    experiment = find_experiment("mistakes")
    tasks = expand(experiment.scale("full").settings, (0,), tmp_path)
    configs = {task.name: task.setting.config(task.variant, (0,)) for task in tasks if task.variant}
    made = {name for name, config in configs.items() if config.hierarchy is None}
    assert made == {
        "continuous", "adaptive", "staged", "multitask", "hxe", "soft-labels", "hace"
    }  # fmt: skip
    for name in made:
        both = configs[name], configs[f"{name}-own"]
        assert replace(both[1], hierarchy=None) == both[0]
        assert both[1].hierarchy == "own"
    assert experiment.num_seeds == 3
