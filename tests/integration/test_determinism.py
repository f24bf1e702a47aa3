"""The same seed gives the same bits: in another process, with other readers, in another order."""

import os
import subprocess
import sys
from pathlib import Path

import image_comparison
import killing
import pytest

SCRIPT = Path(image_comparison.__file__)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    image_comparison.draw(folder)
    return folder


def outcome(images, out, *, workers, hash_seed):
    """What comes out of a new process, in which sets and dicts of strings go another way round."""
    command = [sys.executable, SCRIPT, images, out, str(workers)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, timeout=240)
    return killing.outcome(out)


@pytest.mark.slow
def test_every_method_gives_the_same_bits_with_0_and_4_data_workers(images, tmp_path):
    alone = outcome(images, tmp_path / "alone", workers=0, hash_seed=1)
    shared = outcome(images, tmp_path / "shared", workers=4, hash_seed=2)
    methods = {name.split("/")[1] for name in alone if name.endswith("model.safetensors")}
    assert methods == {"baseline", "baseline-4", *killing.METHODS}  # staged took 4 epochs
    assert shared == alone


def test_another_seed_gives_other_bits_for_every_method(images, tmp_path):
    """So that the test above could fail."""
    found = killing.outcome(image_comparison.compare(images, tmp_path, 0, seeds=(0, 1)).path)
    for method in ("baseline", *killing.METHODS):
        one, other = (
            found[f"seed-{seed}/{method}/checkpoint/model.safetensors"] for seed in (0, 1)
        )
        assert one != other
