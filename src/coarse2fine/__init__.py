"""Coarse-to-fine curriculum learning for any classifier.

Train first on coarse groups of the classes, then on finer ones, and get a better model at
no extra cost when it is deployed (Stretcu et al., 2021).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import adjusted_rand_index, distance_correlation, level_agreements
    from .amendment import hierarchical_ensemble, risk_minimising_predictions
    from .clustering import Clustering, cluster_distances, cluster_embeddings
    from .curriculum import Curriculum, level_accuracy
    from .distances import class_distances
    from .errors import MissingExtraError, RunError
    from .functional import coarse_cross_entropy, coarse_linear_cross_entropy, coarse_log_softmax
    from .heads import class_vectors, find_head, replace_head
    from .hierarchical_metrics import (
        hierarchical_f1,
        hierarchical_precision,
        hierarchical_recall,
        hops,
        level_calibration_errors,
    )
    from .hierarchy import Hierarchy
    from .inference.classifier import Classifier, Prediction
    from .inference.export import Export, export_model
    from .inference.folder import load_export
    from .inference.load import load_classifier
    from .lengths import best_candidate, capped_length, epochs_to_reach, share_of_best_epoch
    from .linear_loss import CoarseToFineLinearLoss
    from .loss import CoarseToFineLoss
    from .metrics import (
        balanced_accuracy,
        confusion_matrix,
        height_distribution,
        level_accuracies,
        mean_height,
        mistake_heights,
        mistake_severity,
        top_k_accuracy,
    )
    from .nodes import Nodes
    from .prediction import LevelPredictor
    from .report import write_report
    from .runs.config import Config
    from .runs.result import Result, RunResult
    from .training.fit import fit

__version__ = "0.2.0.dev0"

# Resolved on first use, so that importing the package, or only a part of it, is cheap.
_HOMES = {
    "Classifier": "inference.classifier",
    "Clustering": "clustering",
    "CoarseToFineLinearLoss": "linear_loss",
    "CoarseToFineLoss": "loss",
    "Config": "runs.config",
    "Curriculum": "curriculum",
    "Export": "inference.export",
    "Hierarchy": "hierarchy",
    "LevelPredictor": "prediction",
    "MissingExtraError": "errors",
    "Nodes": "nodes",
    "Prediction": "inference.classifier",
    "Result": "runs.result",
    "RunError": "errors",
    "RunResult": "runs.result",
    "adjusted_rand_index": "agreement",
    "balanced_accuracy": "metrics",
    "best_candidate": "lengths",
    "capped_length": "lengths",
    "class_distances": "distances",
    "class_vectors": "heads",
    "cluster_distances": "clustering",
    "cluster_embeddings": "clustering",
    "coarse_cross_entropy": "functional",
    "coarse_linear_cross_entropy": "functional",
    "coarse_log_softmax": "functional",
    "confusion_matrix": "metrics",
    "distance_correlation": "agreement",
    "epochs_to_reach": "lengths",
    "export_model": "inference.export",
    "find_head": "heads",
    "fit": "training.fit",
    "height_distribution": "metrics",
    "hierarchical_ensemble": "amendment",
    "hierarchical_f1": "hierarchical_metrics",
    "hierarchical_precision": "hierarchical_metrics",
    "hierarchical_recall": "hierarchical_metrics",
    "hops": "hierarchical_metrics",
    "level_accuracies": "metrics",
    "level_accuracy": "curriculum",
    "level_agreements": "agreement",
    "level_calibration_errors": "hierarchical_metrics",
    "load_classifier": "inference.load",
    "load_export": "inference.folder",
    "mean_height": "metrics",
    "mistake_heights": "metrics",
    "mistake_severity": "metrics",
    "replace_head": "heads",
    "risk_minimising_predictions": "amendment",
    "share_of_best_epoch": "lengths",
    "top_k_accuracy": "metrics",
    "write_report": "report",
}

__all__ = [
    "Classifier",
    "Clustering",
    "CoarseToFineLinearLoss",
    "CoarseToFineLoss",
    "Config",
    "Curriculum",
    "Export",
    "Hierarchy",
    "LevelPredictor",
    "MissingExtraError",
    "Nodes",
    "Prediction",
    "Result",
    "RunError",
    "RunResult",
    "adjusted_rand_index",
    "balanced_accuracy",
    "best_candidate",
    "capped_length",
    "class_distances",
    "class_vectors",
    "cluster_distances",
    "cluster_embeddings",
    "coarse_cross_entropy",
    "coarse_linear_cross_entropy",
    "coarse_log_softmax",
    "confusion_matrix",
    "distance_correlation",
    "epochs_to_reach",
    "export_model",
    "find_head",
    "fit",
    "height_distribution",
    "hierarchical_ensemble",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "hops",
    "level_accuracies",
    "level_accuracy",
    "level_agreements",
    "level_calibration_errors",
    "load_classifier",
    "load_export",
    "mean_height",
    "mistake_heights",
    "mistake_severity",
    "replace_head",
    "risk_minimising_predictions",
    "share_of_best_epoch",
    "top_k_accuracy",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
