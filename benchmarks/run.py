"""Measure speed and memory against peers in one run, and print the table.

    python benchmarks/run.py [PART ...] [--json FILE]

Every promise is a ratio, so that it means the same on every machine. Nothing else should
run at the same time. COARSE2FINE_DATA may name a folder with
trained heads to cluster and CIFAR-100 to read.
"""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import approximate
import clustering
import estimator
import hierarchy
import linear_loss
import loss
import measure
import methods
import numpy
import prediction
import reading
import report
import scipy
import shapes
import start
import torch
import training

import coarse2fine

PARTS = {
    "start": start,
    "loss": loss,
    "linear-loss": linear_loss,
    "clustering": clustering,
    "approximate": approximate,
    "hierarchy": hierarchy,
    "training": training,
    "methods": methods,
    "reading": reading,
    "prediction": prediction,
    "shapes": shapes,
    "report": report,
    "estimator": estimator,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all if none")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.parts or PARTS:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
        rows += PARTS[name].rows()
    print(measure.table(rows))
    if arguments.json:
        about = {
            "command": "python benchmarks/run.py " + " ".join(arguments.parts),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
            "versions": {m.__name__: m.__version__ for m in (coarse2fine, torch, numpy, scipy)},
        }
        arguments.json.write_text(measure.as_json(rows, **about) + "\n")


if __name__ == "__main__":
    main()
