"""What came out: of one training, and of the comparison of several."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from reprlib import repr as short
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.arrays import IntArray
from .._util.columns import aligned, as_text
from .._util.files import Json
from ..errors import RunError
from ..hierarchy import Hierarchy
from ..metrics import level_hits
from .directory import HAS_CLASS, PREDICTIONS, Run
from .statistics import mean_and_error

if TYPE_CHECKING:
    from torch import nn

    from .best import Choice
    from .verdict import Verdict

BASELINE = "baseline"


@dataclass(frozen=True)
class RunResult:
    """What came out of one training.

    Args:
        method: ``"baseline"``, or the name of a method.
        seed: Of everything random.
        accuracy: On the test samples and target classes, at the best epoch.
        val_accuracy: On the validation samples at that epoch; None where there are none.
        best_epoch: Of the last stage, counted from 1.
        epochs: How many were done in all.
        seconds: How long they took.
        levelled_off: Whether the best epoch was not among the last tenth of those allowed.
        curriculum_epochs: T; None for methods without one.
        num_clusters: Of each level, coarsest first; empty without a hierarchy.
        path: The run directory.
        by_rule: The accuracy by each of the method's rules of inference, where it has
            several. Defaults to none.
        own_epochs: After how many epochs a baseline stopped by itself, before it went on for
            as many as the longest method. Defaults to None: it did not go on.
        val_samples: How many validation samples there are that have a class. Defaults to None:
            runs of 0.1 do not say.
        hierarchy_epochs: How many epochs a training had that only its hierarchy was made from,
            see ``Config.hierarchy_epochs`` and ``hierarchy_model``. Defaults to None: there was
            no such training, or an older run does not say.
        hierarchy_seconds: How long that training took. Defaults to None.
        with_class: For ``"train"``, ``"val"`` and ``"test"`` how many samples are labelled with
            a class, and how many there are. Accuracies count the former alone. Defaults to none:
            all have a class.
    """

    method: str
    seed: int
    accuracy: float
    val_accuracy: float | None
    best_epoch: int
    epochs: int
    seconds: float
    levelled_off: bool
    curriculum_epochs: int | None
    num_clusters: tuple[int, ...]
    path: Path
    by_rule: dict[str, float] = field(default_factory=dict)
    own_epochs: int | None = None
    val_samples: int | None = None
    hierarchy_epochs: int | None = None
    hierarchy_seconds: float | None = None
    with_class: dict[str, list[int]] = field(default_factory=dict)

    @property
    def all_epochs(self) -> int:
        """Its epochs, and those of a training that only its hierarchy was made from."""
        return self.epochs + (self.hierarchy_epochs or 0)

    @property
    def all_seconds(self) -> float:
        """How long `all_epochs` took."""
        return self.seconds + (self.hierarchy_seconds or 0)

    def to_dict(self) -> Json:
        """Return the result as plain values, without the path, which may change."""
        content = asdict(self)
        del content["path"]
        return content

    @classmethod
    def load(cls, path: Path) -> RunResult:
        """Read a finished run's result."""
        try:
            return cls.from_dict(Run(path).result()["result"], path)
        except FileNotFoundError:
            raise Run(path).missing_result() from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Run(path).damaged(error) from None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: Path) -> RunResult:
        """Return the result that `to_dict` gave.

        Args:
            content: As a file has it.
            path: The run directory.
        """
        found = cls(**{**content, "num_clusters": tuple(content["num_clusters"])}, path=path)
        found._check()
        return found

    def hierarchy(self) -> Hierarchy:
        """Return the hierarchy that the run was trained with."""
        return Run(self.path).hierarchy()

    def predictions(self, part: str = "test") -> tuple[Any, Any]:
        """Return the predicted and the true classes of the samples that have a class.

        Args:
            part: ``"test"`` or ``"val"``. Defaults to ``"test"``.
        """
        predicted, wanted, has_class = self._stored(part)
        return (
            (predicted, wanted) if has_class is None else (predicted[has_class], wanted[has_class])
        )

    def level_hits(self, hierarchy: Hierarchy) -> tuple[IntArray, IntArray]:
        """Return for each level how many test predictions are right, and of how many samples.

        A sample that is labelled with a cluster counts at the levels at which that lies in one.

        Args:
            hierarchy: The levels, of the run's classes.
        """
        predicted, wanted, has_class = self._stored("test")
        tree = None if has_class is None else Run(self.path).config.data.tree()
        return level_hits(predicted, wanted, hierarchy, (tree or hierarchy).nodes)

    def _stored(self, part: str) -> tuple[Any, Any, Any]:
        """Return the predicted classes, the labels, and which of these are classes, if not all."""
        path, tensors = self.path / PREDICTIONS, Run(self.path).predictions()
        names = (f"{part}.predictions", f"{part}.targets")
        found = [tensors[name] for name in names if name in tensors]
        if len(found) < 2 or any(x.dim() != 1 or not _is_whole(x) for x in found):
            raise RunError(f"{path} is damaged: it has no classes of the {part} samples.")
        predicted, wanted = found[0].numpy(), found[1].numpy()
        has_class = tensors.get(f"{part}.{HAS_CLASS}")
        if has_class is None:
            return predicted, wanted, None
        shapes = {predicted.shape, wanted.shape, tuple(has_class.shape)}
        if str(has_class.dtype) != "torch.bool" or len(shapes) > 1:
            raise RunError(f"{path} is damaged: it does not say which {part} samples have a class.")
        return predicted, wanted, has_class.numpy()

    def _check(self) -> None:
        """Raise a ValueError where it was read and is not what a training gives."""
        for name, kinds in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise ValueError(f"{name} is {short(value)}")
        told = (self.accuracy, self.val_accuracy or 0, self.all_seconds, self.all_epochs)
        numbers = (*told, *self.by_rule.values())
        if not all(isinstance(x, int | float) and abs(x) < sys.float_info.max for x in numbers):
            raise ValueError("it lacks numbers")
        if not all(type(count) is int for count in self.num_clusters):
            raise ValueError(f"num_clusters is {short(self.num_clusters)}")
        for counts in self.with_class.values():
            if not isinstance(counts, list) or list(map(type, counts)) != [int, int]:
                raise ValueError(f"with_class is {short(self.with_class)}")

    def model(self, factory: str | Callable[..., nn.Module] | None = None) -> nn.Module:
        """Return the trained model.

        Args:
            factory: What makes it, a callable or ``package.module:callable``. Defaults to
                None: the run says it, which is enough where the model is one of ours or was
                trained by this process.
        """
        from .restore import load_trained

        return load_trained(self.path, factory).model


