"""Class vectors by an encoder that a user has: means of features, or of the classes' names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from .._util.arrays import Array, to_floats, to_numpy
from .._util.imports import imported
from .._util.text import brief
from ..data import Batches, Data, Split
from ..runs.config import Config
from ..runs.identity import import_path
from .evaluation import sum_over
from .fabric import Fabric
from .job import transform_for

Encoder = Callable[[Any], Any]
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[.,]?")
_FAILURES = (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError)


def find_encoder(given: str | Encoder) -> Encoder:
    """Return the encoder that is meant.

    Args:
        given: A function, an ``nn.Module``, or where one is, as ``package.module:callable``.
    """
    found: Any = imported(given, "encoder") if isinstance(given, str) else given
    if isinstance(found, type) or not callable(found):
        what = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
        raise TypeError(f"encoder must be a function or an nn.Module that is made. Got {what}.")
    return cast(Encoder, found)


def encoder_name(encoder: Encoder) -> str:
    """Return what settings call an encoder that is a Python object.

    With a digest of its weights where it is a module or a method of one, as two of them have one
    name.
    """
    module = getattr(encoder, "__self__", encoder)
    if not isinstance(module, nn.Module):
        return import_path(encoder)
    digest = hashlib.sha256(repr(module).encode())
    for name, value in module.state_dict().items():
        content = to_numpy(value).tobytes() if isinstance(value, Tensor) else repr(value).encode()
        digest.update(name.encode() + content)
    return f"{import_path(encoder)}#{digest.hexdigest()[:8]}"


def name_vectors(encoder: Encoder, class_names: Sequence[str]) -> Array:
    """Return what an encoder makes of the names of the classes, one row a class.

    Args:
        encoder: From a list of strings to an array of one row each.
        class_names: As they are given to it.
    """
    if all(map(_NUMBER.fullmatch, class_names)):
        raise ValueError(
            f"hierarchy= names needs classes that are called by words, and these are only numbers, "
            f"such as {', '.join(class_names[:3])}; give hierarchy= features, or name the classes."
        )
    vectors = _encoded(encoder, list(class_names), "the names of the classes")
    return _checked(vectors, class_names)


@torch.no_grad()
def feature_means(encoder: Encoder, data: Data, config: Config, fabric: Fabric) -> Array:
    """Return the mean of the training samples' features, one row a class.

    Several processes encode a part of the samples each, and all get the same means up to
    rounding.

    Args:
        encoder: From a batch of inputs, as the model takes them but without augmentation, or from
            a list of sentences, to an array of one row each. A module is moved to the device and
            put in evaluation mode.
        data: Whose training samples are encoded, if they have a class; no others are looked at.
        config: Every setting filled in.
        fabric: Lightning Fabric, launched.
    """
    names, train = data.class_names, data.train.with_class()
    counts = np.bincount(train.targets.numpy(), minlength=len(names))
    if not counts.all():
        raise ValueError(
            f"the class {brief(names[int(counts.argmin())])!r} has no training samples, so "
            f"hierarchy= features cannot place it; leave the class out, or give another hierarchy."
        )
    if isinstance(encoder, nn.Module):
        encoder = encoder.to(fabric.device).eval()
    sums = torch.zeros(len(names), 0, dtype=torch.float64)
    for owners, vectors, share in _features(encoder, data, train, config, fabric):
        if not sums.shape[1]:
            sums = sums.new_zeros(len(names), vectors.shape[1])
        if vectors.shape[1] != sums.shape[1]:
            raise ValueError(
                f"encoder must return vectors of one length. Got {sums.shape[1]} numbers a sample "
                f"for one batch, and {vectors.shape[1]} for another."
            )
        if share:  # else another process has these samples too
            sums.index_add_(0, owners, torch.from_numpy(vectors).double())
    if fabric.world_size > 1:
        sums = sum_over(fabric, sums.to(fabric.device)).cpu()
    return _checked(sums.numpy() / counts[:, None], names)


def _features(
    encoder: Encoder, data: Data, train: Split, config: Config, fabric: Fabric
) -> Iterator[tuple[Tensor, Array, float]]:
    """Yield the classes of a batch of this process, its features, and `Batch.share`."""
    batches = Batches(
        train,
        transform_for(data, config),
        config.batch_size or 1,
        device=fabric.device,
        rank=fabric.global_rank,
        world=fabric.world_size,
        workers=config.workers,
    )
    sentences = train.sentences
    for batch in batches.in_order():
        if sentences is None:
            what = f"a batch of shape {tuple(batch.inputs.shape)} and type {batch.inputs.dtype}"
            vectors = _encoded(encoder, batch.inputs, what)
        else:
            rows = batch.rows.tolist()
            vectors = _encoded(encoder, [sentences[row] for row in rows], "a list of sentences")
        yield batch.targets.cpu(), vectors, batch.share


def _encoded(encoder: Encoder, inputs: Any, what: str) -> Array:
    """Return what an encoder makes of inputs, or raise a ValueError that says what is wrong."""
    try:
        vectors = to_floats(encoder(inputs), "what it returns")
    except _FAILURES as error:
        raise ValueError(
            f"encoder must take {what} and return an array of numbers, one row each. Got "
            f"{type(error).__name__}: {brief(error)}"
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(inputs) or not vectors.shape[1]:
        raise ValueError(
            f"encoder must return an array of the shape (N, D), one row for each of what it is "
            f"given. Got the shape {vectors.shape} for {len(inputs)} of them."
        )
    return vectors


def _checked(vectors: Array, class_names: Sequence[str]) -> Array:
    """Return vectors of classes that have distances, or raise a ValueError that names a class."""
    wrong = {"a NaN or an infinity in": ~np.isfinite(vectors).all(1), "zeros for": ~vectors.any(1)}
    for what, are_wrong in wrong.items():
        if are_wrong.any():
            name = brief(class_names[int(are_wrong.argmax())])
            raise ValueError(
                f"encoder must return finite vectors that are not zero. Got {what} the vector of "
                f"the class {name!r}."
            )
    return vectors
