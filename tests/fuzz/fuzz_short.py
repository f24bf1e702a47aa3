"""Run every target on its seeds, its regressions and some mutations, in a process of its own.

The guard and the limit of memory are for a whole process, so pytest's own must be another.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzz_choices import mutations
from fuzz_found import FOUND
from fuzz_guard import Guard, ParserError, limit_memory, only_documented_warnings
from targets import TARGETS, tester, warm_up

SLOW = 50_000  # of a million; targets that get fewer take longer for each input


def outcome(name: str, folder: Path, guard: Guard, seed: int) -> dict[str, Any]:
    """Return how many inputs of a target were accepted, how many refused, and what failed."""
    folder.mkdir()
    test = tester(name, folder, guard)
    target = TARGETS[name]
    count = 1200 if target.share > SLOW else 300
    counts: dict[str, Any] = {"accepted": 0, "refused": 0, "failures": []}
    data = b""
    try:
        for data in (*FOUND.get(name, ()), *mutations(target.seeds(), count, seed)):
            for error in test(data):
                counts["accepted" if error is None else "refused"] += 1
    except ParserError as failure:
        counts["failures"].append(f"{data[:200]!r}: {str(failure)[-1500:]}")
    return counts


def main() -> None:
    only_documented_warnings()
    for name in TARGETS:
        warm_up(name)
    limit_memory()
    with tempfile.TemporaryDirectory() as place:
        root, here = Path(place) / "in", Path(place) / "here"
        root.mkdir()
        here.mkdir()
        os.chdir(here)  # where libraries that are not in Python, and open unseen, would write
        guard = Guard(root)
        found = {name: outcome(name, root / name, guard, seed=1) for name in TARGETS}
        left = sorted(path.name for path in (*Path(place).iterdir(), *here.iterdir()))
    json.dump({"targets": found, "left": left}, sys.stdout)


if __name__ == "__main__":
    main()
