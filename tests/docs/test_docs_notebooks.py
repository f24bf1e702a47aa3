"""The notebooks run from top to bottom, and are stored with what they show and nothing else."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from pages import DOCS, LINK, ROOT, read

sys.path.insert(0, str(ROOT / "tools"))

import notebooks as tool

PATHS = sorted(tool.NOTEBOOKS.glob("*.ipynb"))
every = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
MOST = 300_000  # bytes of a file
# What is changed for the tests, which have no network.
OFFLINE = {"your_sentences": ("PRETRAINED = True", "PRETRAINED = False")}


def load(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def printed(notebook: Any, name: str = "stdout") -> str:
    return "".join(it.text for it in outputs(notebook) if it.get("name") == name)


# ---------------------------------------------------------------------------------- as stored


def test_the_page_lists_every_notebook_by_its_title() -> None:
    listed = re.findall(
        r"^\| \[(.+)\]\(notebooks/(\w+)\.ipynb\) \|", read(DOCS / "notebooks.md"), re.M
    )
    titles = {(load(path).cells[0].source.splitlines()[0][2:], path.stem) for path in PATHS}
    assert set(listed) == titles
    assert len(listed) == len(PATHS) == 4


@every
def test_a_notebook_is_as_the_tool_stores_it(path: Path) -> None:
    assert tool.stored(load(path)) == read(path)
    assert path.stat().st_size < MOST


@every
def test_a_notebook_was_stored_after_one_run_without_errors(path: Path) -> None:
    notebook = load(path)
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    kinds = {output.output_type for output in outputs(notebook)}
    assert kinds <= {"stream", "display_data", "execute_result"}
    assert any("image/png" in output.get("data", ()) for output in outputs(notebook))


def test_the_stored_sentences_are_those_of_the_pretrained_encoder() -> None:
    (path,) = [path for path in PATHS if path.stem in OFFLINE]
    pretrained, _ = OFFLINE[path.stem]
    assert pretrained in read(path)
    assert "(194, 384)" in printed(load(path))  # the stand-in has 512 columns


@every
def test_the_first_cell_installs_only_what_is_missing(path: Path) -> None:
    first = code_cells(load(path))[0].source
    guarded = r'if find_spec\("coarse2fine"\) is None:.*\n    %pip install --quiet "coarse2fine\['
    assert re.search(guarded, first)
    asked = set(re.search(r'"coarse2fine\[([\w,]+)\]"', first)[1].split(","))  # type: ignore[index]
    source = "\n".join(cell.source for cell in code_cells(load(path)))
    signs = {"report": r"matplotlib|write_report", "sklearn": "sklearn", "train": r"import fit\b"}
    assert asked == {extra for extra, sign in signs.items() if re.search(sign, source)}


@every
def test_the_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    text = "\n".join(cell.source for cell in load(path).cells if cell.cell_type == "markdown")
    for _, _, target in LINK.findall(text):
        assert (path.parent / target).is_file(), target


def test_what_tells_who_ran_a_notebook_is_not_stored() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    notebook.metadata = {"kernelspec": {"name": "mine", "display_name": "Mine"}, "author": "me"}
    (cell,) = notebook.cells
    cell.metadata = {"execution": {"iopub.execute_input": "2026-01-01T00:00:00"}}
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="100%"),
        nbformat.v4.new_output("display_data", {"text/plain": "2"}, metadata={"needs": "me"}),
    ]
    again = nbformat.reads(tool.stored(notebook), as_version=4)
    assert again.metadata == tool.METADATA
    assert (again.cells[0].metadata, again.cells[0].id) == ({}, "cell-0")
    assert [(it.output_type, it.metadata) for it in again.cells[0].outputs] == [
        ("display_data", {})
    ]


# ---------------------------------------------------------------------------------- run again


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def first_steps(text: str) -> None:
    assert re.search(r"^30 classes: [\d → ]*30$", text, re.MULTILINE)
    # Three are 1 by chance; so a half shows that both have learned.
    assert number(r"test accuracy: ([\d.]+)% without", text) > 50
    assert number(r"without, ([\d.]+)% with the curriculum", text) > 50


def your_images(text: str) -> None:
    assert re.search(r"^photos +image +30 ", text, re.MULTILINE)
    assert re.search(r"^use (the baseline|continuous): ", text, re.MULTILINE)
    assert number(r"\n +0 +([\d.]+) ", text) > 50
    assert "saved as levels.png" in text


def your_sentences(text: str) -> None:
    assert "(194, 512)" in text
    assert text.count("12 classes: ") == 1
    assert number(r"always an intent: (\d+)%", text) > 100 / 12
    assert re.search(r"^sure answers: \d+% right, \d+% of them intents$", text, re.MULTILINE)


def sure_answers(text: str) -> None:
    assert "the first labels: " in text
    loops = [float(share) for share in re.findall(r"(?:alone|labels) +([\d.]+)%", text)]
    assert loops[1] > loops[0]  # half of the labels say no more than this
    # Nine times in ten the promise is kept on all there could be; these are 697 of them.
    assert number(r"promised 95%: ([\d.]+)% right", text) > 93
    assert number(r"sure answers: ([\d.]+)% right", text) > number(r"a digit: ([\d.]+)%", text)


CHECKS = {
    check.__name__: check for check in (first_steps, your_images, your_sentences, sure_answers)
}


@pytest.mark.slow
@every
def test_a_notebook_runs_and_prints_what_makes_sense(path: Path, tmp_path: Path) -> None:
    notebook = load(path)
    before, after = OFFLINE.get(path.stem, ("", ""))
    for cell in code_cells(notebook):
        cell.source = cell.source.replace(before, after) if before else cell.source
    ran = tool.executed(notebook, tmp_path)
    CHECKS[path.stem](printed(ran))
    assert not re.findall(r"(?:coarse2fine|ipykernel_).*Warning.*", printed(ran, "stderr"))
