"""Damage to what a run has on the disk is detected, said, and never becomes a wrong result."""

import json
import random
import shutil
import warnings

import faulty
import killing
import pytest
import torch

from coarse2fine import RunError, RunResult
from coarse2fine.figures.curves import learning_curve
from coarse2fine.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from coarse2fine.runs.restore import load_trained
from coarse2fine.runs.writer import RunWriter

ANEW = "put back what was there, or remove .* and have the same command train it anew"


def flip(path, rng):
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


# --------------------------------------------------------------------------- one checkpoint


def checkpoint(number):
    tensors = {
        "model": {"weight": torch.full((5, 3), float(number)), "steps": torch.tensor(number)},
        "best": {},
        "optimiser": {"weight/exp_avg": torch.arange(15.0)},
    }
    return Checkpoint(number, {"progress": {"epoch": number}, "groups": [{"lr": 0.1}]}, tensors)


@pytest.fixture
def folder(tmp_path):
    for number in (3, 7):
        save_checkpoint(tmp_path / "checkpoint", checkpoint(number))
    return tmp_path / "checkpoint"


FILES = ("state.json", "model.safetensors", "best.safetensors", "optimiser.safetensors")


def assert_the_one_before_is_used(folder):
    with pytest.warns(UserWarning, match="newest checkpoint is damaged: .*000007.*000003"):
        found = load_checkpoint(folder)
    assert (found.number, found.state) == (3, checkpoint(3).state)
    assert torch.equal(found.tensors["model"]["weight"], torch.full((5, 3), 3.0))


@pytest.mark.parametrize("name", FILES)
def test_any_bit_that_flips_is_detected(name, folder):
    path, rng = folder / "000007" / name, random.Random(name)
    whole = path.read_bytes()
    for _ in range(100):
        flip(path, rng)
        assert_the_one_before_is_used(folder)
        path.write_bytes(whole)
    assert load_checkpoint(folder).number == 7


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_anywhere_is_detected(name, folder):
    path = folder / "000007" / name
    whole = path.read_bytes()
    for size in range(0, len(whole), 3):
        cut(path, size)
        assert_the_one_before_is_used(folder)
        path.write_bytes(whole)


@pytest.mark.parametrize("name", FILES)
def test_what_is_longer_missing_or_no_file_is_detected(name, folder):
    path = folder / "000007" / name
    whole = path.read_bytes()
    path.write_bytes(whole + whole)
    assert_the_one_before_is_used(folder)
    path.unlink()
    assert_the_one_before_is_used(folder)
    path.mkdir()
    assert_the_one_before_is_used(folder)


@pytest.mark.parametrize("content", ["[]", "3", '"own"', "null", '{"own": 1}', '{"checksums": {}}'])
def test_a_state_that_is_something_else_is_detected(content, folder):
    (folder / "000007" / "state.json").write_text(content)
    assert_the_one_before_is_used(folder)


def test_after_a_million_epochs_the_newest_is_still_found(folder):
    """After epoch 999,999 the names are longer, and no longer in the order of letters."""
    save_checkpoint(folder, checkpoint(999_999))
    save_checkpoint(folder, checkpoint(1_000_000))
    assert load_checkpoint(folder).number == 1_000_000


# -------------------------------------------------------------------- runs that are under way


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A finished comparison."""
    folder = tmp_path_factory.mktemp("undisturbed")
    faulty.small_outcome(folder)
    return folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A comparison that was killed in the last epoch of its curriculum."""
    folder = tmp_path_factory.mktemp("stopped")
    ended = faulty.run(folder, fit_and_die, folder / "run")
    assert ended.code == -9, ended.err
    run = folder / "run" / "seed-0" / "continuous"
    assert sorted(path.name for path in (run / "checkpoint").iterdir()) == ["000001", "000002"]
    return folder / "run"


def fit_and_die(out):
    killing.die_at(*killing.PLACES["epoch"], 6)
    faulty.small_fit(out)


@pytest.fixture
def taken(stopped, tmp_path):
    """A copy of it, to be damaged."""
    shutil.copytree(stopped, tmp_path / "run")
    return tmp_path / "run"


def fit_with_warnings(out):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        faulty.small_fit(out)


def resumed(out):
    """What comes out where it goes on, in a process of its own."""
    ended = faulty.run(out.parent, fit_with_warnings, out)
    assert ended.code == 0, ended.err
    return killing.outcome(out)


@pytest.mark.parametrize("name", ["state.json", "model.safetensors", "best.safetensors"])
def test_a_run_with_a_damaged_checkpoint_says_so_and_ends_the_same(name, taken, undisturbed):
    path = taken / "seed-0" / "continuous" / "checkpoint" / "000002" / name
    flip(path, random.Random(1))
    ended = faulty.run(taken.parent, fit_with_warnings, taken)
    assert ended.code == 0, ended.err
    assert f"The newest checkpoint is damaged: {path.parent} (" in ended.err
    assert f"Going on from the one before it, {path.parents[1]}/000001." in ended.err
    assert killing.outcome(taken) == killing.outcome(undisturbed)


