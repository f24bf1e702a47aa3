"""`c2f figure`."""

import json
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from made_runs import older

from coarse2fine import Hierarchy
from coarse2fine.cli.figure import KINDS

from .calls import SHORT

NAMES = ["cat", "dog", "$car$", "van"]
METHODS = ("--method", "staged", "--method", "continuous")


def comments(path):
    """The texts of an SVG, which stand beside their outlines."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(path, parser).getroot()
    return [node.text.strip() for node in root.iter(ElementTree.Comment)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_of_a_comparison(c2f, comparison, tmp_path, kind):
    code, out, err = c2f("figure", kind, comparison)
    assert (code, out) == (0, "")
    assert err.splitlines()[-1] == f"saved as {kind}.svg"
    assert any(text.startswith("run") for text in comments(tmp_path / f"{kind}.svg"))
    assert c2f("figure", kind, comparison, "--out", "again.svg")[0] == 0
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / f"{kind}.svg").read_bytes()


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".PDF", b"%PDF")])
def test_the_suffix_says_the_format(c2f, comparison, tmp_path, suffix, start):
    assert c2f("figure", "gains", comparison, "--out", f"a{suffix}")[0] == 0
    assert (tmp_path / f"a{suffix}").read_bytes().startswith(start)


def test_the_width_and_the_pixels_are_those_asked_for(c2f, comparison):
    from PIL import Image

    options = ("--width", 3.5, "--dpi", 200, "--out", "a.png")
    assert c2f("figure", "curves", comparison, *options)[0] == 0
    with Image.open("a.png") as image:
        assert image.width == 700


def test_curves_of_ordinary_runs_are_called_those_of_the_validation_samples(c2f, comparison):
    c2f("figure", "curves", comparison)
    assert "validation accuracy, %" in comments("curves.svg")


def test_there_is_a_panel_for_each_comparison(c2f, comparison, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(comparison, other)
    c2f("figure", "gains", comparison, other)
    assert {"run", "other"} < set(comments("gains.svg"))


def test_panels_of_the_same_name_are_told_apart_by_their_paths(c2f, comparison, tmp_path):
    shutil.copytree(comparison, tmp_path / "b" / "run")
    shutil.copytree(comparison, tmp_path / "c" / "run")
    c2f("figure", "gains", "b/run", "c/run")
    assert {"b/run", "c/run"} < set(comments("gains.svg"))


def test_runs_of_one_comparison_share_a_panel(c2f, comparison, tmp_path):
    both = [comparison / "seed-0" / name for name in ("baseline", "continuous")]
    assert c2f("figure", "gains", *both)[0] == 0
    c2f("figure", "gains", comparison, "--out", "whole.svg")
    assert (tmp_path / "gains.svg").read_bytes() == (tmp_path / "whole.svg").read_bytes()


def test_titles_are_given_or_left_out(c2f, comparison):
    c2f("figure", "gains", comparison, "--title", "My $data$", "--out", "a.svg")
    assert "My $data$" in comments("a.svg")
    assert "run" not in comments("a.svg")
    c2f("figure", "confusion", comparison, "--no-title")
    assert {"baseline", "continuous"} < set(comments("confusion.svg"))
    code, _, err = c2f("figure", "gains", comparison, "--title", "a", "--title", "b")
    assert (code, err) == (2, "error: there is 1 panel to name. Got 2 titles.\n")


def test_one_method_or_seed_is_chosen(c2f, tmp_path):
    assert c2f("train", *SHORT, "--seeds", 2, *METHODS, "--out", "two")[0] == 0
    c2f("figure", "levels", "two", "--method", "staged")
    assert "staged" in comments("levels.svg")
    assert "continuous" not in comments("levels.svg")
    c2f("figure", "hierarchy", "two", "--seed", 1)
    assert "two: continuous, seed 1" in comments("hierarchy.svg")
    code, _, err = c2f("figure", "gains", "two", "--method", "nbdt")
    assert (code, err) == (2, "error: two has no method nbdt, but baseline, staged, continuous.\n")
    code, _, err = c2f("figure", "gains", "two", "--seed", 7)
    assert (code, err) == (2, "error: two has no finished run of seed 7.\n")
    (tmp_path / "two" / "seed-1" / "staged" / "result.json").unlink()
    code, _, err = c2f("figure", "gains", "two")
    assert code == 0
    assert err.startswith("note: two/seed-1/staged is not finished, so it is left out.\n")


def test_a_hierarchy_is_drawn_from_all_that_holds_one(c2f, comparison, tmp_path):
    Hierarchy.from_levels([[0, 0, 1, 1]], NAMES).save(tmp_path / "mine.json")
    assert c2f("figure", "hierarchy", "mine.json", comparison)[0] == 0
    shown = comments("hierarchy.svg")
    assert {"mine", "cat, dog", "$car$, van", "run: continuous, seed 0"} < set(shown)
    assert c2f("figure", "hierarchy", "mine.json", "--no-title", "--out", "plain.svg")[0] == 0
    assert "mine" not in comments("plain.svg")


@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        ("gains", "a baseline and another method of the same seed"),
        ("hierarchy", "a method with a hierarchy"),
    ],
)
def test_what_a_figure_lacks_is_said(c2f, comparison, kind, needs):
    plain = comparison / "seed-0" / "baseline"
    code, _, err = c2f("figure", kind, plain)
    assert (code, err) == (2, f"error: {plain}: {kind} needs {needs}.\n")


def test_a_hierarchy_too_long_for_a_figure_is_refused_at_once(c2f, tmp_path):
    Hierarchy.from_levels([np.arange(5001) // 100]).save(tmp_path / "long.json")
    code, _, err = c2f("figure", "hierarchy", "long.json")
    assert code == 2
    assert "a hierarchy of 5001 classes is too long for a figure" in err
    assert not (tmp_path / "hierarchy.svg").exists()


@pytest.mark.parametrize("line", ["{", "[]", '{"epoch": 1}', '{"level": 0, "accuracy": "x"}'])
def test_a_damaged_run_is_named(c2f, comparison, tmp_path, line):
    shutil.copytree(comparison, tmp_path / "bad")
    run = older(tmp_path / "bad" / "seed-0" / "continuous")
    (run / "metrics.jsonl").write_text(f"{line}\n")
    code, _, err = c2f("figure", "curves", "bad")
    assert code == 2
    assert "seed-0/continuous/metrics.jsonl is damaged: " in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.glob("curves*")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["colours", "RUN"], "a figure is one of curves, gains, levels, classes, confusion"),
        (["gains", "RUN", "--out", "a.jpg"], "a.jpg: a figure is written as .svg, .png, .pdf."),
        (["gains", "RUN", "--out", "no/a.svg"], "no/a.svg: there is no folder no; make it first."),
        (["gains", "nowhere"], "there is no run nowhere"),
        (
            ["gains", "RUN", "--width", "1"],
            "--width must lie between 2.5 and 100 inches. Got 1.0.",
        ),
        (["gains", "RUN", "--width", "nan"], "between 2.5 and 100 inches. Got nan."),
        (
            ["gains", "RUN", "--dpi", "5"],
            "--dpi must lie between 50 and 1200 pixels an inch. Got 5.",
        ),
        (["curves", "mine.json"], "there is no run mine.json"),
        (["gains"], "Missing argument 'RUN...'"),
    ],
)
def test_mistakes_get_a_sentence(c2f, comparison, tmp_path, arguments, message):
    (tmp_path / "mine.json").write_text(json.dumps({}))
    given = [comparison if word == "RUN" else word for word in arguments]
    code, out, err = c2f("figure", *given)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_where_a_model_or_its_data_are_is_for_answers_alone(c2f, comparison, tmp_path):
    for option in (("--data", tmp_path), ("--model", "mine:net")):
        code, _, err = c2f("figure", "gains", comparison, *option)
        assert code == 2
        assert "--data and --model are for answers, which runs the models again." in err


def test_answers_of_data_that_are_gone_are_refused(c2f, comparison, tmp_path):
    shutil.copytree(comparison, tmp_path / "bad")
    for name in ("baseline", "continuous"):
        config = older(tmp_path / "bad" / "seed-0" / name) / "config.json"
        settings = config.read_text().replace('"shapes:300"', '"cifar10"')
        config.write_text(settings.replace('"image_size": 24', '"image_size": null'))
    code, _, err = c2f("figure", "answers", "bad", "--data", "nowhere")
    assert (code, err.splitlines()[-1]) == (
        2,
        "error: there is no folder nowhere, in which cifar10 should lie.",
    )
    assert not (tmp_path / "answers.svg").exists()
