"""One self-contained HTML page of a report's content.

The page needs no network. Text and tables are in the HTML itself; what is drawn is beside it as
gzipped JSON, with the plotting library. Its security policy lets only these very scripts run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import require
from ..figures import answers, classes, curves, icicle, levels
from ..runs.statistics import plus_minus
from .content import Content
from .mistakes import DECIMALS

HERE = Path(__file__).parent / "page"
COLOURS = Path(__file__).parents[1] / "figures" / "colours.css"
SCRIPTS = (
    "elements",
    "theme",
    "nodes",
    "tree",
    "icicle",
    "details",
    "matrices",
    "confusion",
    "confusion_controls",
    "classes",
    "main",  # last, as it begins
)
MOST_SECTORS = 500  # of a level of the icicle; a thousand would take half a second to draw
NEEDED = ("classes", "levels", "clusters", "confusion", "examples", "shown")  # by the scripts


def to_json(content: Content) -> dict[str, Any]:
    """Return what a report shows as plain values: text, numbers, lists, dicts and None."""
    found: dict[str, Any] = _plain(content)
    for curve in found["curves"]:  # which are called by their labels, see `Content`
        curve["label"] = curve.pop("method")
    return found


def _plain(value: Any) -> Any:
    """Return None for nan, which JSON does not have; arrays are long, so they are rounded."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):  # settings and versions, which were JSON before
        return dict(value)
    if isinstance(value, np.ndarray):
        return _plain(np.round(value, DECIMALS).tolist())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def render(content: Content) -> str:
    """Return the page."""
    safe = require("markupsafe", "report").Markup
    script, plain = _script(), to_json(content)
    is_by_class = content.confusion is None or content.confusion.level is None
    page: str = _template().render(
        content=plain,
        version=__version__,
        thing="class" if is_by_class else "cluster",
        things="classes" if is_by_class else "clusters",
        policy=_policy(script, _plotly()),
        style=safe(_read(COLOURS) + _read(HERE / "report.css")),
        script=safe(script),
        packed_content=safe(_packed(_drawn(content, plain))),
        packed_plotly=safe(_packed_plotly()),
    )
    return page


def _template() -> Any:
    jinja2 = require("jinja2", "report")
    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"plus_minus": plus_minus, "duration": duration, "shown": _shown}
    return environment.get_template("report.html")


# ------------------------------------------------------------------------------- scripts


def _script() -> str:
    """Return the page's own scripts as one, with names that nothing else sees."""
    parts = [_read(HERE / "js" / f"{name}.js") for name in SCRIPTS]
    return "\n".join(['(() => {\n"use strict";', *parts, "})();\n"])


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    source: str = require("plotly.offline", "report").get_plotlyjs()
    return source


@cache
def _packed_plotly() -> str:
    return _packed(_plotly())


def _packed(text: str) -> str:
    """Return a text gzipped, in base64: the same text always as the same letters."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(*scripts: str) -> str:
    """Return the page's security policy: nothing is loaded, and only these scripts run."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()) for script in scripts)
    allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        f"img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


# ------------------------------------------------------------------------------- figures


def _drawn(content: Content, plain: Mapping[str, Any]) -> str:
    """Return what the scripts need as JSON, with the figures that Python draws."""
    encoder = require("plotly.utils", "report").PlotlyJSONEncoder  # knows its own figures
    drawn = {**{name: plain[name] for name in NEEDED}, "figures": _figures(content)}
    computed = {"gains": content.classes.gains, "taken_for": content.taken_for}
    drawn["classes"] = {**plain["classes"], **{name: _plain(own) for name, own in computed.items()}}
    return json.dumps(drawn, cls=encoder, separators=(",", ":"))


def _figures(content: Content) -> dict[str, object]:
    accuracy, gains = content.level_accuracy, content.classes.gains
    means = {row.label: row.mean.tolist() for row in accuracy.rows}
    return {
        "curves": curves.plot(content.curves),
        "levels": levels.plot(accuracy.num_clusters, means),
        "gains": None if gains is None else classes.plot(content.classes.names, gains),
        "icicle": _icicle(content) if _has_icicle(content) else None,
        "answers": _answers(content),
    }


def _answers(content: Content) -> Any:
    measured = None if content.answers is None else content.answers.measured
    return None if measured is None else answers.plot(measured, measured.methods[0])


def _has_icicle(content: Content) -> bool:
    """Whether there is a level that can be looked at whole."""
    return bool(content.levels) and len(content.levels[0].edges) - 1 <= MOST_SECTORS


def _icicle(content: Content) -> Any:
    """Return the hierarchy, coloured by the change of accuracy where there is one."""
    names = [level.names for level in content.levels if level.names is not None]
    gains = [*(level.gains for level in content.clusters), content.classes.gains]
    return icicle.plot(
        [*(level.owners for level in content.levels), np.arange(len(content.classes.names))],
        content.classes.names,
        names or None,
        values=None if content.classes.gains is None else gains,
        value_name="change, points",
        most=MOST_SECTORS,
    )


# --------------------------------------------------------------------------- how text is shown


def duration(seconds: float) -> str:
    """Return how long something took, to two units.

    Examples:
        >>> duration(3.26), duration(428), duration(7380)
        ('3.3 s', '7 min 8 s', '2 h 3 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
