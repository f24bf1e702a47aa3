"""A run's directory: the names of its files, and typed readers of what they hold.

A run is a directory with `config.json`, `metrics.jsonl` (one line an epoch), `hierarchy.json`
where it has one, `checkpoint/`, `predictions.safetensors`, and `result.json`, which is written
last, so that its presence means that the run is done. `RunWriter` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict

from .._util.files import Json, parse_json
from .._util.text import brief
from ..checkpoints import Tensors, load_tensors
from ..data import Kind
from ..errors import RunError
from ..hierarchy import Hierarchy
from .checkpoint import check_signature, checksum, digest, is_signed

CONFIG, METRICS, HIERARCHY, RESULT = (
    "config.json",
    "metrics.jsonl",
    "hierarchy.json",
    "result.json",
)
CHECKPOINT, MODEL, METHOD, PREDICTIONS = (
    "checkpoint",
    "model.safetensors",
    "method.safetensors",
    "predictions.safetensors",
)
WEIGHTS = f"{CHECKPOINT}/{MODEL}"
KEPT = (CONFIG, METRICS, HIERARCHY, WEIGHTS, f"{CHECKPOINT}/{METHOD}", PREDICTIONS, RESULT)
BEST = "best"  # in a comparison: a copy of the run that validates best
RUN, COMPARISON = "coarse2fine run", "coarse2fine comparison"
EXPORT = "coarse2fine export"  # its config is read as a run's
VERSION, OLD_VERSION = 2, 1  # the old one is of coarse2fine 0.1, which had other random numbers
EXPORT_VERSION = 1
_NEWEST = {RUN: VERSION, COMPARISON: VERSION, EXPORT: EXPORT_VERSION}
HAS_CLASS = "has_class"  # beside predictions: which samples are labelled with a class
CHECKSUMS, DATA_CHECKSUM = "checksums", "data_checksum"


class Metrics(TypedDict, total=False):
    """What is noted of an epoch; None for what there is not, as in coarse stages."""

    stage: int
    epoch: int
    level: int | None
    loss: float | None
    val_loss: float | None
    level_accuracy: float | None
    accuracy: float | None
    test_accuracy: float | None
    test_level_accuracy: float | None
    learning_rate: float
    images_per_second: float
    seconds: float


@dataclass(frozen=True)
class DataFacts:
    """What a run's config says of its samples.

    Args:
        kind: What the inputs are.
        class_names: Of the K classes.
        columns: Of a table.
        input_shape: Of one sample.
        samples: How many there are to train, validate and test on.
        fingerprint: See `Data.fingerprint`.
        transform: The fields of the `Transform` that inputs go through.
        dtype: Of the inputs before that, as torch names it. Defaults to ``""``: runs of 0.1 do
            not say.
        labels: The tree whose nodes the targets are, as `Hierarchy.to_dict` gave it. Defaults to
            None: they are classes.
    """

    kind: Kind
    class_names: tuple[str, ...]
    columns: tuple[str, ...]
    input_shape: tuple[int, ...]
    samples: tuple[int, ...]
    fingerprint: str
    transform: Mapping[str, Any]
    dtype: str = ""
    labels: Json | None = None

    def tree(self) -> Hierarchy | None:
        """Return the tree whose nodes the targets are, None where they are classes."""
        return None if self.labels is None else Hierarchy.from_dict(self.labels)


@dataclass(frozen=True)
class RunConfig:
    """What a run was begun with.

    Args:
        settings: As `Config.to_dict` gave them; they may name code of anyone's.
        method: See `find_method`.
        data: What is known of the samples.
        versions: Of what has a say in the numbers; empty where the file does not tell.
        command: That began it; None where the file does not tell.
        plan: What its method was given that follows from other runs, see `Job.content`.
            Defaults to nothing.
    """

    settings: Mapping[str, Any]
    method: str
    data: DataFacts
    versions: Mapping[str, str]
    command: str | None
    plan: Mapping[str, Any] = field(default_factory=dict)


class Run:
    """What a run's directory holds, read when it is asked for.

    Files of a finished run are compared with the checksums in its result first.

    Args:
        path: The directory.

    Attributes:
        config_file: For messages, as the three that follow.
        metrics_file: One line an epoch.
        hierarchy_file: Where it has a hierarchy.
        predictions_file: Of validation and test samples.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / CONFIG
        self.metrics_file = path / METRICS
        self.hierarchy_file = path / HIERARCHY
        self.predictions_file = path / PREDICTIONS

    @property
    def is_begun(self) -> bool:
        """Whether there is a config of a run."""
        file = self.path / CONFIG
        if not file.is_file():
            return False
        content = _parsed(file)
        return isinstance(content, dict) and content.get("format") == RUN

    @property
    def is_done(self) -> bool:
        """Whether the run has its result."""
        return (self.path / RESULT).is_file()

    @cached_property
    def config(self) -> RunConfig:
        """What it was begun with.

        Raises:
            RunError: The file is damaged.
        """
        return _run_config(self.path / CONFIG)

    def result(self) -> Json:
        """Return what result.json holds, or raise a `ValueError` where it is damaged."""
        content: Json = parse_json(self.path / RESULT)
        if not isinstance(content, dict) or not isinstance(content.get(CHECKSUMS, {}), dict):
            raise ValueError("it does not hold what a run has")
        if is_signed(content) or CHECKSUMS in content:  # runs of 0.1 are not, and have none
            check_signature(content, RESULT)
        return content

    def versions(self) -> Mapping[str, str]:
        """Return the versions of what made the result."""
        found: Mapping[str, str] = self._checked_result().get("versions", {})
        return found

    def metrics(self) -> list[Metrics]:
        """Return the metrics of each epoch so far.

        Raises:
            RunError: They are damaged.
        """
        path = self.unchanged(METRICS)
        lines = enumerate(read_lines(path), 1)
        return [_parsed_line(path, number, line) for number, line in lines]

    @property
    def epochs_done(self) -> int:
        """How many epochs there are metrics of."""
        path = self.path / METRICS
        if not path.is_file():
            return 0
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))

    @property
    def has_hierarchy(self) -> bool:
        """Whether it was trained with a hierarchy."""
        return (self.path / HIERARCHY).is_file()

    def hierarchy(self) -> Hierarchy:
        """Return the hierarchy that it was trained with."""
        return Hierarchy.load(self.unchanged(HIERARCHY))

    def predictions(self) -> Tensors:
        """Return predicted and true classes, by the names ``"test.predictions"`` and so on."""
        return load_tensors(self.unchanged(PREDICTIONS))

    def weights(self) -> Tensors:
        """Return the weights of the trained model."""
        return load_tensors(self.unchanged(WEIGHTS))

    # -------------------------------------------------------------------------- checksums

    def unchanged(self, name: str) -> Path:
        """Return one of the run's files, once it is sure to be as the run left it.

        Args:
            name: Of the file; of a run that is not done there is nothing to compare with.

        Raises:
            RunError: It has changed.
        """
        file = self.path / name
        wanted = self._checked_result().get(CHECKSUMS, {}).get(name)
        if wanted is not None and file.is_file() and checksum(file) != wanted:
            raise self.changed(name)
        return file

    def check_data(self) -> None:
        """Raise a `RunError` where the config says something else of the samples than before.

        Only this part is needed to use the model; the rest, such as where a model is imported
        from, may be changed by hand.
        """
        data = _parsed(self.path / CONFIG)["data"]
        if self._checked_result().get(DATA_CHECKSUM, digest(data)) != digest(data):
            raise self.changed(CONFIG)

    def changed(self, name: str) -> RunError:
        """Return what to say of a file that is not as the run left it."""
        return RunError(f"{self.path / name} has changed since it was written; {self._remedy}.")

    def damaged(self, error: Exception) -> RunError:
        """Return what to say of a result.json that cannot be used."""
        reason = brief(str(error).rstrip("."))
        return RunError(f"{self.path / RESULT} is damaged: {reason}; {self._remedy}.")

    def missing_result(self) -> RunError:
        """Return what to say where there is no result.json."""
        remedy = "resume it with the command that began it"
        if self.is_begun and _parsed(self.path / CONFIG).get("version") == OLD_VERSION:
            remedy = (
                "coarse2fine 0.1 began it, with other random numbers, so it cannot be resumed: "
                "train again in another folder"
            )
        return RunError(f"{self.path} has no {RESULT}: it is not a run, or not done; {remedy}.")

    def _checked_result(self) -> Json:
        if not self.is_done:
            return {}
        try:
            return self.result()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self.damaged(error) from None

    @property
    def _remedy(self) -> str:
        again = f"remove {self.path} and have the same command train it anew"
        return f"put back what was there, or {again}"


