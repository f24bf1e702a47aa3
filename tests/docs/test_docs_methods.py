"""The pages on methods, held against the code: own-method.md as it stands, and the cards."""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from pages import DOCS, blocks_of, read
from safetensors.torch import load_file

from coarse2fine import Hierarchy, fit
from coarse2fine.data import Batch
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.methods import METHODS, build_method, find_method
from coarse2fine.methods.base import Plan
from coarse2fine.training.progress import Watcher

OWN_PAGE = read(DOCS / "own-method.md")
PAPER_PAGE = read(DOCS / "paper.md")
CARDS = "\n".join(map(read, DOCS.glob("method-card*.md")))
IN_COMMANDS = r"--set (\S+)\.(\w+)=(\S+)"
FADING, HARDEST = "my_methods:Fading", "my_methods:Hardest"


@pytest.fixture(autouse=True)
def _own_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's file my_methods.py is where the user is."""
    blocks = [block.code for block in blocks_of(OWN_PAGE) if block.title == "my_methods.py"]
    (tmp_path / "my_methods.py").write_text("\n\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_methods", None)


def trained(path, watcher=None, **settings):
    """Three epochs on a small table."""
    rng = torch.Generator().manual_seed(0)
    targets = torch.arange(60) % 4
    inputs = torch.randn(4, 5, generator=rng)[targets] + torch.randn(60, 5, generator=rng)
    return fit(
        (inputs, targets),
        epochs=3,
        batch_size=16,
        accelerator="cpu",
        devices=1,
        out=path,
        watcher=watcher,
        checkpoint_seconds=0.0,
        **settings,
    )


def kept(run, name):
    return load_file(run.path / "checkpoint" / f"{name}.safetensors")


def batch(targets, share=1.0):
    rows = torch.arange(len(targets))
    return Batch(torch.zeros(len(targets), 1), torch.tensor(targets), rows, len(targets), share)


# -------------------------------------------------------------------------- own-method.md


def test_the_methods_of_the_page_are_trained_and_compared():
    result = trained("out", methods=(FADING, HARDEST))
    assert result.methods == ("baseline", "my_methods.Fading", "my_methods.Hardest")
    assert [run.epochs for run in result.runs] == [3, 3, 3]
    _, fading, hardest = result.runs
    assert not (fading.path / "checkpoint" / "method.safetensors").exists()
    assert kept(hardest, "method").keys() == {"recent"}
    assert not torch.equal(kept(hardest, "method")["recent"], torch.ones(4))


def test_the_settings_of_the_page_reach_its_method():
    (name, setting, value), *others = re.findall(IN_COMMANDS, OWN_PAGE)
    assert (name, setting, others) == (FADING, "start", [])
    assert f'method_settings={{"{name}.{setting}": {value}}}' in OWN_PAGE
    method = build_method(
        FADING, Plan(3, epochs=4, patience=0), {f"{name}.{setting}": float(value)}
    )
    logits, targets = torch.randn(5, 3), [0, 1, 2, 1, 0]
    for epoch, smoothing in enumerate([0.2, 0.15, 0.1, 0.05]):
        method.begin_epoch(0, epoch, lambda: torch.zeros(5))
        expected = F.cross_entropy(logits, torch.tensor(targets), label_smoothing=smoothing)
        torch.testing.assert_close(method(logits, batch(targets)), expected)


def test_without_smoothing_the_method_of_the_page_is_plain_training():
    settings = {f"{FADING}.start": 0.0}
    baseline, fading = trained("out", methods=(FADING,), method_settings=settings).runs
    plain = kept(baseline, "model")
    assert all(torch.equal(weight, plain[name]) for name, weight in kept(fading, "model").items())


