"""The callback and early stopping in real Lightning, beside a loop in plain PyTorch."""

import csv
import importlib.util
import sys
import zipfile
from pathlib import Path

import lightning.pytorch
import pytest
import pytorch_lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder
from lightning.pytorch.loggers import CSVLogger
from lightning_tiny import (
    HIERARCHY,
    LEVELS,
    Tiny,
    assert_same_weights,
    fit,
    ignores_warnings,
    make_callback,
    make_loader,
    make_net,
    module_class,
    plain_loop,
)
from safetensors.torch import save_file
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

from coarse2fine import CoarseToFineLoss, Hierarchy, MissingExtraError, class_distances
from coarse2fine.integrations import lightning as integration
from coarse2fine.integrations.lightning import CoarseToFineCallback, CoarseToFineEarlyStopping

pytestmark = ignores_warnings


def levels_by_epoch(module):
    return [level for _, level in sorted(set(module.trained))]


# ------------------------------------------------------------------------------ training


@pytest.mark.parametrize("library", [lightning.pytorch, pytorch_lightning])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_it_trains_as_a_plain_loop_does(library, accumulate):
    module = module_class(library)()
    fit(module, make_callback(), library=library, accumulate_grad_batches=accumulate)
    assert_same_weights(module.net, plain_loop(LEVELS, accumulate=accumulate))


def test_without_the_callback_the_same_module_is_the_baseline():
    module = Tiny()
    fit(module)
    assert_same_weights(module.net, plain_loop([2] * 6))


def test_a_length_is_shared_out_among_the_levels():
    module, callback = Tiny(), CoarseToFineCallback(HIERARCHY, epochs=3)
    fit(module, callback)
    assert levels_by_epoch(module) == [0, 1, 2, 2, 2, 2]
    assert callback.curriculum.is_finest


def test_the_level_of_each_epoch_is_logged(tmp_path):
    trainer = fit(Tiny(), make_callback(), logger=CSVLogger(tmp_path), log_every_n_steps=1)
    with (Path(trainer.logger.log_dir) / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["curriculum_level"]]
    logged = [(int(row["epoch"]), float(row["curriculum_level"])) for row in rows]
    assert logged == list(enumerate(LEVELS))


def test_validation_is_cross_entropy_on_the_classes_at_every_level():
    module, callback = Tiny(), make_callback(boundaries=[2, 7])
    with pytest.warns(UserWarning, match="finest level"):
        trainer = fit(module, callback, num_sanity_val_steps=2)
    assert module.criterion.level == 1
    (metrics,) = trainer.validate(module, make_loader())
    losses, expected = torch.tensor(module.validated).T
    assert len(losses) == 2 + 6 * 4 + 4
    assert torch.equal(losses, expected)
    assert metrics["val_loss"] == pytest.approx(expected[-4:].mean().item())


# What torch itself warns of while it compiles.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_a_compiled_module_trains_alike_without_a_recompilation_for_each_level():
    class Bare(Tiny):
        def training_step(self, batch):
            return self.criterion(self.net(batch[0]), batch[1])

    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")
    module = Bare()
    fit(torch.compile(module, backend=counter), make_callback(), limit_val_batches=0)
    for one, two in zip(module.net.parameters(), plain_loop(LEVELS).parameters(), strict=True):
        torch.testing.assert_close(one, two)
    assert counter.frame_count == 1


def test_a_search_for_the_learning_rate_comes_before_and_changes_nothing(tmp_path):
    class Searching(Tiny):
        lr = 0.05

    finder = LearningRateFinder(num_training_steps=8, update_attr=False)
    module = Searching()
    fit(module, finder, make_callback(), default_root_dir=tmp_path)
    assert_same_weights(module.net, plain_loop(LEVELS))


def test_the_criterion_may_be_made_when_the_trainer_sets_up():
    class Late(Tiny):
        def setup(self, **_):
            self.criterion = CoarseToFineLoss()

    module = Late()
    del module.criterion
    fit(module, make_callback())
    assert_same_weights(module.net, plain_loop(LEVELS))


