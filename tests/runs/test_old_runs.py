"""What coarse2fine 0.1.0 has left: finished runs can be used, unfinished ones are refused."""

import shutil
from pathlib import Path

import pytest

from coarse2fine import RunError, RunResult, fit
from coarse2fine.cli.app import run
from coarse2fine.runs.restore import load_trained

OLD = Path(__file__).parents[1] / "old_runs"
SETTINGS = {
    "model": "net:make",
    "learning_rate": 0.02,
    "epochs": 12,
    "patience": 4,
    "batch_size": 16,
    "curriculum_epochs": 3,
    "accelerator": "cpu",
    "devices": 1,
    "stratify": False,
}


@pytest.fixture(autouse=True)
def _in_a_copy(tmp_path, monkeypatch):
    shutil.copytree(OLD, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("method", ["baseline", "continuous", "staged"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_finished_run_gives_its_result_and_its_model(method, seed):
    path = Path("finished") / f"seed-{seed}" / method
    result = RunResult.load(path)
    trained = load_trained(path, "net:make")
    assert (result.method, result.seed, result.own_epochs) == (method, seed, None)
    assert trained.class_names == ("bus", "car", "cat", "dog", "fox", "van")
    assert bool(result.num_clusters) == (method != "baseline")


def test_it_is_evaluated_on_its_own_test_samples(capsys):
    chosen = ["--model", "net:make", "--method", "continuous", "--seed", "1"]
    code = run(["evaluate", "finished", "animals.csv", *chosen])
    out = capsys.readouterr().out
    accuracy = RunResult.load(Path("finished/seed-1/continuous")).accuracy
    assert code == 0
    assert "36 samples" in out
    assert f"{100 * accuracy:.2f}" in out


@pytest.mark.parametrize(
    "command",
    [
        ["export", "finished", "--model", "net:make", "--out", "net.safetensors"],
        ["report", "finished", "--out", "report.html"],
        ["figure", "curves", "finished", "--out", "curves.svg"],
        ["hierarchy", "finished"],
    ],
)
def test_commands_take_it(command, capsys):
    assert run(command) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", ["finished", "unfinished"])
def test_it_is_not_gone_on_with(name):
    with pytest.raises(RunError, match=f"^{name} was made by coarse2fine 0.1, .* another folder.$"):
        fit("animals.csv", out=name, **SETTINGS)


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "unfinished", "animals.csv"],
        ["export", "unfinished", "--out", "net.safetensors"],
        ["predict", "unfinished", "animals.csv"],
    ],
)
def test_what_is_not_done_cannot_be_used_and_nobody_is_told_to_resume_it(command, capsys):
    assert run(command) == 2
    assert capsys.readouterr().err == (
        "error: unfinished/seed-0/baseline has no result.json: it is not a run, or not done; "
        "coarse2fine 0.1 began it, with other random numbers, so it cannot be resumed: train again "
        "in another folder.\n"
    )


def test_a_run_by_itself_is_not_gone_on_with_either():
    Path("unfinished/config.json").unlink()
    with pytest.raises(RunError, match="baseline was made by coarse2fine 0.1, which drew other"):
        fit("animals.csv", out="unfinished", **SETTINGS)
