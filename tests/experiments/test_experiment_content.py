"""What is stored of an experiment, and how it is read and drawn again."""

import json
import re
from dataclasses import replace
from pathlib import Path

import contents
import pytest

from coarse2fine import RunError
from coarse2fine.experiments.content import (
    file_of,
    gather_results,
    read_all,
    read_results,
    results_from_dict,
    results_to_dict,
    write_results,
)
from coarse2fine.experiments.reproduce import redraw
from coarse2fine.runs.statistics import paired

STORED = [
    path
    for path in sorted((Path(__file__).parents[2] / "docs" / "results").glob("*.json"))
    if '"coarse2fine experiment"' in path.read_text(encoding="utf-8")
]

GAINS = {"continuous": paired([21.0 - 20.0, 33.0 - 30.0]).to_dict()}
WHOLE = contents.content(
    contents.row({"baseline": [20.0, 30.0], "continuous": [21.0, 33.0]}, gains=GAINS)
)
RESULTS = results_from_dict(WHOLE)


def test_what_is_stored_is_read_again(tmp_path):
    path = tmp_path / "new" / "folder" / "mine.json"
    write_results(path, RESULTS)
    assert read_results(path) == RESULTS
    assert json.loads(path.read_text()) == WHOLE  # plain JSON


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_results_of_earlier_versions_are_read_and_written_as_they_were(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    for row in stored["settings"]:
        for run in row["runs"]:
            newer = ("own_epochs", "val_samples", "hierarchy_epochs", "hierarchy_seconds")
            for name in newer:  # than some
                run.setdefault(name, None)
            run.setdefault("with_class", {})
    assert json.loads(json.dumps(results_to_dict(read_results(path)))) == stored


def test_accuracies_and_gains_are_in_percent_and_by_seed():
    (row,) = RESULTS.rows
    assert row.accuracies("continuous") == pytest.approx({0: 21.0, 1: 33.0})
    assert row.gains("continuous") == pytest.approx([1.0, 3.0])
    assert row.gains("spl") == []


def test_the_file_is_named_by_experiment_and_scale(tmp_path):
    assert file_of("my.module:MINE", "full", tmp_path) == tmp_path / "my.module.MINE.json"
    assert file_of("methods", "small", tmp_path) == tmp_path / "methods-small.json"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "coarse2fine exp', "mine.json: not readable as JSON"),
        ("[]", "mine.json does not hold an experiment's results; choose another folder."),
        ('{"format": "coarse2fine run"}', "mine.json does not hold an experiment's results"),
        (json.dumps({**WHOLE, "version": 2}), "mine.json has version 2, here it is 1"),
        (json.dumps({**WHOLE, "figure": "../x"}), "mine.json asks for a figure '../x'"),
    ],
    ids=["cut short", "a list", "a run", "version", "figure"],
)
def test_what_is_not_an_experiments_is_refused(tmp_path, text, message):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(RunError) as error:
        read_results(path)
    assert message in str(error.value)
    assert str(error.value).count(str(path)) == 1


def test_results_that_are_not_there_are_told_with_what_to_do(tmp_path):
    with pytest.raises(RunError, match=r"there is no .*mine.json: run the experiment first"):
        read_results(tmp_path / "mine.json")


def without(name):
    return {key: value for key, value in contents.row().items() if key != name}


@pytest.mark.parametrize(
    "damage",
    [
        {"title": 3, "scale": None},
        {"seeds": None},
        {"settings": None},
        {"settings": [without("runs")]},
        {"settings": [without("label")]},
        {"settings": [{**contents.row(), "runs": [{"method": "baseline"}]}]},
        {"settings": [{**contents.row(), "variants": ["continuous"]}]},
        {"settings": [contents.row({"baseline": [1.0]}, paper={"baseline": [1]})]},
    ],
    ids=["scale", "seeds", "settings", "runs", "label", "run", "variants", "paper"],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, damage):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**WHOLE, **damage}))
    with pytest.raises(RunError, match=r"mine.json is damaged \(.*\); run the experiment again."):
        redraw("mine", "full", tmp_path)


def test_drawn_again_the_table_is_the_same_and_may_lie_elsewhere(tmp_path):
    write_results(tmp_path / "mine.json", RESULTS)
    assert redraw("mine", "full", tmp_path, tmp_path / "there") == RESULTS
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine.json", "mine.md", "there"]
    redraw("mine", "full", tmp_path)
    drawn = (tmp_path / "mine.md").read_text()
    assert drawn == (tmp_path / "there" / "mine.md").read_text()
    assert drawn.startswith("Mine; scale full: made up.\n\n| setting |")
    assert drawn.endswith("\nnote: CNN, CIFAR-100, 10,000: 2 of 6 runs are missing.\n")