def test_of_several_criteria_the_named_one_has_the_curriculum():
    class Two(Tiny):
        def __init__(self):
            super().__init__()
            self.others = nn.ModuleDict({"aid": CoarseToFineLoss()})

    module = Two()
    fit(module, make_callback(criterion="others.aid"))
    assert module.criterion.hierarchy is None
    assert module.others["aid"].hierarchy == HIERARCHY


def test_training_that_ends_at_a_coarse_level_is_warned_of():
    with pytest.warns(UserWarning, match="max_epochs is 4, but .*only after 4; raise max_epochs"):
        fit(Tiny(), make_callback(), max_epochs=4)
    fit(Tiny(), make_callback(), max_epochs=5)
    fit(Tiny(), make_callback(), fast_dev_run=True)


# ------------------------------------------------------------- where the hierarchy is from


@pytest.fixture
def baseline(tmp_path):
    """A trained module and its checkpoint."""
    module = Tiny()
    fit(module).save_checkpoint(tmp_path / "baseline.ckpt")
    return module, tmp_path / "baseline.ckpt"


def hierarchy_in_training(source, module=None, **settings):
    callback = CoarseToFineCallback(source, epochs=5, **settings)
    fit(module or Tiny(), callback)
    return callback.curriculum.criterion.hierarchy


def test_every_source_gives_the_baselines_hierarchy(baseline, tmp_path):
    module, checkpoint = baseline
    expected = Hierarchy.from_embeddings(module.net[2].weight.detach())
    expected.save(tmp_path / "saved.json")
    save_file(dict(module.net.state_dict()), tmp_path / "w.safetensors")
    distances = class_distances(module.net[2].weight.detach())
    files = (tmp_path / "saved.json", tmp_path / "w.safetensors", checkpoint, str(checkpoint))
    for source in (expected, module, distances, *files):
        assert hierarchy_in_training(source) == expected
    other = hierarchy_in_training(checkpoint, head="net.0", module=WithClasses(8))
    assert other == Hierarchy.from_embeddings(module.net[0].weight.detach())


class WithClasses(Tiny):
    """As many classes as asked for, of which the data has six."""

    def __init__(self, classes):
        super().__init__(nn.Sequential(*make_net()[:2], nn.Linear(8, classes)))


def test_a_checkpoint_with_a_normed_final_layer_serves_too(tmp_path):
    def normed():
        net = make_net()
        nn.utils.parametrizations.weight_norm(net[2])
        return Tiny(net)

    module = normed()
    fit(module).save_checkpoint(tmp_path / "baseline.ckpt")
    expected = Hierarchy.from_embeddings(module.net[2].weight.detach())
    assert hierarchy_in_training(tmp_path / "baseline.ckpt", normed()) == expected


def test_making_the_hierarchy_leaves_the_new_module_as_it_is(baseline):
    module, callback = Tiny(), make_callback(baseline[1], boundaries=None, epochs=3)
    fit(module, callback)
    other = Tiny()
    callback = CoarseToFineCallback(callback.curriculum.criterion.hierarchy, epochs=3)
    fit(other, callback)
    assert_same_weights(module, other)


# -------------------------------------------------------------------------- early stopping


@pytest.mark.parametrize("library", [lightning.pytorch, pytorch_lightning])
@pytest.mark.parametrize("at_validation", [True, False])
def test_early_stopping_counts_from_the_finest_level_on(library, at_validation):
    stop = CoarseToFineEarlyStopping(
        "val_loss", patience=2, mode="max", check_on_train_epoch_end=not at_validation
    )
    module = module_class(library)()
    trainer = fit(module, stop, make_callback(), max_epochs=20, library=library)
    # The loss falls, so with mode="max" epoch 4, the first that counts, is the best.
    assert (trainer.current_epoch, stop.wait_count) == (7, 2)
    assert stop.stopped_epoch == 6


def test_early_stopping_of_a_baseline_is_lightnings():
    stops = []
    for kind in (CoarseToFineEarlyStopping, EarlyStopping):
        stop = kind("val_loss", patience=2, mode="max")
        fit(Tiny(), stop, max_epochs=20)
        stops.append((stop.stopped_epoch, stop.best_score))
    assert stops[0] == stops[1]
    assert stops[0][0] == 2


# ---------------------------------------------------------------------------------- errors


