"""What came out of an experiment: all that its table and its figure need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._util.distinct import distinct
from ..lengths import RULES
from ..runs.config import Config
from ..runs.directory import Run
from ..runs.result import BASELINE, RunResult
from .declaration import CHOSEN, Published, Setting, Variant
from .figures import figure_values
from .tasks import Task, expand


@dataclass(frozen=True)
class Row:
    """What came out of a setting.

    Args:
        key: See `Setting.key`.
        label: What tables call it.
        folder: See `Setting.folder`.
        config: The settings of its baseline that are not None, the recipe's included.
        paper: The paper's own figures, see `Setting`.
        variants: What is compared with the baseline.
        runs: What came out of the trainings that are done. Their paths are of use only before
            they are stored.
        versions: Of Python and the libraries that made the runs; where they differ, all.
            Defaults to none.
        chosen_among: See `Setting`. Defaults to none.
        cut: In how many runs T is shorter than its rule would have it. Defaults to 0.
        seeds: Those that were asked for. Defaults to none.
        values: What the figure shows beside these results, see `coarse2fine.experiments.figures`.
            Defaults to None: nothing.
    """

    key: str
    label: str
    folder: str
    config: Mapping[str, Any]
    paper: Published
    variants: tuple[Variant, ...]
    runs: tuple[RunResult, ...]
    versions: tuple[Mapping[str, str], ...] = ()
    chosen_among: tuple[str, ...] = ()
    cut: int = 0
    seeds: tuple[int, ...] = ()
    values: Any = None

    def of(self, name: str) -> tuple[RunResult, ...]:
        """Return the runs of a variant, of ``"baseline"``, or those of each seed to be chosen."""
        if name == CHOSEN:
            return tuple(self._chosen())
        return tuple(run for run in self.runs if run.method == name)

    def _chosen(self) -> Iterator[RunResult]:
        """Yield of each seed, once all are done, the run that validates best.

        Of equals it is the baseline, then the first variant. Test accuracies have no say.
        """
        if not self.chosen_among:
            return
        names = (BASELINE, *self.chosen_among)
        for seed in dict.fromkeys(run.seed for run in self.runs):
            found = [run for name in names for run in self.of(name) if run.seed == seed]
            if len(found) == len(names):
                yield max(found, key=lambda run: run.val_accuracy or 0.0)

    def cost(self, name: str) -> tuple[float, float]:
        """Return how many epochs and seconds were trained for a result, on average.

        A method's cost includes the training that its hierarchy is from, and for what is chosen
        all candidates. A baseline counts until it stopped by itself.

        Args:
            name: See `of`; at least one of its runs must be done.
        """
        costs = [self._cost(name, run.seed) for run in self.of(name)]
        epochs, seconds = zip(*costs, strict=True)
        return sum(epochs) / len(costs), sum(seconds) / len(costs)

    def _cost(self, name: str, seed: int) -> tuple[float, float]:
        names = {name}
        if name == CHOSEN:
            names = {BASELINE, *self.chosen_among}
        elif self._needs_baseline(name):
            names |= {BASELINE}
        runs = [run for each in names for run in self.of(each) if run.seed == seed]
        shares = [(run.own_epochs or run.epochs) / run.epochs for run in runs]
        both = list(zip(runs, shares, strict=True))
        return (
            sum(run.all_epochs * share for run, share in both),
            sum(run.all_seconds * share for run, share in both),
        )

    def _needs_baseline(self, name: str) -> bool:
        """Whether a variant's hierarchy, or the like, is made from the baseline."""
        variant = next((each for each in self.variants if each.name == name), None)
        if variant is None:
            return False
        methods = {"methods": (variant.trains_by,)}
        config = Config.from_dict({**self.config, **variant.settings, **methods})
        return config.why_baseline is not None

    def accuracies(self, name: str, rule: str | None = None) -> dict[int, float]:
        """Return the test accuracies of a variant in percent, by seed.

        Args:
            name: See `of`.
            rule: One of its rules of inference. Defaults to None: the one that counts.
        """
        return {
            run.seed: 100 * (run.accuracy if rule is None else run.by_rule[rule])
            for run in self.of(name)
        }

    def gains(self, name: str, rule: str | None = None) -> list[float]:
        """Return how much better a variant is than the baseline of the same seed, in percent."""
        plain = self.accuracies(BASELINE)
        found = self.accuracies(name, rule)
        return [accuracy - plain[seed] for seed, accuracy in found.items() if seed in plain]

    def further_rules(self, name: str) -> list[str]:
        """Return the rules of inference that a variant was tested with beside its first."""
        first = next((run.by_rule for run in self.of(name)), {})
        return list(first)[1:]


@dataclass(frozen=True)
class Results:
    """What came out of an experiment.

    Args:
        experiment: Its name.
        title: In a few words.
        figure: What is drawn of it; None for nothing.
        scale: The name of its scale.
        about: What that scale is.
        seeds: Those that were asked for.
        command: What was called; may be empty.
        versions: Of Python and the libraries that collected it.
        rows: A setting each.
    """

    experiment: str
    title: str
    figure: str | None
    scale: str
    about: str
    seeds: tuple[int, ...]
    command: str
    versions: Mapping[str, str]
    rows: tuple[Row, ...]

    @property
    def heading(self) -> str:
        """Its title and scale in a line."""
        return f"{self.title}; scale {self.scale}: {self.about}"

    @property
    def extent(self) -> tuple[int, int]:
        """Of how many trainings, and of how many seeds, there are results."""
        runs = [run for row in self.rows for run in row.runs]
        return len(runs), len({run.seed for run in runs})


def collect(
    setting: Setting,
    seeds: tuple[int, ...],
    store: Path,
    figure: str | None = None,
    folder: Path | None = None,
) -> Row:
    """Return the results of a setting's trainings that are done.

    Args:
        setting: A row of an experiment.
        seeds: Those that are wanted.
        store: The directory that holds all runs.
        figure: What is to be drawn of them. Defaults to None.
        folder: Where named data sets lie. Defaults to None: the environment's.
    """
    tasks = expand((setting,), seeds, store)
    runs = tuple(_compared(task) for task in tasks if task.is_done)
    config = setting.config(None, seeds).to_dict()
    return Row(
        key=setting.key,
        label=setting.label,
        folder=setting.folder,
        config={name: value for name, value in config.items() if value is not None},
        paper=setting.paper,
        variants=setting.variants,
        runs=runs,
        versions=_versions(runs),
        chosen_among=setting.chosen_among,
        cut=sum(_is_cut(task) for task in tasks if task.is_done),
        seeds=seeds,
        values=figure_values(figure, runs, folder),
    )


def _compared(task: Task) -> RunResult:
    """Return the result of a training, of a baseline's that of the longer one if it is done."""
    longer = task.longer if task.variant is None else task
    return longer.result if longer.is_done else task.result


def _is_cut(task: Task) -> bool:
    """Whether the rule for T would have given more epochs than the training had."""
    rule = task.setting.config(task.variant, (task.seed,)).curriculum_epochs
    length = task.result.curriculum_epochs
    if length is None or rule not in RULES or not task.baseline.is_done:
        return False
    lines = Run(task.baseline.path).metrics()
    return RULES[str(rule)]([line["accuracy"] or 0.0 for line in lines]) > length


def _versions(runs: tuple[RunResult, ...]) -> tuple[Mapping[str, str], ...]:
    return tuple(distinct(Run(run.path).versions() for run in runs))