def test_metrics_after_the_checkpoint_may_be_damaged(taken, undisturbed):
    with (taken / "seed-0" / "continuous" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"epo\n\xff\xfe{"epoch": 3}\n{"ep')
    assert resumed(taken) == killing.outcome(undisturbed)


def refused(taken):
    """What training on says."""
    with pytest.raises(RunError) as caught:
        faulty.small_fit(taken)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_metrics_before_the_checkpoint_may_not(taken, undisturbed):
    path = taken / "seed-0" / "continuous" / "metrics.jsonl"
    whole = path.read_text()
    for damaged in (whole.replace("1", "2", 1), whole[:-30], "", whole.replace("\n", " ", 1)):
        path.write_text(damaged)
        message = refused(taken)
        assert message.startswith(f"{path} has changed since it was written; put back what")
    shutil.rmtree(path.parent)  # as the message says
    assert resumed(taken) == killing.outcome(undisturbed)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"config": 3, "data": {}}', "\0" * 50])
def test_a_damaged_config_of_a_run_names_what_to_remove(content, taken, undisturbed):
    run = taken / "seed-0" / "continuous"
    (run / "config.json").write_text(content)
    message = refused(taken)
    assert message.startswith(f"{run / 'config.json'} is not a run's config (")
    assert message.endswith(f"; remove {run} to have it made anew, or choose another folder.")
    shutil.rmtree(run)
    assert resumed(taken) == killing.outcome(undisturbed)


def test_a_damaged_config_of_a_comparison_can_be_removed_by_itself(taken, undisturbed):
    (taken / "config.json").write_text("{")
    message = refused(taken)
    assert f"remove {taken / 'config.json'} to have it made anew" in message
    (taken / "config.json").unlink()
    assert resumed(taken) == killing.outcome(undisturbed)


@pytest.mark.parametrize("content", ["", "[", '{"format": "coarse2fine hierarchy"}'])
def test_a_damaged_hierarchy_of_a_run_names_what_to_remove(content, taken):
    path = taken / "seed-0" / "continuous" / "hierarchy.json"
    path.write_text(content)
    assert refused(taken).startswith(f"{path} has changed since it was written; put back what")


# ------------------------------------------------------------------------- runs that are done


@pytest.fixture
def done(undisturbed, tmp_path):
    shutil.copytree(undisturbed, tmp_path / "run")
    return tmp_path / "run" / "seed-0" / "continuous"


READERS = {
    "checkpoint/model.safetensors": lambda run: load_trained(run, killing.Net),
    "predictions.safetensors": lambda run: RunResult.load(run).predictions(),
    "hierarchy.json": lambda run: RunResult.load(run).hierarchy(),
    "metrics.jsonl": lambda run: learning_curve(RunResult.load(run)),
    "result.json": RunResult.load,
}


@pytest.mark.parametrize("name", READERS)
def test_any_bit_that_flips_in_a_finished_run_is_detected(name, done):
    path, rng, read = done / name, random.Random(name), READERS[name]
    whole = path.read_bytes()
    read(done)
    for _ in range(40):
        flip(path, rng)
        if name == "result.json" and same_json(path, whole):
            continue  # the bit was in a space
        with pytest.raises(RunError) as caught:
            read(done)
        assert str(path) in str(caught.value)
        assert str(caught.value).endswith("have the same command train it anew.")
        path.write_bytes(whole)
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        cut(path, size)
        if name != "result.json" or size < len(whole) - 1:  # there it is the last line's end
            with pytest.raises(RunError, match=ANEW):
                read(done)


@pytest.mark.parametrize("key", ["checksums", "own"])
def test_a_run_does_not_pass_for_one_of_an_older_version(key, done):
    path = done / "result.json"
    path.write_text(path.read_text().replace(f'"{key}"', f'"{key}s"'))
    with pytest.raises(RunError, match=ANEW):
        RunResult.load(done)


def same_json(path, whole):
    try:
        return json.loads(path.read_bytes()) == json.loads(whole)
    except ValueError:
        return False


def test_what_the_model_needs_from_the_config_is_checked_too(done):
    """While the rest, such as where a model is imported from, may be changed by hand."""
    path = done / "config.json"
    content = json.loads(path.read_text())
    content["command"] = "another"
    path.write_text(json.dumps(content))
    load_trained(done, killing.Net)
    content["data"]["transform"]["padding"] = 3
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match=f"{path} has changed since it was written; {ANEW}"):
        load_trained(done, killing.Net)


def test_runs_from_before_there_were_checksums_can_be_used(done):
    content = json.loads((done / "result.json").read_text())
    old = {name: content[name] for name in ("result", "versions")}
    (done / "result.json").write_text(json.dumps(old))
    for read in READERS.values():
        read(done)


def test_a_training_does_not_build_on_a_damaged_baseline(done, undisturbed):
    flip(done.parent / "baseline" / "checkpoint" / "model.safetensors", random.Random(0))
    shutil.rmtree(done)
    out = done.parents[1]
    message = refused(out)
    assert "baseline/checkpoint/model.safetensors has changed since it was written" in message
    shutil.rmtree(done.parent / "baseline")
    assert resumed(out) == killing.outcome(undisturbed)


def test_metrics_of_a_run_under_way_are_read_as_they_are(taken):
    run = RunWriter(taken / "seed-0" / "continuous", is_writer=False)
    assert [line["epoch"] for line in run.metrics()] == [1, 2]
