"""`python -m coarse2fine`: versions, for a report of a bug."""

from __future__ import annotations

import platform
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from . import __version__
from ._util.plugins import KINDS, installed, package

_CORE, _ALL = "", "all"


def lines() -> Iterator[str]:
    """Yield what a bug report should say of this environment."""
    yield f"coarse2fine {__version__}"
    yield f"Python {platform.python_version()}, {platform.platform()}, {platform.machine()}"
    yield _torch()
    try:
        needed = _needed()
    except PackageNotFoundError:
        yield "not installed: only its sources are on the path"
        return
    yield ", ".join(f"{name} {_installed(name)}" for name in needed.pop(_CORE))
    for extra, names in needed.items():
        found = {name: _installed(name) for name in names}
        each = ", ".join(f"{name} {found[name] or 'is missing'}" for name in names)
        yield f"[{extra}] {each if any(found.values()) else 'not installed'}"
    for kind in KINDS:
        for name, entries in installed(kind).items():
            yield f"{kind}: {name} of {', '.join(map(package, entries))}"


def _needed() -> dict[str, list[str]]:
    """Return what the package needs by its metadata, by extra; `_CORE` is what it always needs."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in requires("coarse2fine") or ():
        extra = re.search(r"extra == ['\"](\w+)['\"]", line)
        name = re.match(r"[\w.-]+", line)
        if name:
            found[extra[1] if extra else _CORE].append(name[0])
    found.pop(_ALL, None)
    return dict(found)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _torch() -> str:
    """Return what torch can compute on; why not, where it is broken, as that may be the bug."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return f"torch {_installed('torch')} cannot be imported: {' '.join(str(error).split())}"
    threads = torch.get_num_threads()
    return f"torch computes with {threads} thread{'s' * (threads > 1)}, {_devices(torch)}"


def _devices(torch: Any) -> str:
    if not torch.accelerator.is_available():
        return "no GPU"
    kind, count = torch.accelerator.current_accelerator().type, torch.accelerator.device_count()
    if kind != "cuda":
        return f"{count} × {kind}"
    names = [torch.cuda.get_device_name(index) for index in range(count)]
    return f"{', '.join(names)}; CUDA {torch.version.cuda}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
