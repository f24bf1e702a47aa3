"""Hundreds of runs, a hundred thousand classes, a million epochs, with figures.

python tests/integration/torture_load.py --out load.json
"""

import argparse
import json
import multiprocessing
import os
import shlex
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))  # where made_runs.py lies

import loading

from coarse2fine.runs.writer import versions

PARTS = ("many_runs", "many_classes", "many_epochs")


def carry_out(part):
    """Do one part in the current process, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        figures = getattr(loading, part)(Path(folder))
        os.chdir("/")
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="Where the figures go, as JSON.")
    wanted = parser.parse_args()
    figures = {}
    for part in PARTS:  # each in a process of its own, as the most memory is that of a process
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            figures[part] = process.submit(carry_out, part).result()
        sys.stdout.write(f"{part}: {figures[part]}\n")
        sys.stdout.flush()
    if wanted.out:
        content = {**figures, "command": shlex.join(sys.argv), "versions": versions()}
        wanted.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
