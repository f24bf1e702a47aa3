"""The whole method as a scikit-learn classifier, trained by skorch.

CoarseToFineClassifier().fit(X, y).predict(X)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..clustering import Linkage
from ..curriculum import equal_shares
from ..errors import require
from ..heads import class_vectors
from ..hierarchy import CONFUSION_METRICS, Hierarchy
from ..runs.config import ADAPTIVE
from ..runs.result import BASELINE
from ._curriculum import REACH_90, HierarchySource, hierarchy_from, length_of
from ._sklearn_choice import best_method, best_score, verdict
from ._sklearn_inputs import check_can_validate, check_settings, fresh_module, validation_mask

require("skorch", "sklearn")  # says how to install it where it is missing
# ruff: noqa: E402
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state, multiclass  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from ._sklearn_labels import Labels, read_labels
from ._sklearn_levels import LevelClassifier as LevelClassifier
from ._sklearn_mlp import StandardisedMLP
from ._sklearn_net import CONTINUOUS, Training, check_finest_fits, seeded
from ._sklearn_samples import Rows, Samples, canonical, class_weights, merged, moments, weighted
from ._sklearn_scorers import hierarchical_scorer as hierarchical_scorer


class CoarseToFineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A neural network trained from coarse to fine, as a scikit-learn classifier.

    `fit` trains a baseline by plain cross-entropy, makes the hierarchy of the classes from
    its final layer, and trains the same network again through the levels, from the same
    initial weights and for at most as many epochs. Of the two it keeps the one with the
    better validation accuracy, the baseline where they are equal. Two classes have no
    levels: the baseline is the result then.

    Args:
        module: The network: a class or function that makes one, called with those of the
            arguments ``num_classes``, ``in_features``, ``in_channels``, ``image_size`` and
            ``input_shape`` that it names; a name of `coarse2fine.models.MODELS`; or an
            ``nn.Module``, a copy of which is trained from the weights it has. It gets
            float32 and returns logits. Defaults to None: two hidden layers behind one that
            standardises the columns.
        width: The size of the default network's hidden layers. Defaults to 128.
        dropout: Of the default network. Defaults to 0.1.
        max_epochs: The most epochs for the baseline and for the curriculum each. Defaults
            to 100.
        patience: Stop after so many epochs without a better validation accuracy, counted
            from the finest level on; 0 for never. Defaults to 20.
        lr: The learning rate. Defaults to 2e-3.
        batch_size: Defaults to 128.
        optimizer: A class of ``torch.optim``, or a ``functools.partial`` of one. Defaults
            to ``torch.optim.Adam``.
        weight_decay: Of the optimiser. Defaults to 0.0.
        label_smoothing: Of the loss. Defaults to 0.0.
        class_weight: ``"balanced"`` or a dict class → weight, for the loss and for the
            validation accuracy, which is the balanced accuracy then. A sample that is known no
            finer than its cluster has the mean weight of the classes in it, and does not count
            in the balance. Defaults to None: all are 1.
        validation_fraction: The share of the samples to validate on, of every class alike.
            Defaults to 0.2.
        hierarchy: A `Hierarchy`, a K×K matrix of distances, a trained network, or the path
            of any file or run that a hierarchy is read from. Where its classes have no
            names, they are in the order of ``classes_``; where they have, y may hold names of
            clusters too, of samples that are known no finer. Defaults to None: made from the
            baseline.
        metric: How far apart classes are, see `Hierarchy.from_classifier`; the confusion
            metrics look at the validation samples. Defaults to ``"embedding"``.
        linkage: See `cluster_distances`. Defaults to ``"single"``.
        head: The name of the module's final layer, where it cannot be found. Defaults to
            None.
        curriculum_epochs: ``"adaptive"``: a level is left when its validation accuracy has not
            improved for five epochs, and the coarse levels take at most half of `max_epochs`.
            Or T, the length of the curriculum in epochs, 0 for plain training. Or
            ``"reach-90"``, the paper's rule for T: the epochs until the baseline reached 90% of
            its best validation accuracy, at most a third of `max_epochs`, and at least one for
            each coarse level. Defaults to ``"adaptive"``.
        method: Which network to keep: ``"baseline"`` (only that is trained then),
            ``"continuous"``, the one trained through the levels, or ``"best"``, whichever
            validates better. Defaults to ``"best"``.
        device: Where to train. Defaults to ``"cpu"``.
        random_state: Of everything random. Defaults to None: drawn from numpy's global
            random numbers, as everywhere in scikit-learn.
        verbose: 1 to print a line an epoch, and which network is kept. Defaults to 0.

    Attributes:
        classes_: The classes, sorted: the labels or, where y may name clusters, those of the
            hierarchy.
        best_: Which network was kept, ``"baseline"`` or ``"continuous"``.
        val_accuracies_: The best validation accuracy, at the finest level, of each that was
            trained, by the same names. Samples that are known no finer than their cluster do
            not count.
        best_validation_score_: That of the network that was kept.
        hierarchy_: The levels that were trained through, though perhaps the baseline was
            kept; None where training was plain.
        curriculum_length_: T, or how many epochs the coarse levels of an adaptive curriculum
            took; 0 where training was plain.
        history_: skorch's history of the training through the levels, with the ``level`` of
            each epoch; that of the baseline where training was plain.
        baseline_history_: The history of the baseline; None where none was needed, as the
            hierarchy was given and T too, or `method` was ``"continuous"``.
        baseline_score_: Its best validation accuracy, or None.
        net_: The skorch net that was kept, fit for prediction only.
        n_iter_: How many epochs its training took.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CoarseToFineClassifier(max_epochs=15, lr=0.01, random_state=0).fit(X, y)
        >>> classifier.score(X, y) > 0.9
        True
        >>> classifier.hierarchy_.num_clusters
        (2, 3)
    """

    def __init__(
        self,
        module: str | nn.Module | Callable[..., nn.Module] | None = None,
        *,
        width: int = 128,
        dropout: float = 0.1,
        max_epochs: int = 100,
        patience: int = 20,
        lr: float = 2e-3,
        batch_size: int = 128,
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
        weight_decay: float = 0.0,
        label_smoothing: float = 0.0,
        class_weight: str | Mapping[Any, float] | None = None,
        validation_fraction: float = 0.2,
        hierarchy: HierarchySource | None = None,
        metric: Any = "embedding",
        linkage: Linkage = "single",
        head: str | None = None,
        curriculum_epochs: int | str = ADAPTIVE,
        method: str = "best",
        device: str | torch.device = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.module = module
        self.width = width
        self.dropout = dropout
        self.max_epochs = max_epochs
        self.patience = patience
        self.lr = lr
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.label_smoothing = label_smoothing
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.hierarchy = hierarchy
        self.metric = metric
        self.linkage = linkage
        self.head = head
        self.curriculum_epochs = curriculum_epochs
        self.method = method
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CoarseToFineClassifier:  # noqa: N803
        """Train the baseline and then, through the levels, the same network again.

        Args:
            X: Rows of numbers (N, F), also as a sparse matrix; where `module` is given, of any
                shape (N, F, ...).
            y: The label of each: its class or, where `hierarchy` knows the classes by name, the
                name of any of its classes and clusters.
            sample_weight: The weight of each, in the loss and in the validation accuracy; 2 is
                the same as the sample twice, and 0 as without it. Defaults to None: all are 1.
        """
        check_settings(self)
        rows = self._rows(X, y, sample_weight)
        # Refused here, if at all, before anything is trained.
        given = None if self.hierarchy is None else self._hierarchy_from(self.hierarchy)
        known = read_labels(rows.labels, given)
        self.classes_ = known.classes
        rows = merged(rows._replace(labels=known.targets))
        nets = self._train(self._training(rows, known), known.hierarchy)
        self.val_accuracies_ = {name: best_score(net.history) for name, net in nets.items()}
        self.best_ = best_method(self.val_accuracies_, self.method)
        if self.verbose:
            print(verdict(self.best_, self.val_accuracies_))  # noqa: T201, as skorch does
        self.net_ = nets[self.best_]
        self.best_validation_score_ = self.val_accuracies_[self.best_]
        self.n_iter_ = len(self.net_.history)
        baseline = nets.get(BASELINE)
        self.history_ = nets[CONTINUOUS if CONTINUOUS in nets else BASELINE].history
        self.baseline_history_ = baseline.history if baseline else None
        self.baseline_score_ = self.val_accuracies_.get(BASELINE)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities (N, K) of the classes, in the order of ``classes_``."""
        check_is_fitted(self)
        samples = self._samples(canonical(self._checked(X, reset=False)))
        found: NDArray[np.float64] = self.net_.predict_proba(samples)
        return found

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable label of each row."""
        probabilities = self.predict_proba(X)  # which says so where it is not fitted
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    @property
    def module_(self) -> nn.Module:
        """The trained network."""
        module: nn.Module = self.net_.module_
        return module

    def _checked(self, *samples: Any, reset: bool = True) -> Any:
        """Return X, and y where it is given, as scikit-learn checks them."""
        # The default network computes in double precision, as scikit-learn does, so that a row
        # has the same probabilities in any company; Apple's devices do not have it.
        is_double = self.module is None and torch.device(self.device).type != "mps"
        dtype = np.float64 if is_double else np.float32
        allow_nd = self.module is not None
        return validate_data(
            self, *samples, reset=reset, dtype=dtype, allow_nd=allow_nd, accept_sparse="csr"
        )

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ----------------------------------------------------------------- what all training needs

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:  # noqa: N803
        """Return the samples that have a weight, with their labels."""
        inputs, labels = self._checked(X, y)
        multiclass.check_classification_targets(labels)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, inputs, dtype=np.float64)
        return weighted(Rows(canonical(inputs), labels, sample_weight))

    def _training(self, rows: Rows, known: Labels) -> Training:
        """Return the samples, divided, the network as it starts, and the settings."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        is_valid = validation_mask(rows.labels, self.validation_fraction, seed)
        check_can_validate(rows.labels[is_valid], len(self.classes_))
        to_train = rows.take(~is_valid)
        samples, valid = self._samples(*to_train), self._samples(*rows.take(is_valid))
        with seeded(seed):
            module = self._fresh_module(to_train, samples)
        of_classes = class_weights(self.class_weight, self.classes_, rows)
        labelled_by = known.hierarchy if known.has_nodes else None
        return Training(self, module, samples, valid, of_classes, seed, labelled_by)

    def _samples(self, *arrays: Any) -> Samples:
        return Samples(*arrays, is_dense=self.module is not None)

    def _fresh_module(self, rows: Rows, samples: Samples) -> nn.Module:
        """Return the network with its initial weights."""
        classes = len(self.classes_)
        if self.module is None:
            return StandardisedMLP(classes, *moments(rows), self.width, self.dropout)
        return fresh_module(self.module, classes, samples[torch.arange(min(2, len(samples)))][0])

    # ------------------------------------------------------------------------ the curriculum

    def _train(self, training: Training, given: Hierarchy | None) -> dict[str, Any]:
        """Return the nets of the baseline, if it was needed, and of the curriculum, if any."""
        is_flat = len(self.classes_) == 2 or (given is not None and len(given.levels) == 1)
        if is_flat or self.curriculum_epochs == 0 or self.method == BASELINE:
            self.hierarchy_, self.curriculum_length_ = None, 0
            return {BASELINE: training.train()}
        self._check_early(training, given)
        nets = {BASELINE: training.train()} if self._needs_baseline(given) else {}
        self.hierarchy_ = given or self._hierarchy_from_baseline(nets[BASELINE], training)
        accuracies = nets[BASELINE].history[:, "valid_acc"] if nets else ()
        length = length_of(
            self.curriculum_epochs, accuracies, self.max_epochs, len(self.hierarchy_.levels)
        )
        nets[CONTINUOUS] = training.train(self.hierarchy_, length)
        self.curriculum_length_ = nets[CONTINUOUS].finest_epoch_ if length is None else length
        return nets

    def _needs_baseline(self, given: Hierarchy | None) -> bool:
        """Whether something is made from a baseline, or chosen between it and the curriculum."""
        is_chosen = self.curriculum_epochs == ADAPTIVE and self.method == "best"
        return given is None or self.curriculum_epochs == REACH_90 or is_chosen

    def _check_early(self, training: Training, given: Hierarchy | None) -> None:
        """Refuse before the baseline is trained what would be refused after it."""
        levels = len(given.levels) if given else 2  # at least
        is_number = not isinstance(self.curriculum_epochs, str)
        length = int(self.curriculum_epochs) if is_number else levels - 1
        check_finest_fits(equal_shares(length, levels)[-1], self.max_epochs)
        if given is None and not self._uses_confusion:
            class_vectors(training.module, self.head)

    def _hierarchy_from_baseline(self, baseline: Any, training: Training) -> Hierarchy:
        """Return the hierarchy of the baseline's final layer, or of its confusion."""
        pairs = None
        if self._uses_confusion:
            pairs = baseline.predict(training.valid), training.valid.targets.numpy()
        names = [str(label) for label in self.classes_]
        options = {"confusion": pairs, "seed": training.seed, "class_names": names}
        return self._hierarchy_from(baseline.module_, **options)

    def _hierarchy_from(self, source: HierarchySource, **more: Any) -> Hierarchy:
        options = {"metric": self.metric, "linkage": self.linkage, "head": self.head}
        return hierarchy_from(source, **options, **more)

    @property
    def _uses_confusion(self) -> bool:
        return isinstance(self.metric, str) and self.metric in CONFUSION_METRICS
