"""The paper's large models train through the levels, and go on after a kill."""

import multiprocessing

import killing
import pytest
import torch
from safetensors.torch import load_file

from coarse2fine import fit
from coarse2fine.runs.directory import Run

MODELS = ("resnet18", "resnet50", "wrn-28-10")


def train(out, model, epoch_of_death=None):
    torch.set_num_threads(1)
    if epoch_of_death is not None:
        killing.die_at(*killing.PLACES["epoch"], epoch_of_death)
    fit(
        "shapes:75",
        image_size=8,
        model=model,
        out=out,
        epochs=3,
        curriculum_epochs=2,
        batch_size=20,
        accelerator="cpu",
        checkpoint_seconds=0.0,
    )


def run(*args):
    process = multiprocessing.get_context("spawn").Process(target=train, args=args)
    process.start()
    return killing.exit_code(process, seconds=400)


def weights(out):
    paths = sorted(out.rglob("model.safetensors"))
    return {f"{path.parts[-3]}.{k}": v for path in paths for k, v in load_file(path).items()}


@pytest.mark.slow
@pytest.mark.timeout(1200)  # for three trainings
@pytest.mark.parametrize("model", MODELS)
def test_a_large_model_trains_and_a_kill_loses_nothing(model, tmp_path):
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    assert run(whole, model) == 0
    assert run(torn, model, 5) == -9  # in the curriculum's second epoch
    assert run(torn, model) == 0
    expected, found = weights(whole), weights(torn)
    assert expected.keys() == found.keys()
    assert all(torch.equal(value, found[name]) for name, value in expected.items())
    lines = Run(whole / "seed-0" / "continuous").metrics()
    levels = [line["level"] for line in lines]
    assert levels == sorted(levels)
    assert levels[0] == 0 < levels[-1]
