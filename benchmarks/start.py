"""What importing the package costs beyond importing torch."""

from __future__ import annotations

import subprocess
import sys

from measure import Row, compare


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
    return result
