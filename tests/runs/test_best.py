"""Which model to use is decided by validation accuracy alone, and said with its doubts."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from coarse2fine import Hierarchy, RunError, fit
from coarse2fine.runs.best import choose, find_best, keep_best
from coarse2fine.runs.result import Result, RunResult


def run(method, val, seed=0, test=0.5, epochs=20, best_epoch=10, samples=1000):
    return RunResult(
        method=method,
        seed=seed,
        accuracy=test,
        val_accuracy=val,
        best_epoch=best_epoch,
        epochs=epochs,
        seconds=1.0,
        levelled_off=True,
        curriculum_epochs=None,
        num_clusters=(),
        path=Path("nowhere"),
        val_samples=samples,
    )


def runs(**accuracies):
    """Return runs of methods, one for each of the validation accuracies of its seeds."""
    return [
        run(method, value, seed)
        for method, values in accuracies.items()
        for seed, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("found", "method", "seed"),
    [
        (runs(baseline=[0.3], continuous=[0.4]), "continuous", 0),
        (runs(baseline=[0.4], continuous=[0.3]), "baseline", 0),
        (runs(baseline=[0.4], continuous=[0.4]), "baseline", 0),  # as good, and simpler
        (runs(continuous=[0.4], baseline=[0.4]), "baseline", 0),
        (runs(baseline=[0.3], continuous=[0.4], staged=[0.5]), "staged", 0),
        # By the mean over the seeds, not by the single best run.
        (runs(baseline=[0.5, 0.1], continuous=[0.4, 0.4]), "continuous", 0),
        (runs(baseline=[0.3, 0.2], continuous=[0.3, 0.4]), "continuous", 1),
        (runs(continuous=[0.3, 0.4]), "continuous", 1),
    ],
)
def test_the_method_that_validates_best_is_chosen_and_its_best_seed(found, method, seed):
    best = choose(found).run
    assert (best.method, best.seed) == (method, seed)


def test_test_accuracies_have_no_say():
    found = runs(baseline=[0.3, 0.31, 0.32], continuous=[0.4, 0.42, 0.41], staged=[0.1, 0.2, 0.3])
    before = choose(found)
    for worst in range(len(found)):
        changed = [replace(each, accuracy=float(i != worst)) for i, each in enumerate(found)]
        after = choose(changed)
        assert (after.run.method, after.run.seed) == (before.run.method, before.run.seed)
        assert str(after) == str(before)


def test_only_seeds_that_all_methods_have_are_compared():
    found = [*runs(baseline=[0.3, 0.9], continuous=[0.4])]
    assert choose(found).run.method == "continuous"


def test_without_validation_samples_nothing_speaks_for_a_model():
    choice = choose([run("baseline", None), run("continuous", None)])
    assert choice.run.method == "continuous"
    assert "there are no validation samples to choose by" in str(choice)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            runs(baseline=[0.364], continuous=[0.385]),
            (
                "use continuous: it validates 2.10 points better than the baseline (38.50 and "
                "36.40 %). With one seed this may be chance; three or more would tell."
            ),
        ),
        (
            runs(baseline=[0.385], continuous=[0.364], staged=[0.380]),
            (
                "use the baseline: it validates 0.50 points better than staged (38.50 and "
                "38.00 %). With one seed this may be chance; three or more would tell."
            ),
        ),
        (
            runs(baseline=[0.385], continuous=[0.385]),
            (
                "use the baseline: continuous validates no better (38.50 and 38.50 %). With one "
                "seed this may be chance; three or more would tell."
            ),
        ),
        (
            runs(baseline=[0.2, 0.3, 0.4], continuous=[0.3, 0.41, 0.52]),
            (
                "use continuous: it validates 11.00 points better than the baseline (41.00 and "
                "30.00 %, mean of 3 seeds); of its seeds, 2 validates best."
            ),
        ),
        (
            runs(continuous=[0.4]),
            "use continuous, all that was trained: it validates at 40.00 %.",
        ),
    ],
)
def test_the_sentence_names_the_model_and_what_speaks_for_it(found, sentence):
    assert str(choose(found)) == sentence


def test_two_seeds_are_not_sure_though_they_agree():
    choice = choose(runs(baseline=[0.3, 0.3], continuous=[0.4, 0.4]))
    assert choice.doubts == ("Two seeds are too few to rule out chance; three or more would tell.",)


def test_an_interval_that_includes_zero_is_said():
    (doubt,) = choose(runs(baseline=[0.3, 0.3, 0.3], continuous=[0.4, 0.2, 0.4])).doubts
    assert doubt.startswith("The 95 % interval of the difference, ")
    assert doubt.endswith(", includes 0, so it may be chance.")


def test_few_validation_samples_are_said():
    few = [replace(each, val_samples=80) for each in runs(baseline=[0.3], continuous=[0.4])]
    assert "There are only 80 validation samples, each of them 1.25 points." in choose(few).doubts
    unknown = [replace(each, val_samples=None) for each in few]
    assert len(choose(unknown).doubts) == 1


@pytest.mark.parametrize(("best_epoch", "is_early"), [(1, True), (2, True), (3, False)])
def test_a_baseline_that_is_best_at_its_start_is_said(best_epoch, is_early):
    found = [run("baseline", 0.3, best_epoch=best_epoch), run("continuous", 0.4, best_epoch=1)]
    said = f"was best at epoch {best_epoch} of 20, so it overfits early"
    assert any(said in doubt for doubt in choose(found).doubts) == is_early


def test_a_result_says_it_in_its_first_line_and_as_plain_values():
    result = Result(tuple(runs(baseline=[0.3], continuous=[0.4])), (), Path("nowhere"))
    assert str(result).splitlines()[0] == str(result.choice)
    assert result.best.method == "continuous"
    assert result.to_dict()["best"] == {
        "method": "continuous",
        "seed": 0,
        "val_accuracy": 0.4,
        "accuracy": 0.5,
        "why": str(result.choice),
    }


# ------------------------------------------------------------------------- run directories


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    path = tmp_path_factory.mktemp("comparison") / "run"
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(240, 6, generator=generator)
    targets = (inputs @ torch.randn(6, 4, generator=generator)).argmax(1)
    return fit(
        (inputs, targets),
        hierarchy=Hierarchy.from_levels([[0, 0, 1, 1]]),
        epochs=4,
        curriculum_epochs=2,
        seeds=(0, 1),
        out=path,
    )


def test_a_comparison_leaves_its_best_run_as_a_run_of_its_own(comparison):
    best = RunResult.load(comparison.path / "best")
    assert replace(best, path=comparison.best.path) == comparison.best
    weights = best.model().state_dict()
    assert all(torch.equal(weights[n], x) for n, x in comparison.best.model().state_dict().items())
    assert not list((comparison.path / "best").rglob(".*"))


def test_no_test_label_has_a_say_in_training_or_choice(tmp_path):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(300, 6, generator=generator)
    targets = (inputs @ torch.randn(6, 4, generator=generator)).argmax(1)

    def trained(test_targets, out):
        train, test = (inputs[:200], targets[:200]), (inputs[200:], test_targets)
        return fit(train, test, epochs=6, batch_size=32, seeds=(0, 1), out=tmp_path / out)

    true, wrong = trained(targets[200:], "true"), trained(3 - targets[200:], "wrong")
    assert str(true.choice) == str(wrong.choice)
    assert (true.best.method, true.best.seed) == (wrong.best.method, wrong.best.seed)
    assert true.best.accuracy != wrong.best.accuracy
    for one, other in zip(true.runs, wrong.runs, strict=True):
        assert (one.val_accuracy, one.best_epoch) == (other.val_accuracy, other.best_epoch)
        weights = other.model().state_dict()
        assert all(torch.equal(weights[n], x) for n, x in one.model().state_dict().items())


def test_a_comparison_is_read_again(comparison):
    assert Result.load(comparison.path) == comparison
    with pytest.raises(RunError, match="holds no finished runs of a comparison"):
        Result.load(comparison.path / "best")


def test_best_follows_what_is_added(comparison, tmp_path):
    path = tmp_path / "copy"
    shutil.copytree(comparison.path, path)
    other = next(run for run in comparison.runs if run != comparison.best)
    keep_best(path, replace(other, path=path / other.path.relative_to(comparison.path)))
    assert RunResult.load(path / "best").method == other.method
    keep_best(path, comparison.best)
    assert RunResult.load(path / "best").seed == comparison.best.seed


def test_a_copy_that_was_interrupted_is_made_anew(comparison, tmp_path):
    path = tmp_path / "copy"
    shutil.copytree(comparison.path, path, ignore=shutil.ignore_patterns("best"))
    (path / ".best").mkdir()
    (path / ".best" / "half").touch()
    keep_best(path, comparison.best)
    assert RunResult.load(path / "best").accuracy == comparison.best.accuracy
    assert not (path / ".best").exists()


def test_a_link_in_the_place_of_best_is_refused(comparison, tmp_path):
    (tmp_path / "best").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is a link"):
        keep_best(tmp_path, comparison.best)


def test_the_best_is_found_unless_told_otherwise(comparison):
    path, best = comparison.path, comparison.best
    assert find_best(path) == best
    of_other = find_best(path, seed=1 - best.seed)
    assert of_other.seed == 1 - best.seed
    baseline = find_best(path, "baseline")
    values = {run.seed: run.val_accuracy for run in comparison.of("baseline")}
    assert baseline.val_accuracy == max(values.values())
    assert find_best(path, "continuous", 1).path == path / "seed-1" / "continuous"
    assert find_best(path / "seed-1" / "continuous").seed == 1
    with pytest.raises(RunError, match="has no method staged, but baseline"):
        find_best(path, "staged")
    with pytest.raises(RunError, match="has no seed 7, but 0, 1"):
        find_best(path, seed=7)