def test_a_figure_is_drawn_again_to_the_byte(tmp_path):
    pytest.importorskip("matplotlib")
    write_results(tmp_path / "mine.json", replace(RESULTS, figure="gains"))
    redraw("mine", "full", tmp_path)
    first = (tmp_path / "mine.svg").read_bytes()
    redraw("mine", "full", tmp_path)
    assert (tmp_path / "mine.svg").read_bytes() == first
    assert (tmp_path / "mine.png").stat().st_size > 0


def stored(folder, name, *rows, seeds=(0, 1, 2)):
    results = results_from_dict({**contents.content(*rows), "seeds": list(seeds)})
    write_results(folder / name, replace(results, command=name))


def test_what_was_run_row_by_row_is_drawn_as_one(tmp_path):
    first = contents.row({"baseline": [1.0]}, key="a")
    fewer, more = (
        contents.row({"baseline": [2.0] * n, "continuous": [3.0]}, key="b") for n in (1, 2)
    )
    stored(tmp_path, "mine-only-a.json", first, fewer)
    stored(tmp_path, "mine-only-b.json", more, seeds=[3, 4])
    stored(tmp_path, "mine-small.json", contents.row({"baseline": [9.0]}, key="c"))
    stored(tmp_path, "mine-3-epochs-only-a.json", contents.row({"baseline": [9.0]}, key="d"))
    found = redraw("mine", "full", tmp_path)
    assert [(row.key, len(row.runs)) for row in found.rows] == [("a", 1), ("b", 3)]
    assert found.seeds == (0, 1, 2, 3, 4)
    assert found.command == "mine-only-a.json; mine-only-b.json"
    # Of each row those are missing that its own command asked for.
    drawn = (tmp_path / "mine.md").read_text()
    assert re.findall(r"(\d) of (\d) runs are missing", drawn) == [("5", "6"), ("1", "4")]


BOTH = (contents.variant("continuous"),)


def seeds_of(first, *accuracies, **changes):
    """A row whose seeds begin with another than 0."""
    row = contents.row({"baseline": accuracies, "continuous": accuracies}, variants=BOTH, **changes)
    return {**row, "runs": [{**run, "seed": run["seed"] + first} for run in row["runs"]]}


def test_seeds_that_were_run_apart_are_put_together(tmp_path):
    stored(tmp_path, "mine.json", seeds_of(0, 1.0, 2.0, cut=1), seeds=[0, 1])
    stored(tmp_path, "mine-seeds-2.json", seeds_of(2, 3.0, cut=2), seeds=[2])
    for found in (redraw("mine", "full", tmp_path), *read_all(tmp_path)):
        (row,) = found.rows
        assert [(run.method, run.seed, round(100 * run.accuracy)) for run in row.runs] == [
            (name, seed, seed + 1) for seed in range(3) for name in ("baseline", "continuous")
        ]
        assert (found.seeds, row.seeds, row.cut) == ((0, 1, 2), (0, 1, 2), 3)
        assert found.command == "mine.json; mine-seeds-2.json"
    assert "missing" not in (tmp_path / "mine.md").read_text()


def test_what_figures_show_of_each_run_is_put_together_too(tmp_path):
    for seed in (0, 1):
        curve = {"method": "baseline", "seed": seed, "val_accuracy": [0.5], "level": []}
        row = seeds_of(seed, 1.0, curves=[curve])
        results = results_from_dict({**contents.content(row, figure="curves"), "seeds": [seed]})
        write_results(file_of("mine", "full", tmp_path, seeds=[seed]), results)
    (row,) = gather_results("mine", "full", tmp_path).rows
    assert [curve.seed for curve in row.values] == [0, 1]


@pytest.mark.parametrize(
    "other",
    [
        seeds_of(1, 5.0),
        seeds_of(2, 5.0, config={"batch_size": 64}),
        {**seeds_of(2, 5.0), "variants": [contents.variant("continuous", metric="random")]},
        {**seeds_of(2, 5.0), "chosen_among": ["continuous"]},
    ],
    ids=["shares a seed", "other settings", "other methods", "other choice"],
)
def test_seeds_that_cannot_be_compared_are_not_put_together(tmp_path, other):
    stored(tmp_path, "mine.json", seeds_of(0, 1.0, 2.0), seeds=[0, 1])
    stored(tmp_path, "mine-seeds-9.json", other, seeds=[9])
    found = gather_results("mine", "full", tmp_path)
    assert [run.seed for run in found.rows[0].of("baseline")] == [0, 1]
    assert found.seeds == (0, 1)


def test_a_part_that_was_asked_for_is_drawn_alone(tmp_path):
    stored(tmp_path, "mine-only-a.json", contents.row({"baseline": [1.0]}, key="a"))
    stored(tmp_path, "mine-only-b.json", contents.row({"baseline": [1.0]}, key="b"))
    assert [row.key for row in redraw("mine", "full", tmp_path, only=["a"]).rows] == ["a"]
