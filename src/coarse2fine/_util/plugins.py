"""What installed packages bring by name: methods, data and models, by their entry points."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

from .text import brief

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["methods", "data", "models"]
KINDS: tuple[Kind, ...] = ("methods", "data", "models")
_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")


def installed(kind: Kind) -> dict[str, list[EntryPoint]]:
    """Return what installed packages bring by each name; nothing of it is imported.

    Args:
        kind: Of the group of entry points, such as ``coarse2fine.methods``.
    """
    from importlib.metadata import entry_points  # which takes longer than all else here

    found = defaultdict(list)
    group = f"{__package__.partition('.')[0]}.{kind}"
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, package(entry))):
        found[entry.name].append(entry)
    return dict(found)


def brought(name: str, kind: Kind, what: str) -> Any:
    """Return what an installed package brings under a name; None where no package does.

    Args:
        name: As it is asked for.
        kind: See `installed`.
        what: It is, for error messages.

    Raises:
        ValueError: Several packages bring it, or it cannot be imported.
    """
    entries = installed(kind).get(name, [])
    if not entries:
        return None
    fault = _fault(entries)
    if fault:
        raise ValueError(f"{what} {name!r} {fault}.")
    try:
        return entries[0].load()
    except Exception as error:  # whatever its author's code raises
        raise ValueError(
            f"{what} {name!r} of the installed package {package(entries[0])} cannot be imported: "
            f"{type(error).__name__}: {brief(error)}; update or uninstall that package."
        ) from error


def listed(kind: Kind, ours: Collection[str]) -> list[str]:
    """Return a line for each name that installed packages bring, and why it is of no use.

    Args:
        kind: See `installed`.
        ours: Names that are taken.
    """
    return [_line(name, entries, ours) for name, entries in installed(kind).items()]


def names(kind: Kind, ours: Collection[str]) -> str:
    """Return all names that may be given, for error messages.

    Args:
        kind: See `installed`.
        ours: What is not installed by other packages.
    """
    others = [name for name in installed(kind) if name not in ours]
    return ", ".join([*ours, *others])


def package(entry: EntryPoint) -> str:
    """Return the name and the version of the package that has an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "of an unknown name"


def _line(name: str, entries: list[EntryPoint], ours: Collection[str]) -> str:
    if name in ours:
        return f"{name} of {package(entries[0])} is not used, as coarse2fine has its own"
    fault = _fault(entries)
    return f"{name} {fault}" if fault else f"{name}, of {package(entries[0])}"


def _fault(entries: list[EntryPoint]) -> str:
    """Return why what packages bring under a name cannot be used; empty where it can."""
    if len(entries) > 1:
        packages = " and ".join(map(package, entries))
        return f"is brought by several installed packages, {packages}; uninstall all but one"
    if not _NAME.fullmatch(entries[0].name):
        return (
            f"of the installed package {package(entries[0])} is no name: it must be made of small "
            f"letters and digits, joined by hyphens, dots or underscores"
        )
    return ""
