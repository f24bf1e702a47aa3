"""Reading trees of classes made by people, in the forms they usually come in."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np

from ._hierarchy.branches import (
    CHOOSE,
    MAX_LEVELS,
    Branch,
    from_columns,
    from_pairs,
    is_label,
)
from ._hierarchy.levels import check_names
from ._util.arrays import IntArray
from ._util.files import check_is_file, parse_json
from ._util.tables import csv_rows
from ._util.text import brief, did_you_mean
from .nodes import Nodes

Parts = tuple[list[IntArray], list[str], list[list[str]], dict[str, str]]
FIRST = "first"


def read_taxonomy(
    taxonomy: Any,
    class_names: Sequence[str] | None,
    columns: Sequence[str],
    parents: str | None = None,
) -> Parts:
    """Return the levels and all names of `Hierarchy.from_taxonomy`."""
    takes_first = check_parents(parents)
    if isinstance(columns, str) or len(columns) < 2:
        raise ValueError(f"columns must name at least two columns, coarsest first. Got {columns}.")
    columns = tuple(columns)
    if not isinstance(taxonomy, str | os.PathLike):
        branches = _from_object(taxonomy, columns, takes_first)
        return _to_levels(_in_order(branches, class_names, takes_first))
    path = Path(taxonomy)
    check_is_file(path)
    is_csv = path.suffix.lower() == ".csv"
    content = None if is_csv else parse_json(path)  # which names the file in its own errors
    try:
        branches = (
            _from_csv(path, columns, takes_first)
            if is_csv
            else _from_object(content, columns, takes_first)
        )
        return _to_levels(_in_order(branches, class_names, takes_first))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {brief(error)}") from None


def check_parents(parents: Any) -> bool:
    """Return whether the first of several parents is taken; refuse what is no choice."""
    if parents is not None and not (isinstance(parents, str) and parents == FIRST):
        raise ValueError(f"parents must be None or {FIRST!r}. Got {short(parents)}.")
    return parents is not None


def _from_object(taxonomy: Any, columns: tuple[str, ...], takes_first: bool) -> list[Branch]:
    if _is_table(taxonomy, columns):
        cells = [_cells(taxonomy[column]) for column in columns]
        return from_columns(cells, columns, range(len(cells[-1])), takes_first)
    if isinstance(taxonomy, Mapping):
        return list(_walk(taxonomy, (), 0))
    found = _column_names(taxonomy)
    if found:
        raise ValueError(
            f"the table must have the columns {', '.join(columns)}; name others by columns=. Got "
            f"{', '.join(map(str, found))}."
        )
    raise TypeError(
        f"taxonomy must be a nested dict, a table with the columns {', '.join(columns)}, or a "
        f"path to JSON or CSV. Got {type(taxonomy).__name__}."
    )


# ------------------------------------------------------------------------- nested groups


def _walk(node: Any, above: Branch, depth: int) -> Iterator[Branch]:
    """Yield the branches of a nested dict; lists, and keys without children, are classes."""
    if depth > MAX_LEVELS:
        raise ValueError(f"the taxonomy is more than {MAX_LEVELS} levels deep.")
    if isinstance(node, Mapping):
        for name, below in node.items():
            branch = (*above, _name(name, above))
            if below is None or (isinstance(below, Mapping | list | tuple) and not below):
                yield branch
            else:
                yield from _walk(below, branch, depth + 1)
    elif isinstance(node, list | tuple):
        for child in node:
            yield from _walk(child, above, depth + 1)
    else:
        yield (*above, _name(node, above))


def _name(value: Any, above: Branch) -> str:
    if not is_label(value):
        place = " > ".join(above) or "the root"
        raise ValueError(
            f"below {place} a group or class must be a string or an integer. Got {short(value)}."
        )
    return str(value)


# ---------------------------------------------------------------------------- CSV files


def _from_csv(path: Path, columns: tuple[str, ...], takes_first: bool) -> list[Branch]:
    header, rows, numbers = _read_csv(path)
    # The columns first: a table of samples may have others that are called parent and child.
    for names in (columns, ("parent", "child")):
        if set(names) <= set(header):
            places = [header.index(name) for name in names]
            cells = [[row[place] for row in rows] for place in places]
            read = from_columns if names == columns else from_pairs
            return read(cells, names, numbers, takes_first)
    raise ValueError(
        f"the first row must name the columns parent and child, or {', '.join(columns)}. Got "
        f"{', '.join(header) or 'an empty file'}."
    )


def _read_csv(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the header, the rows and their line numbers, blank lines left out."""
    (_, header), *rows = list(csv_rows(path)) or [(0, [])]
    for number, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"row {number} must have {len(header)} cells, like the first. Got {len(row)}."
            )
    return header, [row for _, row in rows], [number for number, _ in rows]


# -------------------------------------------------------------------------------- tables


