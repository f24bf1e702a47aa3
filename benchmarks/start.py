"""What importing the package costs beyond importing torch, and how soon `c2f` answers."""

from __future__ import annotations

import statistics
import subprocess
import sys

from measure import Row, compare, seconds


def rows() -> list[Row]:
    def importing(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    everything = "from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy"
    names = {"import coarse2fine": "import coarse2fine", "the README's three names": everything}
    result = []
    for what, code in names.items():
        found = compare(
            lambda code=code: importing(code), lambda: importing("import torch"), repeats=9
        )
        detail = f"{found.ours:.3g} s against {found.peer:.3g} s"
        what = f"{what}, against import torch"
        result.append(Row.at_most(what, found.ratio, 1.1, "×", detail))
    return [*result, help_row()]


def help_row() -> Row:
    """The time to start, as a person waits for it."""
    command = [sys.executable, "-m", "coarse2fine.cli", "--help"]
    times = [
        seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        for _ in range(9)
    ]
    return Row.at_most("c2f --help", statistics.median(times[1:]), 0.5, " s")
