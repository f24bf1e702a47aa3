"""Training for longer: what becomes of a run that was begun with fewer epochs.

It is taken over, goes on or begins anew, and comes to the numbers of a run that was begun with
the larger number, to the bit. So it goes on only if that one would have had the same epochs so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from ..methods import METHODS, PLAIN, build_method, find_method
from ..methods.base import Method, Stage
from ..runs.begun import is_trained, stored_epochs
from ..runs.config import Config, irrelevant_settings
from ..runs.directory import Run
from ..runs.guards import check_same
from ..runs.result import RunResult
from ..runs.writer import RunWriter
from .job import Job
from .state import Progress, learning_rate


def goes_on(method: str) -> bool:
    """Whether epochs of a method are the same however many follow; one's own may count them."""
    return method == PLAIN or method in METHODS


def lengthened(run: RunWriter, job: Job, method: Method) -> str | None:
    """Prepare a run that was begun with fewer epochs for as many as are allowed now.

    Args:
        run: Of the job; changed where it was begun with fewer.
        job: What is to be trained.
        method: Made for the job.

    Returns:
        What becomes of what there is, in words; None where nothing was trained, or a run that
        was begun with as many goes on.
    """
    begun_with = stored_epochs(run.path)
    if begun_with is None or not is_trained(run.path):
        return None
    epochs = job.config.epochs or 1
    if begun_with >= epochs:
        return "taken over, as it is done" if run.is_done else None
    check_same(run.path, job.content(), ("workers", "epochs", *irrelevant_settings(job.method)))
    reason = next(_reasons_to_begin_anew(run, job, method, begun_with), None)
    if reason is not None:
        run.clear()
        return f"trained anew: {reason}"
    is_over = _is_over(run, method.stages)
    run.lengthen(epochs, is_over=is_over)
    if is_over:
        return f"taken over, as it ended by itself after {run.epochs_done} epochs"
    return f"goes on from epoch {run.last_checkpoint}"


def _reasons_to_begin_anew(
    run: RunWriter, job: Job, method: Method, begun_with: int
) -> Iterator[str]:
    """Give why a run with more epochs would not begin with those that the run has had."""
    if not goes_on(job.method):
        yield "a method of your own may depend on the number of epochs"
    yield from _reasons_in_other_runs(run, job, method)
    plan = replace(job.plan, epochs=begun_with)
    before = build_method(job.method, plan, job.config.method_settings)
    yield from _reasons_in_stages(run, job.config, before.stages, method.stages)
    yield from _reasons_in_levels(run, job)
    if run.last_checkpoint is None and not _is_over(run, method.stages):
        yield "there is no checkpoint to go on from"


def _reasons_in_other_runs(run: RunWriter, job: Job, method: Method) -> Iterator[str]:
    """Give what the run was given by others, such as the baseline, that is another now."""
    now, before = job.given_by_others(), dict(run.config.plan)
    result = RunResult.load(run.path) if run.is_done else None
    if result and "length" in method.needs:
        before["curriculum_epochs"] = result.curriculum_epochs
    length = before.get("curriculum_epochs")
    if not job.config.is_adaptive and length != now["curriculum_epochs"]:
        yield f"T is {now['curriculum_epochs']} instead of {length or 'one that was not noted'}"
    if before.get("class_vectors") != now["class_vectors"]:
        yield "the baseline has another final layer"
    if job.plan.hierarchy is not None and not run.is_of(job.plan.hierarchy):
        yield "the hierarchy is another"
    if result and job.continued and result.own_epochs != job.continued.epochs:
        yield f"the baseline took {job.continued.epochs} epochs instead of {result.own_epochs}"


def _reasons_in_stages(
    run: Run, config: Config, before: tuple[Stage, ...], now: tuple[Stage, ...]
) -> Iterator[str]:
    """Give what more epochs would have changed in those that the run has had."""
    done = Counter(line["stage"] for line in run.metrics())
    for number, (old, new) in enumerate(zip(before, now, strict=True)):
        rates = ((old.epochs, new.epochs, epoch) for epoch in range(done[number]))
        if any(learning_rate(config, e, a) != learning_rate(config, e, b) for a, b, e in rates):
            yield "its learning rate falls after shares of all epochs"
        # Whether its patience was over at the same time is not worth finding out.
        had_all = number < max(done, default=0) and done[number] >= old.epochs
        if had_all and old.epochs != new.epochs:
            yield f"its stage {number + 1} took all the {old.epochs} epochs it was allowed"


def _reasons_in_levels(run: Run, job: Job) -> Iterator[str]:
    """Give where an adaptive curriculum with more epochs would have gone on otherwise."""
    if not ("length" in find_method(job.method).needs and job.config.is_adaptive):
        return
    again = job.new_method()
    for line in run.metrics():
        again.begin_epoch(line["stage"], line["epoch"] - 1, _no_losses)
        if again.level != line["level"]:
            yield f"its level {line['level']} would begin later than at epoch {line['epoch']}"
            return
        again.end_epoch(line["level_accuracy"])


def _no_losses() -> Tensor:
    raise RuntimeError("an adaptive curriculum does not look at samples.")


def _is_over(run: Run, stages: tuple[Stage, ...]) -> bool:
    """Whether a finished run would not have gone on if it had been allowed more epochs."""
    if not run.is_done:
        return False
    last = len(stages) - 1
    epochs = sum(line["stage"] == last for line in run.metrics())
    best = RunResult.load(run.path).best_epoch
    # The best epoch is one that counts, so patience counts from it.
    return Progress(last, epochs, best_epoch=best).is_over(replace(stages[last], counts_from=0))
