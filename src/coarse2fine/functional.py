"""The marginalised loss (equation 1 of the paper) as pure functions.

At a level of the hierarchy any class in the target's cluster counts as right, so the loss is
the negative log of the cluster's probability: the log-sum-exp over all classes minus the
log-sum-exp over the classes of the target's cluster. The paper's equation 1 lacks the first
term; without it, the loss could be lowered without end by raising all logits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._candidates import Spans, check_nested, node_slices, spans_at
from ._level_loss import level_cross_entropy
from ._linear_layer import Layer
from ._linear_loss import level_linear_cross_entropy
from ._loss_checks import Options, checked_clusters, prepared
from ._marginal import cluster_log_softmax
from ._util.arrays import to_integers
from .nodes import Nodes

__all__ = ["coarse_cross_entropy", "coarse_linear_cross_entropy", "coarse_log_softmax"]


def coarse_cross_entropy(
    input: Tensor,
    target: Tensor,
    clusters: Any,
    *,
    nodes: Nodes | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy between logits over the classes and targets known up to their cluster.

    Takes all that `torch.nn.functional.cross_entropy` takes and follows the same formulas,
    with the log-probability of a class replaced by that of its cluster wherever it occurs.
    So class weights still belong to the target's class; of a target of class probabilities
    only the sum over each cluster matters; and label smoothing, which spreads a share of the
    target evenly over all K classes, gives each cluster a share in proportion to its size.
    If every class is a cluster of its own, this is torch's cross-entropy. Half-precision
    logits are converted to float32, and so is the loss, as under autocast.

    A target may also be a set of classes: a node of a hierarchy, or the candidates of a mask.
    Each of its classes stands for its whole cluster, and the loss is the negative log of the
    probability of them all, so that of all classes is 0. The weight of a set is the mean
    weight of its own classes, without those that the level adds.

    Args:
        input: Logits of shape (K), (N, K) or (N, K, d1, ...).
        target: Class indices of shape (), (N) or (N, d1, ...), or class probabilities of
            the shape of `input`, or a boolean mask of that shape: the candidates, at least
            one for each prediction. (On a GPU the loss of none is infinite.)
        clusters: The level: the cluster of each class, an array of length K.
        nodes: The nodes of a hierarchy that has this level; then the indices may be nodes,
            classes and clusters mixed. Defaults to None: they are classes.
        weight: A weight for each class. Defaults to None.
        ignore_index: The target index that is ignored; not with probabilities or a mask.
            Defaults to -100.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``. Defaults to ``"mean"``.
        label_smoothing: The share of the target that is spread evenly over the classes.
            Defaults to 0.0.

    Examples:
        >>> logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
        >>> coarse_cross_entropy(logits, torch.tensor([1]), [0, 0, 1, 1])
        tensor(0.1269)
        >>> logits.softmax(1)[0, :2].sum().log().neg()
        tensor(0.1269)
        >>> mask = torch.tensor([[False, True, True, False]])
        >>> coarse_cross_entropy(logits, mask, [0, 1, 2, 3])
        tensor(1.1269)
    """
    clusters = _clusters(clusters, input)
    # A partition's shapes depend on the values of `clusters`, which a compiled graph cannot.
    partition = None if torch.compiler.is_compiling() else prepared(clusters)
    options = Options(weight, ignore_index, reduction, label_smoothing)
    spans = None if nodes is None else _spans(nodes, clusters)
    return level_cross_entropy(input, target, clusters, partition, options, spans)


def coarse_linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    clusters: Any,
    *,
    linear_bias: Tensor | None = None,
    nodes: Nodes | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`coarse_cross_entropy` of a linear layer's outputs, which are never there all at once.

    For very many classes the logits and their gradient take far more memory than all else. Here
    they are computed in pieces, and so are the gradients of features, weight and bias, in the
    same pass as the loss. The result is that of
    ``coarse_cross_entropy(F.linear(input, linear_weight, linear_bias), target, clusters)`` up to
    rounding, and the arguments are named as those of `torch.nn.functional.linear_cross_entropy`.

    Features and weights in half precision, and all under autocast, are computed in float32, and
    the loss is float32. With ``reduction="none"`` and in a second backward pass the logits are
    computed again. Second derivatives work, but they need all logits at once.

    Targets of classes and nodes take the shortest way, and cost nothing if they are ignored.
    Label smoothing, and targets of probabilities and masks (which are themselves as large as the
    logits), take blocks of samples with all of their logits: slower, and still lean.

    Args:
        input: Features of shape (E), (N, E) or (..., E).
        linear_weight: The layer's weight, of shape (K, E). A `DTensor` that is divided by its
            classes is one that several processes share, see `CoarseToFineLinearLoss`.
        target: Class indices of the shape of `input` without E, or class probabilities or a
            boolean mask of candidates with K in the place of E.
        clusters: The level: the cluster of each class, an array of length K.
        linear_bias: The layer's bias, of shape (K). Defaults to None.
        nodes: See `coarse_cross_entropy`, as for all that follow. Defaults to None.
        weight: Defaults to None.
        ignore_index: Defaults to -100.
        reduction: Defaults to ``"mean"``.
        label_smoothing: Defaults to 0.0.

    Examples:
        >>> features, linear_weight = torch.tensor([[3.0, 1.0]]), torch.eye(4, 2)
        >>> coarse_linear_cross_entropy(features, linear_weight, torch.tensor([1]), [0, 0, 1, 1])
        tensor(0.0841)
        >>> coarse_cross_entropy(features @ linear_weight.T, torch.tensor([1]), [0, 0, 1, 1])
        tensor(0.0841)
    """
    clusters = checked_clusters(_clusters(clusters, input))
    layer = Layer(input, linear_weight, linear_bias)
    options = Options(weight, ignore_index, reduction, label_smoothing)
    spans = None if nodes is None else _spans(nodes, clusters)
    return level_linear_cross_entropy(layer, target, clusters, None, options, spans)


def coarse_log_softmax(input: Tensor, clusters: Tensor) -> Tensor:
    """Return, for every class, the log-probability of the cluster that it belongs to.

    Args:
        input: Logits of shape (N, K) or (N, K, d1, ...).
        clusters: The cluster of each class, a tensor of length K.

    Examples:
        >>> logits = torch.tensor([[0.0, 0.0, 0.0, 0.0]])
        >>> coarse_log_softmax(logits, torch.tensor([0, 0, 0, 1])).exp()
        tensor([[0.7500, 0.7500, 0.7500, 0.2500]])
    """
    return cluster_log_softmax(input, clusters)


def _clusters(given: Any, input: Tensor) -> Tensor:
    """Return the clusters of a level as a tensor on the device of the input."""
    if not isinstance(given, Tensor):
        given = torch.from_numpy(to_integers(given, "clusters"))
    found: Tensor = given.to(input.device)
    return found


def _spans(nodes: Nodes, clusters: Tensor) -> Spans:
    if not isinstance(nodes, Nodes):
        raise TypeError(f"nodes must be the Nodes of a hierarchy. Got {type(nodes).__name__}.")
    if not torch.compiler.is_compiling():
        check_nested(nodes, clusters)
    places, own = (part.to(clusters.device) for part in node_slices(nodes))
    return spans_at(places, own, clusters)
