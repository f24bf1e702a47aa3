"""Names of others are text wherever a browser may show them: reports, figures and tables."""

import json
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from made_runs import make_run

from coarse2fine import Hierarchy, write_report
from coarse2fine.cli.app import run as c2f

HOSTILE = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7 * 7 }}$x^2$-->"
SAFE_NAME = HOSTILE.replace("/", "_")  # as a folder may be called


@pytest.fixture
def comparison(tmp_path):
    """Two runs of somebody who has called everything the same."""
    names = [f"{HOSTILE} {number}" for number in range(4)]
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]], names, cluster_names=[names[:2]])
    targets, path = np.arange(4), tmp_path / SAFE_NAME
    for method in ("baseline", "continuous"):
        run = path / "seed-0" / method
        make_run(
            run, method=method, predictions=[1, 0, 3, 2], targets=targets, class_names=names,
            hierarchy=hierarchy if method == "continuous" else None,
            data=HOSTILE, model=HOSTILE, command=HOSTILE, levelled_off=False,
        )  # fmt: skip
        _rename(run, "continuous", f"{HOSTILE} method")
    return path


def _rename(run: Path, old: str, new: str) -> None:
    result = json.loads((run / "result.json").read_text())
    config = json.loads((run / "config.json").read_text())
    del result["checksums"], result["own"]
    config["versions"] = {HOSTILE: HOSTILE}
    if result["result"]["method"] == old:
        result["result"]["method"] = config["method"] = new
    (run / "result.json").write_text(json.dumps(result))
    (run / "config.json").write_text(json.dumps(config))


def test_a_report_holds_no_element_of_others(comparison, tmp_path):
    page = tmp_path / "page.html"
    write_report(comparison, page)
    html = page.read_text()
    assert HOSTILE not in html
    assert "onerror=alert(1)>" not in html
    assert unescape(html).count("onerror=alert(1)>") > 10
    assert html.count("<script") == 3  # content, plotly, and what draws with them
    assert "<img" not in html[html.index("<body>") : html.index("</main>")]


@pytest.mark.parametrize("kind", ["curves", "confusion", "hierarchy"])
def test_a_figure_holds_no_element_of_others(comparison, tmp_path, kind):
    path = tmp_path / "figure.svg"
    assert c2f(["figure", kind, str(comparison), "--out", str(path)]) == 0
    for element in ElementTree.parse(path).iter():
        assert element.tag.rpartition("}")[2] not in {"script", "img", "foreignObject", "a"}
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert not name.endswith("href") or value.startswith(("#", "data:image/png;"))


def test_a_table_of_an_experiment_holds_no_element_of_others(tmp_path, capsys):
    row = {
        "key": HOSTILE, "label": HOSTILE, "folder": "x", "paper": {}, "runs": [],
        "config": {"epochs": 3, "curriculum_epochs": 1},
        "variants": [{"name": "c", "label": HOSTILE, "method": "continuous", "settings": {}}],
    }  # fmt: skip
    content = {
        "format": "coarse2fine experiment", "version": 1, "experiment": "methods",
        "title": HOSTILE, "figure": None, "scale": {"name": "full", "about": HOSTILE},
        "seeds": [0], "command": HOSTILE, "versions": {}, "settings": [row],
    }  # fmt: skip
    (tmp_path / "methods.json").write_text(json.dumps(content))
    assert c2f(["paper", "methods", "--from", str(tmp_path)]) == 0
    text = (tmp_path / "methods.md").read_text()
    assert "<" not in text
    assert HOSTILE in unescape(text)
    assert HOSTILE in capsys.readouterr().out
