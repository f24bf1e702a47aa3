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
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import require
from ..training.views import Curve

HERE = Path(__file__).parent / "page"
COLOURS = Path(__file__).parents[1] / "_colours.css"
# In the order in which one needs the other.
SCRIPTS = (
    "unpack",
    "elements",
    "theme",
    "figures",
    "nodes",
    "tree",
    "details",
    "matrices",
    "confusion",
    "confusion_controls",
    "classes",
    "explorer",
    "main",
)
MOST_SECTORS = 500  # of a level of the icicle; a thousand would take half a second to draw
Content = dict[str, Any]


def render(content: Content) -> str:
    """Return the page.

    Args:
        content: See `report_content`.
    """
    safe = require("markupsafe", "report").Markup
    script = _script()
    is_by_class = content["confusion"] is None or content["confusion"]["level"] is None
    page: str = _template().render(
        content=content,
        version=__version__,
        thing="class" if is_by_class else "cluster",
        things="classes" if is_by_class else "clusters",
        policy=_policy(script, _plotly()),
        style=safe(_read(COLOURS) + _read(HERE / "report.css")),
        script=safe(script),
        packed_content=safe(_packed(json.dumps(_drawn(content), separators=(",", ":")))),
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


def _drawn(content: Content) -> Content:
    """Return what the scripts need, with the figures that Python draws."""
    needed = ("classes", "levels", "clusters", "confusion", "examples", "shown")
    figures = {name: json.loads(f.to_json()) if f else None for name, f in _figures(content)}
    return {**{name: content[name] for name in needed}, "figures": figures}


def _figures(content: Content) -> Any:
    from .. import plots

    yield "curves", plots.curves([_curve(**curve) for curve in content["curves"]])
    accuracy = content["level_accuracy"]
    rows = {row["label"]: row["mean"] for row in accuracy["rows"]}
    yield "levels", plots.levels(accuracy["num_clusters"], rows)
    classes = content["classes"]
    has_gains = classes["before"] is not None
    gains = _gains(classes["before"], classes["after"]) if has_gains else None
    yield "gains", plots.class_gains(classes["names"], gains) if has_gains else None
    yield "icicle", _icicle(content) if _has_icicle(content["levels"]) else None


def _curve(label: str, accuracy: list[float | None], **others: Any) -> Curve:
    """Return a curve as figures take it, called by its label."""
    known = [math.nan if value is None else value for value in accuracy]
    return Curve(method=label, accuracy=known, **others)


def _has_icicle(levels: list[Content]) -> bool:
    """Whether there is a level that can be looked at whole."""
    return bool(levels) and len(levels[0]["edges"]) - 1 <= MOST_SECTORS


def _icicle(content: Content) -> Any:
    """Return the hierarchy, coloured by the change of accuracy where there is one."""
    from .. import plots

    count = len(content["classes"]["names"])
    above = [_owners(level["edges"]) for level in content["levels"]]
    names = [level["names"] for level in content["levels"]]
    has_names = all(names)
    values = None
    if content["shown"]["baseline"] is not None:
        of_clusters = [(c["class_before"], c["class_after"]) for c in content["clusters"]]
        of_classes = (content["classes"]["before"], content["classes"]["after"])
        values = [_gains(*pair) for pair in (*of_clusters, of_classes)]
    return plots.icicle(
        [*above, np.arange(count)],
        content["classes"]["names"],
        names if has_names else None,
        values=values,
        value_name="change, points",
        most=MOST_SECTORS,
    )


def _owners(edges: list[int]) -> Any:
    """Return the cluster of each class, in the order of the hierarchy."""
    return np.repeat(np.arange(len(edges) - 1), np.diff(edges))


def _gains(before: list[float | None], after: list[float | None]) -> Any:
    """Return the change for each, NaN where there are no samples."""
    return np.array(after, dtype=float) - np.array(before, dtype=float)


# --------------------------------------------------------------------------- how text is shown


def plus_minus(pair: tuple[float, float | None], sign: str = "") -> str:
    """Return a mean and its error as text.

    Examples:
        >>> plus_minus((2.281, 0.294), "+"), plus_minus((24.2, None))
        ('+2.28 ± 0.29', '24.20')
        >>> plus_minus((31.525, None)), plus_minus((31.525000000000002, None))
        ('31.53', '31.53')
    """
    mean, error = pair
    # Halves as at school, so that the same mean is the same text, however it was added up.
    whole = Decimal(str(round(mean, 6))).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{whole:{sign}}" + ("" if error is None else f" ± {error:.2f}")


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