def test_the_state_of_the_page_s_method_is_that_of_all_processes():
    method = build_method(HARDEST, Plan(2, epochs=1, patience=0))
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
    first, second = F.cross_entropy(logits, torch.tensor([0, 0]), reduction="none").tolist()
    loss = method(logits[:1], batch([0]))
    assert loss.item() == pytest.approx(first)  # all classes still weigh the same
    method(logits, batch([1, 1], share=0.0))  # another process's, without effect
    elsewhere = torch.tensor([[second, 0.0], [1.0, 0.0]])
    method.end_batch(lambda noted: noted + elsewhere)
    recent = 0.9 + 0.1 * (first + second) / 2
    assert method.recent.tolist() == pytest.approx([recent, 1.0])
    mean = (recent + 1) / 2
    assert method(logits[:1], batch([0])).item() == pytest.approx(first * recent / mean)


class InterruptionError(Exception):
    """Stands for whatever ends a training early."""


class Interrupting(Watcher):
    """Ends a training in its second epoch, after the checkpoint of the first."""

    def epoch(self, metrics):
        if metrics["epoch"] == 2:
            raise InterruptionError


def test_the_page_s_method_goes_on_to_the_same_numbers():
    settings = {"methods": (HARDEST,), "baseline": False}
    with pytest.raises(InterruptionError):
        trained("stopped", Interrupting(), **settings)
    (resumed,), (whole,) = (trained(path, **settings).runs for path in ("stopped", "whole"))
    for name in ("model", "method"):
        expected = kept(whole, name)
        assert all(torch.equal(value, expected[key]) for key, value in kept(resumed, name).items())


# ------------------------------------------------------------------------------ the cards


def own_defaults(method: str) -> dict[str, float]:
    """The settings that a method adds to those of the method it is made from."""
    parameters = inspect.signature(vars(find_method(method))["__init__"]).parameters.values()
    return {f"{method}.{p.name}": p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_the_cards_have_every_setting_with_its_default():
    rows = re.findall(r"^\| `([\w-]+\.\w+)` \| (\S+) \|", CARDS, re.MULTILINE)
    defaults = [own_defaults(method) for method in METHODS]
    assert {name: float(default) for name, default in rows} == {
        name: default for own in defaults for name, default in own.items()
    }


def test_the_cards_set_only_what_can_be_set():
    in_commands = re.findall(IN_COMMANDS, CARDS)
    in_python = re.findall(r'"([\w-]+)\.(\w+)": ([\d.]+)', CARDS)
    names = {name for name, _, _ in in_commands}
    assert names == {"spl", "dp-li", "nbdt", "hxe", "soft-labels", "hace"}
    assert set(in_python) < set(in_commands)  # settings.md says how both are written
    hierarchy = Hierarchy.from_levels([[0, 0, 1]])
    plan = Plan(3, 1, 0, hierarchy, num_samples=4, class_vectors=torch.eye(3).numpy())
    for name, setting, value in in_commands:  # a setting that is unknown or too small is refused
        build_method(name, plan, {f"{name}.{setting}": json.loads(value)})


def test_the_card_s_lines_predict_as_the_tree_does():
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(7, 4, generator=rng).numpy()
    method = build_method("nbdt", Plan(7, epochs=1, patience=0, class_vectors=vectors))
    logits = torch.randn(20, 7, generator=rng)
    lines = re.search(r"^forks = .*?^predicted = .*?$", CARDS, re.DOTALL | re.MULTILINE)
    assert lines is not None
    found = {"logits": logits, "members": method.state_dict()["tree.members"]}
    exec(lines[0], found)
    assert torch.equal(found["predicted"], method.decide(logits)["soft"])
    assert torch.allclose(found["log_probabilities"].exp().sum(1), torch.ones(20))


def test_the_experiment_of_the_page_on_the_paper_has_its_trainings(tmp_path):
    (code,) = [block.code for block in blocks_of(PAPER_PAGE) if block.title == "my_experiments.py"]
    (tmp_path / "my_experiments.py").write_text(code, encoding="utf-8")
    wanted = Reproduction("my_experiments:LINKAGES", seeds=(0, 1), only=("*-600",))
    names = {task.name for task in wanted.tasks}
    assert names == {"baseline", "continuous", "continuous-average", "multitask"}
    assert len(wanted.tasks) == 8
