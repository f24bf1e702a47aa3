"""Reading trees of classes that people made, in the forms people have them in."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import IntArray, to_numpy
from ._files import parse_json

Parts = tuple[list[IntArray], list[str], list[list[str]]]
# A class: the names from the root's child down to the class itself.
Branch = tuple[str, ...]


def read_taxonomy(
    taxonomy: Any, class_names: Sequence[str] | None, columns: tuple[str, ...]
) -> Parts:
    """Return the levels, class names and cluster names of `Hierarchy.from_taxonomy`."""
    if isinstance(taxonomy, str | os.PathLike):
        path = Path(taxonomy)
        branches = _read_csv(path, columns) if path.suffix.lower() == ".csv" else _read_json(path)
        where = f"{path}: "
    else:
        where = ""
        is_table = all(_has_column(taxonomy, column) for column in columns)
        if is_table:
            branches = _from_columns([_column(taxonomy, column) for column in columns], columns)
        elif isinstance(taxonomy, Mapping):
            branches = list(_walk(taxonomy, ()))
        else:
            raise TypeError(
                f"taxonomy must be a nested dict, a table with the columns {columns}, or a "
                f"path to JSON or CSV. Got {type(taxonomy).__name__}."
            )
    try:
        return _to_levels(_in_order(branches, class_names))
    except ValueError as error:
        raise ValueError(f"{where}{error}") from None


def _walk(node: Any, above: Branch) -> Iterator[Branch]:
    """Yield the branches of a nested dict; lists, and keys without children, are classes."""
    if isinstance(node, Mapping):
        for name, below in node.items():
            branch = (*above, str(name))
            if len(branch) > 100:
                raise ValueError("the taxonomy is more than 100 levels deep.")
            if below is None or (isinstance(below, Mapping | list | tuple) and not below):
                yield branch
            else:
                yield from _walk(below, branch)
    elif isinstance(node, list | tuple):
        for child in node:
            yield from _walk(child, above)
    elif isinstance(node, str | int) and not isinstance(node, bool):
        yield (*above, str(node))
    else:
        raise ValueError(
            f"below {' > '.join(above) or 'the root'} a class must be a string. Got {node!r:.80}."
        )


def _read_json(path: Path) -> list[Branch]:
    content = parse_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a taxonomy must be a JSON object of nested groups.")
    try:
        return list(_walk(content, ()))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_csv(path: Path, columns: tuple[str, ...]) -> list[Branch]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not readable as CSV: {error}") from None
    header = list(rows[0]) if rows else []
    wanted = [names for names in (columns, ("parent", "child")) if set(names) <= set(header)]
    if not wanted:
        raise ValueError(
            f"{path}: the first row must name the columns parent and child, or {', '.join(columns)}"
            f". Got {', '.join(map(str, header)) or 'no rows'}."
        )
    for number, row in enumerate(rows, start=2):
        if any(row[name] is None for name in wanted[0]):
            raise ValueError(f"{path}: row {number} has too few columns.")
    try:
        if wanted[0] == columns:
            cells = [[row[name].strip() for row in rows] for name in columns]
            return _from_columns(cells, columns)
        return _from_pairs([(row["parent"].strip(), row["child"].strip()) for row in rows])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _from_pairs(pairs: list[tuple[str, str]]) -> list[Branch]:
    """Turn parent-child pairs into branches; an empty parent stands for the root."""
    parent: dict[str, str] = {}
    for above, child in pairs:
        if parent.setdefault(child, above) != above:
            raise ValueError(f"{child!r} has two parents, {parent[child]!r} and {above!r}.")
    inner = set(parent.values())
    return [_climb(child, parent) for child in parent if child not in inner]


def _climb(child: str, parent: dict[str, str]) -> Branch:
    branch = [child]
    while parent.get(branch[-1]):
        branch.append(parent[branch[-1]])
        if len(branch) > len(parent) + 1:
            raise ValueError(f"{child!r} is its own ancestor.")
    return tuple(reversed(branch))


def _from_columns(cells: Sequence[Sequence[Any]], columns: tuple[str, ...]) -> list[Branch]:
    """Turn columns of labels, the finest last, into a branch for each finest label."""
    finest = [_plain(cell) for cell in cells[-1]]
    branches: dict[Any, Branch] = {}
    for row, label in enumerate(finest):
        branch = tuple(str(_plain(column[row])) for column in cells)
        if branches.setdefault(label, branch) != branch:
            raise ValueError(
                f"{columns[-1]} {label!r} stands beside {branches[label][:-1]} and, in row "
                f"{row}, beside {branch[:-1]}."
            )
    return [branches[label] for label in _label_order(branches)]


def _label_order(labels: Iterable[Any]) -> list[Any]:
    """Keep the own order of integer labels, also of those in a CSV; others stay as they came."""
    labels = list(labels)
    try:
        numbers = [int(label) for label in labels]
    except ValueError:
        return labels
    if sorted(numbers) != list(range(len(numbers))):
        raise ValueError(f"integer labels must be 0..{len(numbers) - 1} without gaps.")
    return sorted(labels, key=int)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _has_column(table: Any, column: str) -> bool:
    names = getattr(table, "column_names", None)  # a Hugging Face data set
    names = getattr(table, "columns", table) if names is None else names
    return isinstance(names, Iterable) and column in list(names)


def _column(table: Any, column: str) -> list[Any]:
    return list(to_numpy(table[column]).tolist())


def _in_order(branches: list[Branch], class_names: Sequence[str] | None) -> list[Branch]:
    found: dict[str, Branch] = {}
    for branch in branches:
        if branch[-1] in found:
            raise ValueError(
                f"the class {branch[-1]!r} stands in two places: {' > '.join(found[branch[-1]])} "
                f"and {' > '.join(branch)}."
            )
        found[branch[-1]] = branch
    if class_names is None:
        return branches
    missing = [name for name in class_names if name not in found]
    unknown = sorted(found.keys() - set(class_names))
    if missing or unknown:
        what = f"lacks {missing[0]!r}" if missing else f"has {unknown[0]!r} besides"
        raise ValueError(f"the taxonomy's classes must be those of class_names, but it {what}.")
    return [found[name] for name in class_names]


def _to_levels(branches: list[Branch]) -> Parts:
    """Cut the tree at every depth; a class above the cut stays a cluster of its own."""
    if len(branches) < 2:
        raise ValueError(f"a taxonomy needs at least two classes. Got {len(branches)}.")
    levels: list[IntArray] = []
    names: list[list[str]] = []
    for depth in range(1, max(map(len, branches))):
        prefixes = [branch[:depth] for branch in branches]
        ids = {prefix: number for number, prefix in enumerate(dict.fromkeys(prefixes))}
        # The root teaches nothing, and a cut that splits nothing has been made already.
        is_new = 1 < len(ids) < len(branches) and (not levels or len(ids) > levels[-1].max() + 1)
        if is_new:
            levels.append(np.array([ids[prefix] for prefix in prefixes]))
            names.append([prefix[-1] for prefix in ids])
    return [*levels, np.arange(len(branches))], [branch[-1] for branch in branches], names