def comparison_remarks(path: Path) -> tuple[str, ...]:
    """Return what to bear in mind about a comparison; nothing where it is not done."""
    file = path / RESULT
    content = _parsed(file) if file.is_file() else {}
    found = content.get("remarks", []) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise RunError(f"{file} is damaged: it does not hold what a comparison has.")
    return tuple(map(str, found))


def check_known(file: Path, content: Mapping[str, Any]) -> None:
    """Raise a `RunError` where a config is of a later format than this release knows.

    Args:
        file: The config.
        content: What it holds.
    """
    version, newest = content.get("version"), _NEWEST.get(str(content.get("format")), VERSION)
    if type(version) is int and version > newest:
        raise RunError(
            f"{file} cannot be used: a later release of coarse2fine wrote it, in version {version} "
            f"of its format, and this release reads versions up to {newest}; update coarse2fine."
        )


def is_begun_comparison(path: Path) -> bool:
    """Whether a directory has the config of a comparison or a run."""
    return (path / CONFIG).is_file()


def read_lines(path: Path) -> list[str]:
    """Return the whole lines of a file, none where it does not exist.

    A line that a kill cut short is left out.
    """
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def _parsed_line(path: Path, number: int, line: str) -> Metrics:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: line {number}: {brief(error)}.") from None
    if not isinstance(found, dict):
        raise RunError(f"{path} is damaged: line {number} holds no metrics.")
    metrics: Metrics = found  # type: ignore[assignment]
    return metrics


