"""Read a hierarchy from whatever a user has: one, what it is made from, a file or a run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from .._hierarchy.files import holds_hierarchy
from .._hierarchy.levels import is_hierarchy
from .._util.arrays import Array, check_entries_finite
from .._util.files import parse_json
from .._util.text import brief
from ..distances import class_distances
from ..hierarchy import CONFUSION_METRICS, Hierarchy, check_is_of_embeddings
from ..taxonomy import check_parents
from .matrices import MATRICES, Names, read_matrix, read_rows

if TYPE_CHECKING:
    from torch import Tensor, nn

CHECKPOINTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
TAXONOMY_COLUMNS = ({"parent", "child"}, {"coarse_label", "fine_label"})


class Ways(TypedDict):
    """How embeddings are clustered, see `cluster_embeddings`."""

    approximate: bool
    executor: str | None


def read_hierarchy(
    given: Any,
    *,
    metric: Any = "embedding",
    linkage: Any = "single",
    head: str | None = None,
    class_names: Names = None,
    model: str | Callable[..., nn.Module] | None = None,
    parents: str | None = None,
    approximate: bool = False,
    executor: str | None = None,
) -> Hierarchy:
    """Return the hierarchy that a user gives, or that is made from what is given.

    Args:
        given: One of

            - a `Hierarchy`, which is returned as it is;
            - a trained ``torch.nn.Module``, see `Hierarchy.from_classifier`;
            - a K×K matrix of distances, see `Hierarchy.from_distances`;
            - a nested dict, see `Hierarchy.from_taxonomy`;
            - the path of a hierarchy (.json, .safetensors), as `Hierarchy.save` wrote it;
            - that of a taxonomy (.json, .csv), see `Hierarchy.from_taxonomy`;
            - that of a matrix (.npy, .npz, .csv): distances where it is square and
              symmetric, a confusion matrix where the metric is one of the two for those,
              else embeddings;
            - that of a checkpoint (.safetensors, .pt, .pth, .bin, .ckpt), whose final layer
              gives the embeddings; nothing but tensors is unpickled;
            - that of a run directory: its hierarchy, or else its model.
        metric: See `Hierarchy.from_classifier`. Defaults to ``"embedding"``.
        linkage: See `cluster_distances`. Defaults to ``"single"``.
        head: The name of the final layer. Defaults to None: found by itself.
        class_names: The classes, in order, of what has no names of its own; for a taxonomy,
            the order of its classes. Defaults to None.
        model: What makes a run's model, see `load_trained`. Defaults to None.
        parents: Of a taxonomy, see `Hierarchy.from_taxonomy`. Defaults to None.
        approximate: Of embeddings, see `cluster_embeddings`. Defaults to False.
        executor: Likewise. Defaults to None.
    """
    check_is_of_embeddings(metric, approximate, executor)
    if check_parents(parents):
        return _with_parents(given, metric, linkage, class_names, parents)
    if isinstance(given, Hierarchy):
        _check_ways("the Hierarchy given", approximate, executor)
        return given
    if isinstance(given, str | os.PathLike):
        ways: Ways = {"approximate": approximate, "executor": executor}
        return _from_path(Path(given), metric, linkage, head, class_names, model, ways)
    from torch import nn

    if isinstance(given, nn.Module):
        return Hierarchy.from_classifier(
            given,
            metric,
            head=head,
            linkage=linkage,
            class_names=class_names,
            approximate=approximate,
            executor=executor,
        )
    _check_ways(f"the {type(given).__name__} given", approximate, executor)
    if isinstance(given, Mapping):
        return Hierarchy.from_taxonomy(given, class_names)
    _check_is_matrix(given)
    return Hierarchy.from_distances(given, linkage=linkage, class_names=class_names)


def read_tree(given: Any) -> Hierarchy | None:
    """Return the hierarchy that a user gives, if it is one already; its nodes may be labels.

    Args:
        given: As for `read_hierarchy`, or None.

    Returns:
        None where there is none, or where it would first have to be made.
    """
    if isinstance(given, Hierarchy | Mapping):
        return read_hierarchy(given)
    if not isinstance(given, str | os.PathLike):
        return None
    path = Path(given)
    if path.is_dir():
        from .directory import Run
        from .find import find_run

        run = Run(find_run(path))
        return run.hierarchy() if run.has_hierarchy and run.is_begun else None
    is_json = path.suffix.lower() == ".json" and path.is_file()
    is_tree = is_json or holds_hierarchy(path) or _is_tree_file(path)
    return _from_tree(path, None) if is_tree else None


def _check_is_matrix(given: Any) -> None:
    """Refuse what is no matrix of distances, and so nothing a hierarchy is read from."""
    try:
        shape = np.shape(given)
    except ValueError:  # rows of different lengths
        shape = ()
    is_array = hasattr(given, "shape")  # of which `Hierarchy.from_distances` says what is wrong
    if len(shape) != 2 or (shape[0] != shape[1] and not is_array):
        found = f"{type(given).__name__} of the shape {shape}" if shape else type(given).__name__
        raise TypeError(
            f"the hierarchy must be a Hierarchy, a nested dict, a trained torch.nn.Module or a "
            f"K×K matrix of distances, or the path of a file or run to read it from. Got {found}."
        )


def _from_path(
    path: Path,
    metric: Any,
    linkage: Any,
    head: str | None,
    class_names: Names,
    model: Any,
    ways: Ways,
) -> Hierarchy:
    """Return the hierarchy that a file or a run holds, or that is made from what it holds."""
    suffix = path.suffix.lower()
    matrix: Array | Tensor
    own: Names
    if path.is_dir():
        return _from_run(path, metric, linkage, head, model, ways)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or run {path}.")
    is_tree = suffix == ".json" or (suffix == ".csv" and _is_taxonomy(path))
    if is_tree or holds_hierarchy(path):
        check_no_choice(path, metric, linkage, **ways)
        return _from_tree(path, class_names)
    if suffix in CHECKPOINTS:
        from ..checkpoints import read_class_vectors

        matrix, own = read_class_vectors(path, head)
    elif suffix in MATRICES:
        matrix, own = read_matrix(path)
    else:
        raise ValueError(
            f"{path}: a hierarchy is read from .json, {', '.join(MATRICES)}, a checkpoint "
            f"({', '.join(CHECKPOINTS)}) or a run directory."
        )
    try:
        return _from_matrix(path, matrix, metric, linkage, own or class_names, ways)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {brief(error)}") from error


def _from_matrix(
    path: Path, matrix: Any, metric: Any, linkage: Any, names: Names, ways: Ways
) -> Hierarchy:
    """Return the hierarchy of embeddings, distances or a confusion matrix."""
    is_checkpoint = path.suffix.lower() in CHECKPOINTS
    if _is_one_of(metric, CONFUSION_METRICS):
        if is_checkpoint:
            raise ValueError(f"the metric {metric!r} needs a confusion matrix or a run instead.")
        return Hierarchy.from_confusion(matrix, metric, linkage=linkage, class_names=names)
    if not is_checkpoint and matrix.shape[0] == matrix.shape[1]:
        check_entries_finite(matrix, "the matrix")
        if np.allclose(matrix, matrix.T, rtol=0, atol=1e-5 * np.abs(matrix).max(initial=0)):
            check_no_choice(path, metric, **ways)
            return Hierarchy.from_distances(matrix, linkage=linkage, class_names=names)
        warnings.warn(
            f"{path} is square but not symmetric, so it is read as embeddings, one row a class; "
            f"for a confusion matrix give the metric confusion_distance.",
            stacklevel=5,
        )
    return from_vectors(matrix, metric, linkage, names, **ways)


def from_vectors(
    vectors: Any,
    metric: Any,
    linkage: Any,
    names: Names,
    seed: int = 0,
    approximate: bool = False,
    executor: str | None = None,
) -> Hierarchy:
    """Return the hierarchy of class vectors by a metric that is not of confusion.

    Args:
        vectors: K×E, one row a class.
        metric: See `Hierarchy.from_classifier`.
        linkage: See `cluster_distances`.
        names: Of the classes.
        seed: Of the random metric. Defaults to 0.
        approximate: See `cluster_embeddings`. Defaults to False.
        executor: Likewise. Defaults to None.
    """
    if _is_one_of(metric, ("embedding",)):
        return Hierarchy.from_embeddings(
            vectors,
            linkage=linkage,
            class_names=names,
            approximate=approximate,
            executor=executor,
        )
    distances = class_distances(vectors, metric, num_classes=len(vectors), seed=seed)
    return Hierarchy.from_distances(distances, linkage=linkage, class_names=names)


def _from_tree(path: Path, class_names: Names) -> Hierarchy:
    """Return the hierarchy of a file that `Hierarchy.save` wrote, or of a taxonomy."""
    content = parse_json(path) if path.suffix.lower() == ".json" else None
    if is_hierarchy(content) or holds_hierarchy(path):
        return Hierarchy.load(path)
    return Hierarchy.from_taxonomy(path, class_names)


def _with_parents(given: Any, metric: Any, linkage: Any, names: Names, parents: Any) -> Hierarchy:
    """Return the hierarchy of a taxonomy, the only thing that may have several parents."""
    if not isinstance(given, str | os.PathLike) or not _is_tree_file(Path(given)):
        name = given if isinstance(given, str | os.PathLike) else type(given).__name__
        raise ValueError(f"only a taxonomy has several parents to choose from. Got {name}.")
    check_no_choice(Path(given), metric, linkage)
    return Hierarchy.from_taxonomy(given, names, parents=parents)


def _is_tree_file(path: Path) -> bool:
    """Whether a file should hold a taxonomy; one that is missing is named by its reader."""
    suffix = path.suffix.lower()
    if not path.is_file():
        return suffix in (".json", ".csv")
    if suffix == ".json":
        return not is_hierarchy(parse_json(path))
    return suffix == ".csv" and _is_taxonomy(path)


def _is_taxonomy(path: Path) -> bool:
    header = next(iter(read_rows(path)), [])
    return any(columns <= set(header) for columns in TAXONOMY_COLUMNS)


def _from_run(
    path: Path, metric: Any, linkage: Any, head: str | None, model: Any, ways: Ways
) -> Hierarchy:
    """Return the hierarchy of a run, or of its model where it has none."""
    from .directory import HIERARCHY, Run
    from .find import find_run
    from .restore import load_trained
    from .result import RunResult

    run = find_run(path)
    if Run(run).has_hierarchy and Run(run).is_begun:  # else it is no run
        check_no_choice(run / HIERARCHY, metric, linkage, **ways)
        return Run(run).hierarchy()
    result, trained = RunResult.load(run), load_trained(run, model)
    confusion = None
    if _is_one_of(metric, CONFUSION_METRICS):
        if result.val_accuracy is None:
            raise ValueError(f"the metric {metric!r} needs validation samples, and {run} had none.")
        confusion = result.predictions("val")
    return Hierarchy.from_classifier(
        trained.model,
        metric,
        head=head or trained.config.head,
        confusion=confusion,
        linkage=linkage,
        class_names=trained.class_names,
        **ways,
    )


def check_no_choice(
    given: Path | str,
    metric: Any,
    linkage: Any = "single",
    approximate: bool = False,
    executor: str | None = None,
) -> None:
    """Raise a `ValueError` for a choice of how to cluster what is not clustered by cosines.

    Args:
        given: What it is called.
        metric: Anything but the default is refused.
        linkage: Likewise. Defaults to the default.
        approximate: Likewise. Defaults to the default.
        executor: Likewise. Defaults to the default.
    """
    _check_ways(given, approximate, executor)
    for what, value, default in (("metric", metric, "embedding"), ("linkage", linkage, "single")):
        if not _is_one_of(value, (default,)):
            raise ValueError(
                f"{given} leaves no choice of {what}, so {brief(value)!r} has no effect; leave it "
                f"out, or give a checkpoint or embeddings."
            )


def _check_ways(given: Path | str, approximate: bool, executor: str | None) -> None:
    for what, value in (("approximate clustering", approximate), ("an executor", executor)):
        if value:
            raise ValueError(f"{given} has no embeddings, which {what} is for; leave it out.")


def _is_one_of(value: Any, names: Sequence[str]) -> bool:
    """Whether a metric or linkage is one of these; it may be a matrix or a function instead."""
    return isinstance(value, str) and value in names
