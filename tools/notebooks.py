"""Run the notebooks of the documentation and store what they print and draw.

    python tools/notebooks.py
    python tools/notebooks.py first_steps

Without names, all of docs/notebooks. Each runs from top to bottom in an empty folder, with one
thread. The same machine and versions store the same files: nothing in them tells when or by whom
they were run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
SECONDS = 600  # for a cell, on a busy machine
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(notebook: Any, folder: Path) -> Any:
    """Return a notebook as it is after all of its cells have run in a folder.

    Args:
        notebook: As nbformat reads it; it is changed.
        folder: The working directory.

    Raises:
        CellExecutionError: A cell failed.
    """
    paths = (str(Path(sys.executable).parent), os.environ["PATH"])  # for !c2f
    settings = {"OMP_NUM_THREADS": "1", "PATH": os.pathsep.join(paths)}
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute(env=os.environ | settings)


def stored(notebook: Any) -> str:
    """Return the text of a notebook's file, without what depends on who ran it and when."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({})
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = [_plain(output) for output in cell.outputs if _is_shown(output)]
    return nbformat.writes(notebook) + "\n"


def _is_shown(output: Any) -> bool:
    """Say whether an output is stored; progress bars and notices of other libraries are not."""
    return output.get("name") != "stderr"


def _plain(output: Any) -> Any:
    if "metadata" in output:
        output.metadata = nbformat.from_dict({})
    return output


def main() -> None:
    """Run the notebooks that are named."""
    names = sys.argv[1:] or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    for name in names:
        path = NOTEBOOKS / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(stored(executed(notebook, Path(folder))), encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