def _parsed(path: Path) -> Any:
    try:
        return parse_json(path)
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no {path.name}, so it is not a run.") from None
    except ValueError as error:
        raise RunError(str(error)) from None


def _run_config(path: Path) -> RunConfig:
    content = _parsed(path)
    try:
        check_known(path, content)
        data = _data_facts(content["data"])
        settings, method = content["config"], content["method"]
        found = RunConfig(
            settings,
            method,
            data,
            content.get("versions") or {},
            content.get("command"),
            content.get("plan") or {},
        )
    except KeyError as error:
        raise RunError(f"{path} is damaged: it has no {error}.") from None
    except (TypeError, AttributeError):
        raise RunError(f"{path} is damaged: it does not hold what a run has.") from None
    texts = (method, data.kind, data.fingerprint, found.command or "", *data.class_names)
    are_dicts = all(isinstance(each, dict) for each in (settings, found.versions, found.plan))
    if not are_dicts or not all(isinstance(text, str) for text in texts):
        raise RunError(f"{path} is damaged: it does not hold what a run has.")
    return found


def _data_facts(data: Json) -> DataFacts:
    def listed(name: str) -> tuple[Any, ...]:
        value: Sequence[Any] = data.get(name) or ()
        return tuple(value)

    return DataFacts(
        data["kind"],
        tuple(data["class_names"]),
        listed("columns"),
        listed("input_shape"),
        listed("samples"),
        data["fingerprint"],
        data.get("transform") or {},
        str(data.get("dtype") or ""),
        data.get("labels"),
    )
