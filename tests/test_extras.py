"""Whatever is missing is named with the line that installs it, whichever way one comes."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import extras_walk
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import coarse2fine
from coarse2fine import fit
from coarse2fine.cli.app import COMMANDS

tomllib = pytest.importorskip("tomllib", reason="pyproject.toml is read by Python 3.11")
ROOT = Path(__file__).parents[1]
WALK = Path(extras_walk.__file__)
FITS = ("fit", "fit on tensors", "fit on a table", "c2f train", "c2f train --dry-run", "c2f demo")
TRAINS = (*FITS, "c2f train --tensorboard", "c2f paper")
READS = ("c2f data", "c2f evaluate", "c2f predict")
TABLES = ("fit on a table", "c2f train", "c2f train --dry-run", *READS)
COMMAND_ENTRIES = tuple(f"c2f {words}" for words in extras_walk.ARGUMENTS)
# What needs each library, by the extra that installs it.
NEEDS = {
    "train": {
        "datasets": ("load from the hub",),
        "filelock": ("fit on tensors", "fit on a table", "c2f train", "c2f demo"),
        "lightning_fabric": TRAINS,
        "PIL": ("load a folder of images", "load images in parquet"),
        "pyarrow": (*TABLES, "load images in parquet", "load from the hub"),
        "rich": ("c2f train", "c2f demo"),
        "tensorboard": ("c2f train --tensorboard",),
        "typer": COMMAND_ENTRIES,
    },
    "report": {
        "jinja2": ("write_report", "c2f report"),
        "matplotlib": ("c2f figure",),
        "plotly": ("Hierarchy.plot", "Result.plot", "write_report", "c2f report"),
    },
    "dask": {"distributed": ("a Dask cluster",)},
    "faiss": {"faiss": ("approximate clustering",)},
    "lightning": {"lightning pytorch_lightning": ("integrations.lightning",)},
    "transformers": {"transformers": ("integrations.transformers",), "accelerate": ()},
    "sklearn": {
        "sklearn": ("integrations.sklearn",),
        "skorch": ("integrations.sklearn",),
    },
    "keras": {"keras": ("integrations.keras",)},
    "torchmetrics": {"torchmetrics": ("integrations.torchmetrics",)},
    "accelerate": {"accelerate": ()},
    "onnx": {
        "onnx": ("c2f export --onnx",),
        "onnxscript": ("c2f export --onnx",),
        "onnxruntime": (),
    },
    "hub": {"huggingface_hub": ("a classifier of the hub",)},
}
MODULES = {  # of distributions that are called otherwise
    "faiss-cpu": "faiss",
    "lightning-fabric": "lightning_fabric",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "lightning": "lightning pytorch_lightning",
}
CASES = [
    (extra, library, entry)
    for extra, libraries in NEEDS.items()
    for library, entries in libraries.items()
    for entry in entries
]
EVERY_ENTRY = (*coarse2fine.__all__, *extras_walk.ENTRIES)


def declared(extra):
    """The modules of what pyproject.toml lists for an extra."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in extras[extra]]
    return {MODULES.get(name, name) for name in names}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data of every kind, and a finished run of which RUN is the comparison."""
    place = tmp_path_factory.mktemp("extras")
    rows = [f"{row},{row * row % 7},{'abc'[row % 3]}" for row in range(60)]
    (place / "rows.csv").write_text("\n".join(["x,z,label", *rows]))
    (place / "hub").mkdir()
    (place / "hub" / "train.csv").write_text((place / "rows.csv").read_text())
    for row in range(12):
        path = place / "photos" / "abc"[row % 3] / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 20 * row, np.uint8)).save(path)
    images = [path.read_bytes() for path in sorted((place / "photos").rglob("*.png"))]
    table = {"image": pa.array(images, pa.binary()), "label": [row // 4 for row in range(12)]}
    pq.write_table(pa.table(table), place / "images.parquet")
    result = fit(place / "rows.csv", out=place / "RUN", **extras_walk.SHORT)
    result.of("continuous")[0].hierarchy().save(place / "hierarchy.json")
    return place


@pytest.fixture(scope="module")
def walked(folder):
    """A function that goes through entries without libraries, all in one process."""

    @cache
    def walk(plan):
        command = [sys.executable, str(WALK), str(folder), plan]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=290)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return walk


def names_the_line(ending, extra):
    """Whether something ended by naming the line that installs an extra."""
    kind, message = ending
    is_command = kind == "RuntimeError" and message.startswith("error: ")
    line = f"install it by pip install 'coarse2fine[{extra}]'."
    return (is_command or kind == "MissingExtraError") and message.endswith(line)


def test_every_extra_and_each_of_its_libraries_is_left_out_once():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert extras.keys() - {"all"} == NEEDS.keys()
    for extra, libraries in NEEDS.items():
        assert declared(extra) == libraries.keys()


def test_every_command_is_gone_through():
    assert {words.partition(" --")[0] for words in extras_walk.ARGUMENTS} == COMMANDS.keys()


@pytest.mark.parametrize(("extra", "library", "entry"), CASES)
def test_what_needs_a_missing_library_names_the_line_that_installs_it(
    walked, extra, library, entry
):
    plan = {name: found for libraries in NEEDS.values() for name, found in libraries.items()}
    ending = walked(json.dumps(plan))[library][entry]
    assert ending, f"{entry} does without {library}"
    assert names_the_line(ending, extra), ending


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "library"), sorted({case[:2] for case in CASES}))
def test_nothing_ends_in_another_error(walked, extra, library):
    cheap = [entry for entry in EVERY_ENTRY if entry != "a Dask cluster"]
    if library == "filelock":  # torch depends on it too, and cannot export without it
        cheap.remove("c2f export --onnx")
    endings = walked(json.dumps({library: cheap}))[library]
    for entry, ending in endings.items():
        # A library may stand on another: that of the hub is one that several need.
        is_named = ending and any(names_the_line(ending, other) for other in NEEDS)
        assert not ending or is_named, (entry, ending)
    needing = set(NEEDS[extra][library]) & set(cheap)
    assert {entry for entry in needing if not endings[entry]} == set()
