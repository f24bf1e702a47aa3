"""`c2f report`."""

import shutil
from pathlib import Path

import pytest

QUICK = ("--examples", "0", "--no-answers")


def test_the_page_lies_beside_the_runs_and_the_sentence_is_told(c2f, comparison, tmp_path):
    shutil.copytree(comparison, tmp_path / "run")
    code, out, err = c2f("report", "run", *QUICK)
    assert (code, err) == (0, "saved as run/report.html\n")
    choice, sentence = out.splitlines()
    assert choice.startswith("use ")
    assert sentence.startswith("Whether continuous helped cannot be told from one seed")
    page = (tmp_path / "run" / "report.html").read_text().replace("&#39;", "'")
    assert page.index(choice) < page.index(sentence)


def test_several_are_written_here(c2f, comparison, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(comparison, tmp_path / name)
    assert c2f("report", "one", "two", *QUICK)[2] == "saved as report.html\n"
    page = (tmp_path / "report.html").read_text()
    assert "<bdi>one: continuous</bdi>" in page
    assert "<bdi>two: baseline</bdi>" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no run nowhere; give the folder of a run or of a comparison."),
        (["."], "holds no run: there is neither a config.json of a run nor a seed-0."),
        (["RUN", "--method", "other"], "there is no method other, but baseline, continuous."),
        (["RUN", "--seed", "7"], "continuous has no seed 7, but 0."),
        (["RUN", "--out", "no/page.html"], "there is no folder no; make it first."),
        (["RUN", "--out", "."], ". is a folder; give the name of a file, such as report.html in"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(c2f, comparison, arguments, message):
    given = [comparison if argument == "RUN" else argument for argument in arguments]
    code, out, err = c2f("report", *given, *QUICK)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err


def test_the_browser_is_opened_if_asked_for(c2f, comparison, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)))
    err = c2f("report", comparison, "--out", "a b.html", *QUICK, "--open")[2]
    assert opened == [(tmp_path / "a b.html").as_uri()]
    assert err.endswith("no browser could be opened; open a b.html in one yourself\n")


def test_the_data_are_read_again_unless_neither_images_nor_answers_are_asked_for(c2f, comparison):
    err = c2f("report", comparison, "--out", "a.html", "--examples", "0")[2]
    assert err == "reading the runs and their data …\nsaved as a.html\n"
    c2f("report", comparison, "--out", "b.html", *QUICK)
    with_answers, without = (Path(name).read_text() for name in ("a.html", "b.html"))
    assert 'id="answers-plot"' in with_answers
    assert "How fine can it answer?" not in without
