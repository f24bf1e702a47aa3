"""Hostile files run nothing, whatever reads them, and are refused in one sentence."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from make_files import MODELS, write_all
from pickles import attacks

from coarse2fine import RunError
from coarse2fine.checkpoints import read_state_dict

HERE = Path(__file__).parent
DOCUMENTED = {"ValueError", "TypeError", "FileNotFoundError", "OSError", "RunError", "CommandError"}
# What holds nothing but a pickle, so that it cannot be read as what it poses as.
REFUSED = ("pickle", "cifar", "checkpoint", "matrix", "hub")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile").resolve()


@pytest.fixture(scope="module")
def outcomes(folder):
    """What became of every file by everything that reads such files, in a process of its own."""
    files = write_all(folder)
    files["naive"] = [path for path in files["pickle"] if path.stem in attacks(folder)]
    given = {kind: [str(path) for path in paths] for kind, paths in files.items()}
    (folder / "files.json").write_text(json.dumps(given))
    (folder / "out").mkdir()
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",  # what is written is noted
        "HF_HOME": str(folder / "out"),
        "HF_HUB_OFFLINE": "1",
        "MPLCONFIGDIR": str(folder / "out"),
        "TMPDIR": str(folder / "out"),
    }
    command = [sys.executable, HERE / "watched.py", folder, folder / "files.json"]
    subprocess.run(
        [*map(str, command), str(folder / "found.json")],
        env=environment, cwd=folder / "out", check=True, timeout=200,
    )  # fmt: skip
    found = json.loads((folder / "found.json").read_text())
    return {tuple(key.split(" | ")): outcome for key, outcome in found.items()}


def of(outcomes, *kinds):
    return {key: outcome for key, outcome in outcomes.items() if key[0] in kinds}


def test_the_attacks_work_on_who_loads_them_as_usual(outcomes):
    naive = of(outcomes, "naive")
    assert len(naive) == len(attacks(Path("unused")))
    assert [key for key, outcome in naive.items() if not outcome["ran"]] == []
    seen = {event.split()[0] for outcome in naive.values() for event in outcome["events"]}
    assert {"os.system", "subprocess.Popen", "pickle.find_class", "exec"} <= seen


def test_nothing_is_run_started_connected_or_written(outcomes, folder):
    harmed = {
        key: outcome["events"]
        for key, outcome in outcomes.items()
        if key[0] != "naive" and (outcome["ran"] or outcome["events"])
    }
    assert harmed == {}
    assert len(outcomes) > 600
    assert not (folder / "evil").exists()


def test_no_file_takes_much_memory(outcomes):
    assert [key for key, outcome in outcomes.items() if outcome["megabytes"] > 300] == []


def test_every_refusal_is_a_documented_error(outcomes):
    found = {outcome["error"] for key, outcome in outcomes.items() if key[0] != "naive"}
    assert found - {None} <= DOCUMENTED


def test_what_is_only_a_pickle_is_refused_by_its_name(outcomes, folder):
    for (kind, reader, path), outcome in of(outcomes, *REFUSED).items():
        if (reader, Path(path).stem) == ("plain_values", "a memo far away"):  # which is just {}
            continue
        place = (kind, reader, path)
        assert outcome["error"], place
        assert path.rpartition(" zipped")[0] in outcome["message"], place
        assert str(folder) in outcome["message"], place


def test_cifar_is_refused_by_its_checksum_and_without_it_by_what_it_asks_for(outcomes):
    by_checksum = outcomes["cifar", "load_cifar", "cifar/cifar10/Popen"]["message"]
    assert "is not the official file: md5" in by_checksum
    by_content = outcomes["cifar", "without checksums", "cifar/cifar10/Popen"]["message"]
    asked = "batches.meta is not a pickle of plain values (it asks for subprocess.Popen)"
    assert asked in by_content
    packed = outcomes["cifar", "without checksums", "cifar/cifar100/packed"]["message"]
    assert "meta is not a pickle of plain values (it asks for posix.system)" in packed


def test_a_checkpoint_is_read_as_tensors_alone(outcomes):
    for suffix in ("True", "False"):
        message = outcomes["checkpoint", "a named head", f"checkpoints/head {suffix}.pt"]["message"]
        assert "not readable as tensors alone; save model.state_dict() and nothing else" in message
    repeated = outcomes["checkpoint", "read_class_vectors", "checkpoints/repeated.pt"]["message"]
    assert repeated.endswith("fc.weight must be a plain tensor with all of its entries stored.")


@pytest.mark.parametrize(
    "reader",
    ["load_trained", "RunResult.model", "c2f evaluate", "c2f export", "within", "c2f train"],
)
def test_a_model_that_a_run_names_is_imported_only_where_the_user_names_it_too(outcomes, reader):
    for number, model in enumerate(MODELS):
        message = outcomes["model", reader, f"foreign/run-{number}"]["message"]
        name = model.partition("#")[0]
        assert f"its model {name!r} is code from outside this package" in message
        asked = "package.module:callable" if name.startswith("__main__") else name
        assert f"if you trust it, name it: --model {asked}, in Python {asked!r}." in message


def test_whoever_trusts_a_model_and_names_it_gets_it(tmp_path, monkeypatch):
    from made_runs import make_run

    code = "import torch\nclass Net(torch.nn.Linear):\n    def __init__(self, num_classes):\n"
    (tmp_path / "trusted.py").write_text(code + "        super().__init__(3, num_classes)\n")
    monkeypatch.chdir(tmp_path)
    model = "trusted:Net"
    run = make_run(
        tmp_path / "run", method="baseline", predictions=[0, 1], targets=[0, 1], model=model
    )
    with pytest.raises(RunError, match="its model 'trusted:Net' is code from outside"):
        run.model()
    assert "trusted" not in sys.modules
    with pytest.raises(RunError, match="cannot be made again .*state_dict for Net"):
        run.model("trusted:Net")
    assert "trusted" in sys.modules


def test_text_that_looks_like_code_is_data(outcomes):
    for kind, reader, path in (
        ("data", "load_data", "data/formulas.csv"),
        ("data", "load_data", "data/extension.parquet"),
        ("other", "read_hierarchy", "others/taxonomy.csv"),
    ):
        assert outcomes[kind, reader, path]["error"] is None


@pytest.mark.parametrize("version", ["2.6.0", "2.9.1+cu126"])
def test_a_torch_that_can_be_made_to_run_code_reads_no_checkpoint(version, tmp_path, monkeypatch):
    torch.save({"head.weight": torch.ones(3, 2)}, tmp_path / "weights.pt")
    assert read_state_dict(tmp_path / "weights.pt").keys() == {"head.weight"}
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(ValueError, match=rf"torch {re.escape(version)} has known holes .*update"):
        read_state_dict(tmp_path / "weights.pt")