class Unfit(Tiny):
    """Other losses than one `CoarseToFineLoss` called criterion."""

    def __init__(self, **losses):
        super().__init__()
        del self.criterion
        for name, loss in losses.items():
            setattr(self, name, loss)


@pytest.mark.parametrize(
    ("losses", "name", "message"),
    [
        ({"loss": nn.CrossEntropyLoss()}, None, "Unfit has no CoarseToFineLoss; set self.crit"),
        ({"a": CoarseToFineLoss(), "b": CoarseToFineLoss()}, None, "'a', 'b'; choose one by crit"),
        ({"a": CoarseToFineLoss()}, "b", "no CoarseToFineLoss called 'b', but 'a'"),
    ],
)
def test_a_criterion_that_cannot_be_told_is_an_error(losses, name, message):
    module = Unfit(**losses)
    with pytest.raises(ValueError, match=message):
        fit(module, make_callback(criterion=name))
    assert module.trained == []


def test_a_checkpoint_that_does_not_fit_is_an_error(baseline):
    _, checkpoint = baseline
    with pytest.raises(
        ValueError, match=r"baseline.ckpt holds 'net.2.weight' .*\(6, 8\).*\(7, 8\)"
    ):
        fit(WithClasses(7), make_callback(checkpoint))
    renamed = Tiny(nn.Sequential(nn.Identity(), *make_net()))
    with pytest.raises(ValueError, match=r"baseline.ckpt has no 'net.3.weight'.*head="):
        fit(renamed, make_callback(checkpoint))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"state_dict": {}, "hyper_parameters": {"folder": Path()}}, "Python objects.*load_from"),
        ({"weight": torch.zeros(2)}, "it has no 'state_dict'"),
        (torch.zeros(2), "it has no 'state_dict'"),
    ],
)
def test_a_file_that_is_no_safe_lightning_checkpoint_is_an_error(tmp_path, content, message):
    torch.save(content, tmp_path / "odd.ckpt")
    with pytest.raises(ValueError, match=f"odd.ckpt .*{message}"):
        fit(Tiny(), make_callback(tmp_path / "odd.ckpt"))


def test_a_file_that_is_missing_or_broken_is_an_error(baseline, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*none.ckpt"):
        fit(Tiny(), make_callback(tmp_path / "none.ckpt"))
    whole = baseline[1].read_bytes()
    (tmp_path / "half.ckpt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="half.ckpt is not a Lightning checkpoint, or not all"):
        fit(Tiny(), make_callback(tmp_path / "half.ckpt"))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("text", "text")
    with pytest.raises(ValueError, match="other.zip is not a Lightning checkpoint: "):
        fit(Tiny(), make_callback(tmp_path / "other.zip"))


def test_a_torch_that_reads_no_checkpoint_is_the_reason_that_is_given(baseline, monkeypatch):
    callback = make_callback(baseline[1])
    monkeypatch.setattr(torch, "__version__", "2.9.1")
    with pytest.raises(ValueError, match=r"as torch 2.9.1 has known holes .*update it to 2.10"):
        callback._make_hierarchy(Tiny())


def test_a_source_of_another_type_is_an_error():
    with pytest.raises(TypeError, match="the hierarchy must be a Hierarchy.*Got list"):
        fit(Tiny(), make_callback([[0, 0, 1]]))


# --------------------------------------------------------------------- the library's two names


def imported_without(monkeypatch, *names):
    """The integration's module, imported once more where some libraries are missing."""
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)
    name = "coarse2fine.integrations.lightning_again"
    spec = importlib.util.spec_from_file_location(name, integration.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pytorch_lightning_alone_will_do(monkeypatch):
    again = imported_without(monkeypatch, "lightning.pytorch")
    assert issubclass(again.CoarseToFineCallback, pytorch_lightning.Callback)
    assert issubclass(again.CoarseToFineEarlyStopping, pytorch_lightning.callbacks.EarlyStopping)


def test_without_either_library_the_error_says_what_to_install(monkeypatch):
    missing = ("lightning.pytorch", "pytorch_lightning.callbacks")
    with pytest.raises(MissingExtraError, match=r"pip install 'coarse2fine\[lightning\]'"):
        imported_without(monkeypatch, *missing)