_KINDS: dict[str, tuple[type, ...]] = {
    "method": (str,),
    **dict.fromkeys(("seed", "best_epoch", "epochs"), (int,)),
    **dict.fromkeys(("accuracy", "seconds"), (int, float)),
    **dict.fromkeys(("val_accuracy", "hierarchy_seconds"), (int, float, NoneType)),
    "levelled_off": (bool,),
    **dict.fromkeys(("curriculum_epochs", "own_epochs", "val_samples"), (int, NoneType)),
    "hierarchy_epochs": (int, NoneType),
    **dict.fromkeys(("by_rule", "with_class"), (dict,)),
}


_WHOLE = tuple(f"torch.{kind}" for kind in ("uint8", "int8", "int16", "int32", "int64"))


def _is_whole(tensor: Any) -> bool:
    """Whether a tensor holds integers that numpy has too."""
    return str(tensor.dtype) in _WHOLE


@dataclass(frozen=True)
class Result:
    """The comparison of a curriculum with plain training, over one or more seeds.

    Args:
        runs: All trainings that are compared.
        remarks: What to bear in mind, such as that a training has not levelled off.
        path: The directory that holds it all.
    """

    runs: tuple[RunResult, ...]
    remarks: tuple[str, ...]
    path: Path

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a comparison's finished runs.

        Args:
            path: Its directory.
        """
        from .best import finished_runs
        from .directory import comparison_remarks

        path = Path(path)
        runs = finished_runs(path) if path.is_dir() else []
        if not runs:
            raise RunError(f"{path} holds no finished runs of a comparison.")
        return cls(tuple(runs), comparison_remarks(path), path)

    @property
    def best(self) -> RunResult:
        """The run to use: of the method and seed that validate best."""
        return self.choice.run

    @property
    def choice(self) -> Choice:
        """Which run to use, why, and how sure that is; `print` shows it."""
        from .best import choose

        return choose(self.runs)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Whether each method helped, by its test accuracies; `print` shows it."""
        from .verdict import verdicts

        return verdicts(self.runs)

    @property
    def methods(self) -> tuple[str, ...]:
        """What was trained, the baseline first."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    def of(self, method: str) -> tuple[RunResult, ...]:
        """Return the runs of a method, one a seed."""
        return tuple(run for run in self.runs if run.method == method)

    def accuracies(self, method: str) -> list[float]:
        """Return a method's test accuracy for each seed."""
        return [run.accuracy for run in self.of(method)]

    def gains(self, method: str) -> list[float]:
        """Return how much more accurate a method is than the baseline of the same seed."""
        if method == BASELINE:
            return []
        plain = {run.seed: run.accuracy for run in self.of(BASELINE)}
        return [run.accuracy - plain[run.seed] for run in self.of(method) if run.seed in plain]

    def to_dict(self) -> Json:
        """Return the comparison as plain values."""
        return {
            "runs": [run.to_dict() for run in self.runs],
            "summary": {
                method: {
                    "accuracy": mean_and_error(self.accuracies(method)),
                    "gain": mean_and_error(self.gains(method)),
                }
                for method in self.methods
            },
            "remarks": list(self.remarks),
            "best": self.choice.to_dict(),
            "verdicts": {method: str(found) for method, found in self.verdicts.items()},
        }

    def level_table(self) -> str:
        """Return the test accuracy at each level of the first seed's hierarchy."""
        from .tables import level_rows

        rows = level_rows(self)
        return aligned(rows) if rows else ""

    def plot(self, kind: str = "curves", method: str | None = None) -> Any:
        """Return a plotly figure; it needs the extra ``report``.

        Args:
            kind: ``"curves"``: accuracy after every epoch; ``"levels"``: accuracy at each
                level of the first seed's hierarchy, the mean over seeds; ``"classes"``: the
                gain of each class; ``"confusion"``: what is taken for what, in the order of
                that hierarchy; ``"answers"``: how fine the model can answer by it, for which
                the data is read again. Defaults to ``"curves"``.
            method: To compare with the baseline. Defaults to None: all methods for
                ``"curves"`` and ``"levels"``, else the first that has a hierarchy.
        """
        from ..figures.result import plot

        return plot(self, kind, method)

    def table(self) -> str:
        """Return the test accuracies and gains of each seed, with their means."""
        from .tables import accuracy_rows

        return aligned(accuracy_rows(self))

    def __str__(self) -> str:
        from .tables import told

        return as_text(told(self))


def mean_epochs(runs: Sequence[RunResult]) -> str:
    """Return how many epochs runs took on average, as ``45 + 12`` if 12 were for the hierarchy.

    Args:
        runs: Of one method; none of them is ``""``.
    """
    if not runs:
        return ""
    own = f"{np.mean([run.epochs for run in runs]):.0f}"
    more = float(np.mean([run.hierarchy_epochs or 0 for run in runs]))
    return f"{own} + {more:.0f}" if more else own


def counts_of_labels(with_class: Mapping[str, Sequence[int]]) -> str:
    """Return how many samples have a class as a sentence.

    Args:
        with_class: See `RunResult`; it is not empty.

    Examples:
        >>> counts_of_labels({"train": [300, 1000], "val": [50, 250], "test": [80, 80]})
        '300 of 1000 training, 50 of 250 validation and 80 of 80 test samples have a class, the \
others a coarser label; accuracies count those with a class.'
    """
    names = {"train": "training", "val": "validation", "test": "test"}
    shown = [f"{found} of {every} {names[part]}" for part, (found, every) in with_class.items()]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    return (
        f"{listed} samples have a class, the others a coarser label; accuracies count those with "
        f"a class."
    )
