"""What importing the package costs beyond importing torch."""

from __future__ import annotations

import subprocess
import sys

from measure import Row, medians


def rows() -> list[Row]:
    def importing(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    everything = "from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy"
    mine, bare, peer = medians(
        lambda: importing(everything),
        lambda: importing("import coarse2fine"),
        lambda: importing("import torch"),
        repeats=9,
    )
    detail = f"{mine:.3g} s against {peer:.3g} s"
    return [
        Row.at_most("import coarse2fine, against import torch", bare / peer, 1.1, "×"),
        Row.at_most("importing the three names of the README", mine / peer, 1.1, "×", detail),
    ]
