"""List the licences of all that is needed at run time in docs/licences.md.

    python tools/licences.py

Versions are those of constraints.txt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution
from typing import Any

from dependencies import CORE, ROOT, at_run_time, direct, version_of
from packaging.utils import canonicalize_name

PAGE = ROOT / "docs" / "licences.md"
# What some packages call the licences that have a name in SPDX.
SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
# Packages whose metadata name no licence, though their repositories do.
UNNAMED = {"namex": "Apache-2.0"}
BEGINNING = """# Licences

coarse2fine is under Apache-2.0. It contains none of the packages below: they are installed beside it, each under its own licence. None is under the GPL or the AGPL; `tqdm`, in part under MPL-2.0, asks only that changes to its own files stay open.

`make licences` writes this page, with the versions of `constraints.txt`, and a test holds that it is whole. `make sbom` writes the same and what needs what as CycloneDX, for programs to read.
"""  # noqa: E501


def licence_of(found: Distribution) -> str:
    """Return the licence that a package's metadata declare, in the words of SPDX if it can be."""
    told: Any = found.metadata
    classifiers = [line for line in told.get_all("Classifier") or () if line.startswith("License")]
    candidates = [
        told.get("License-Expression") or "",
        (told.get("License") or "").strip(),
        *(line.rpartition(":: ")[2] for line in classifiers),
    ]
    short = [SPDX.get(text, text) for text in candidates if text and "\n" not in text]
    known = [text for text in short if re.fullmatch(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", text)]
    return next(iter(known), UNNAMED.get(canonicalize_name(told["Name"]), "unknown"))


def page() -> str:
    """Return the page."""
    everything = at_run_time()
    by_extra = {extra: sorted({line.name for line in lines}) for extra, lines in direct().items()}
    parts = [BEGINNING]
    for extra, names in by_extra.items():
        title = "Always" if extra == CORE else f"With the extra `{extra}`"
        parts.append(f"## {title}\n\n{_table(everything[canonicalize_name(n)] for n in names)}")
    asked = {canonicalize_name(name) for names in by_extra.values() for name in names}
    others = [found for name, found in everything.items() if name not in asked]
    parts.append(f"## What these need in turn\n\n{_table(others)}")
    return "\n".join(parts)


def _table(found: Iterable[Distribution]) -> str:
    rows = [f"| {x.metadata['Name']} | {version_of(x)} | {licence_of(x)} |" for x in found]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written\n")