def _is_table(taxonomy: Any, columns: tuple[str, ...]) -> bool:
    """Return whether it has the columns; groups of a nested dict may have the same names."""
    if not set(columns) <= set(_column_names(taxonomy)):
        return False
    return all(
        isinstance(taxonomy[column], Sized | Iterable)
        and not isinstance(taxonomy[column], str | Mapping)
        for column in columns
    )


def _column_names(table: Any) -> list[Any]:
    if isinstance(table, Mapping):
        return list(table)
    names = getattr(table, "column_names", None)  # a Hugging Face data set
    names = getattr(table, "columns", None) if names is None else names
    return list(names) if isinstance(names, Iterable) else []


def _cells(column: Any) -> list[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column)


# ------------------------------------------------------------------- branches to levels


def _in_order(
    branches: list[Branch], class_names: Sequence[str] | None, takes_first: bool
) -> list[Branch]:
    """Return the branches in the order of the model's outputs."""
    found: dict[str, Branch] = {}
    for branch in branches:
        if branch[-1] in found and not takes_first:
            raise ValueError(
                f"the class {branch[-1]!r} stands in two places: {' > '.join(found[branch[-1]])} "
                f"and {' > '.join(branch)}; {CHOOSE}."
            )
        found.setdefault(branch[-1], branch)
    names = _tree_order(list(found)) if class_names is None else _check_classes(found, class_names)
    return [found[name] for name in names]


def _tree_order(names: list[str]) -> list[str]:
    """Sort integer labels, also those in a CSV; others keep the order in which they came.

    Integers are already the model's outputs; in any other order, the hierarchy would belong
    to other classes without anybody noticing.
    """
    if not all(name.isdecimal() and name.isascii() and name == str(int(name)) for name in names):
        return names
    names = sorted(names, key=int)
    gap = next((index for index, name in enumerate(names) if int(name) != index), None)
    if gap is not None:
        raise ValueError(
            f"integer labels must be 0..{len(names) - 1} without gaps, but {gap} is not among "
            f"them. Where they are names, give the order of the classes by class_names=."
        )
    return names


def _check_classes(found: dict[str, Branch], class_names: Sequence[str]) -> tuple[str, ...]:
    count = len(class_names) if isinstance(class_names, Sized) else len(found)
    names = check_names(class_names, count, "class_names")
    twice = [name for name, count in Counter(names).items() if count > 1]
    missing = [name for name in names if name not in found]
    unknown = found.keys() - set(names)
    if twice:
        raise ValueError(f"class_names must differ from each other. Got {twice[0]!r} twice.")
    if missing or unknown:
        what = f"lacks {missing[0]!r}" if missing else f"has {min(unknown)!r} besides"
        hint = did_you_mean(missing[0], unknown) if missing else ""
        raise ValueError(
            f"the taxonomy's classes must be those of class_names, or of the data, but it {what}."
            f"{hint}"
        )
    return names


def _to_levels(branches: list[Branch]) -> Parts:
    """Cut the tree at every depth; a class above the cut stays a cluster of its own.

    A cluster is all branches with the same first names, so that groups of the same name in
    different places are different clusters.
    """
    if len(branches) < 2:
        raise ValueError(f"a taxonomy needs at least two classes. Got {len(branches)}.")
    levels: list[IntArray] = []
    names: list[list[str]] = []
    for depth in range(1, max(map(len, branches))):
        prefixes = [branch[:depth] for branch in branches]
        ids = {prefix: number for number, prefix in enumerate(dict.fromkeys(prefixes))}
        # The root teaches nothing, and a cut with as many clusters as the one above is the same.
        is_new = 1 < len(ids) < len(branches) and (not levels or len(ids) > levels[-1].max() + 1)
        if is_new:
            levels.append(np.array([ids[prefix] for prefix in prefixes]))
            names.append([prefix[-1] for prefix in ids])
    levels.append(np.arange(len(branches)))
    class_names = [branch[-1] for branch in branches]
    return levels, class_names, names, _other_names(branches, Nodes(levels, class_names, names))


def _other_names(branches: list[Branch], nodes: Nodes) -> dict[str, str]:
    """Return names of groups that no level holds, with those of the same classes that one does.

    A level holds a set of classes once, and none holds the root, nor a group of one class at
    every cut.
    """
    members: dict[Branch, list[int]] = {}
    known = set(nodes.known_names)
    for place, branch in enumerate(branches):
        for depth in range(1, len(branch)):
            if branch[depth - 1] not in known:
                members.setdefault(branch[:depth], []).append(place)
    found: dict[str, set[int]] = {}
    for branch, classes in members.items():
        found.setdefault(branch[-1], set()).add(nodes.of_classes(classes))
    return {name: nodes.names[own.pop()] for name, own in found.items() if len(own) == 1}
