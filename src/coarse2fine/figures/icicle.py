"""A hierarchy as a plotly figure to zoom into: the coarsest clusters to the left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._hierarchy.nesting import edges, nested_order
from .._util.arrays import IntArray
from .theme import BAR, BETTER, COLOURS, INK, WORSE, graph_objects, new_figure, scale_end, shown

ROOT = "all"
MOST_SECTORS = 5000  # of a level
MOST_AT_ONCE = 150  # clusters of a level, for it to be shown before anyone zooms in
NAMED, HOVERED = 3, 10  # classes: that name a cluster without a name, and that hovering tells
PALE = "#dddddd"  # of the root; opaque, as plotly chooses the colour of its letters by it
QUANTILE = 0.98
SCALE = [[0.0, WORSE], [0.5, "#eeeeee"], [1.0, BETTER]]


def plot(
    levels: Sequence[IntArray],
    class_names: Sequence[str] | None = None,
    cluster_names: Sequence[Sequence[str]] | None = None,
    *,
    values: Sequence[Any] | None = None,
    value_name: str = "gain, points",
    most: int = MOST_SECTORS,
) -> Any:
    """Return a hierarchy as nested sectors, as large as they have classes.

    A sector has the id ``"LEVEL:CLUSTER"``, such as ``"0:3"``, by the coarsest level at which
    the cluster is there: where it does not split at the next level, it is not repeated. The
    root is ``"all"``.

    Args:
        levels: Coarsest first, each an array class → cluster; the last is the classes.
        class_names: Defaults to None.
        cluster_names: For each level but the last. Defaults to None.
        values: For each level an array of one number a cluster, nan where there is none,
            which the colours show then. Defaults to None: a colour for each coarsest cluster.
        value_name: What the numbers are. Defaults to ``"gain, points"``.
        most: Levels of more clusters than this are left out, and so are the classes where
            there are more of them. Defaults to 5,000.

    Examples:
        >>> figure = plot([np.array([0, 0, 1]), np.arange(3)], ["cat", "dog", "car"])
        >>> dict(zip(figure.data[0].ids, figure.data[0].labels))
        {'all': 'all classes', '0:0': 'cat, dog', '0:1': 'car', '1:0': 'cat', '1:1': 'dog'}
    """
    counts = [int(level.max()) + 1 for level in levels]
    if counts[0] > most:
        raise ValueError(
            f"{counts[0]} clusters at the coarsest level cannot be looked at, {most} can: print "
            f"the hierarchy instead."
        )
    kept = sum(count <= most for count in counts)
    sectors = list(_Tree(levels, kept, class_names, cluster_names, values, value_name).sectors())
    trace = graph_objects().Icicle(
        ids=[ROOT, *(sector.id for sector in sectors)],
        parents=["", *(sector.parent for sector in sectors)],
        labels=["all classes", *(sector.label for sector in sectors)],
        values=[counts[-1], *(sector.size for sector in sectors)],
        hovertext=[f"{counts[-1]} classes", *(sector.text for sector in sectors)],
        marker=_marker(sectors, None if values is None else value_name),
        hoverinfo="text",
        branchvalues="total",
        sort=False,
        maxdepth=1 + max(1, sum(count <= MOST_AT_ONCE for count in counts)),
        leaf={"opacity": 1},
        textposition="middle left",
        tiling={"pad": 1},
        pathbar={"thickness": 24},
    )
    below = 4 if values is None else 64
    margin, text = {"l": 4, "r": 4, "t": 32, "b": below}, {"minsize": 11, "mode": "hide"}
    return new_figure(trace, height=560, margin=margin, uniformtext=text)


@dataclass(frozen=True)
class _Sector:
    """A cluster that is not the same as the one it lies in.

    Args:
        id: Of the sector.
        parent: Id of the sector that it lies in.
        label: On it.
        text: Of the hover label.
        size: How many classes it has.
        family: The coarsest cluster that it lies in.
        value: That its colour shows; nan for none.
    """

    id: str
    parent: str
    label: str
    text: str
    size: int
    family: int
    value: float


@dataclass(frozen=True)
class _Tree:
    levels: Sequence[IntArray]
    kept: int  # how many of the levels are drawn
    class_names: Sequence[str] | None
    cluster_names: Sequence[Sequence[str]] | None
    values: Sequence[Any] | None
    value_name: str

    def sectors(self) -> Iterator[_Sector]:
        """Yield the clusters of each level, parents before their children."""
        count = len(self.levels[-1])
        order = nested_order(self.levels, count)
        owners = np.full(count, ROOT, dtype=object)  # for each class, the sector it is last in
        # How many classes that has; the root one more, so that it never counts as a cluster.
        sizes = np.full(count, count + 1)
        for level in range(self.kept):
            for start, end in pairwise(edges(self.levels[level], order)):
                members = order[start:end]
                if len(members) < sizes[members[0]]:
                    sector = self._sector(level, members, owners[members[0]])
                    owners[members], sizes[members] = sector.id, sector.size
                    yield sector

    def _sector(self, level: int, members: IntArray, parent: str) -> _Sector:
        cluster = int(self.levels[level][members[0]])
        label = self._label(level, cluster, members)
        value = float("nan") if self.values is None else float(self.values[level][cluster])
        return _Sector(
            f"{level}:{cluster}", parent, label, self._text(label, members, value),
            len(members), int(self.levels[0][members[0]]), value,
        )  # fmt: skip

    def _label(self, level: int, cluster: int, members: IntArray) -> str:
        name = ""
        if self.cluster_names is not None and level < len(self.cluster_names):
            name = self.cluster_names[level][cluster]
            name = name and shown(name)
        if len(members) == 1:
            own = self._class(members[0])
            return f"{name}: {own}" if name not in ("", own) else own
        if name:
            return name
        if self.class_names is None:
            return f"{len(members)} classes"
        return self._listed(members, NAMED)

    def _text(self, label: str, members: IntArray, value: float) -> str:
        lines = [f"<b>{label}</b>"]
        if len(members) > 1:
            lines.append(f"{len(members)} classes")
            if self.class_names is not None:
                names = [self._class(index) for index in members[:HOVERED].tolist()]
                rest = [f"… and {len(members) - HOVERED} more"] if len(members) > HOVERED else []
                lines += [*names, *rest]
        if self.values is not None:
            told = "none" if np.isnan(value) else f"{value:+.1f}"
            lines.append(f"{shown(self.value_name)}: {told}")
        return "<br>".join(lines)

    def _listed(self, members: IntArray, most: int) -> str:
        names = ", ".join(self._class(index) for index in members[:most].tolist())
        return f"{names}…" if len(members) > most else names

    def _class(self, index: int) -> str:
        return f"class {index}" if self.class_names is None else shown(self.class_names[index])


def _marker(sectors: list[_Sector], value_name: str | None) -> dict[str, object]:
    line = {"width": 0}
    if value_name is None:
        found = dict.fromkeys(sector.family for sector in sectors)
        families = {family: place for place, family in enumerate(found)}
        colours = [COLOURS[families[sector.family] % len(COLOURS)] for sector in sectors]
        return {"colors": [PALE, *colours], "line": line}
    values = np.array([sector.value for sector in sectors])
    most = scale_end(values, QUANTILE)
    colours = [INK if np.isnan(value) else value for value in values.tolist()]
    return {
        "colors": [PALE, *colours],
        "colorscale": SCALE,
        "cmin": -most,
        "cmid": 0,
        "cmax": most,
        "showscale": True,
        "colorbar": {
            "title": {"text": shown(value_name), "side": "bottom"},
            "thickness": 12,
            **BAR,
        },
        "line": line,
    }
