"""CoarseToFineClassifier: the paper's method behind fit and predict."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn_cases import NAMES, grouped, quick
from torch import nn
from torch.utils.data import TensorDataset

from coarse2fine import (
    CoarseToFineLoss,
    Curriculum,
    Hierarchy,
    capped_length,
    epochs_to_reach,
)
from coarse2fine.integrations._sklearn_inputs import validation_mask
from coarse2fine.integrations._sklearn_samples import SampleBatches

# On so few samples a baseline may be slow to level off; how slow depends on the machine.
pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")

SEED = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # what random_state=0 gives


def linear(in_features, num_classes):
    return nn.Linear(in_features, num_classes)


@pytest.fixture(scope="module")
def data():
    return grouped()


@pytest.fixture(scope="module")
def fitted(data):
    return quick().fit(*data)


# ------------------------------------------------------------------------------ the method


def test_after_fit_it_tells_what_it_learned(data, fitted):
    X, y = data
    assert fitted.classes_.tolist() == list(range(8))
    assert fitted.n_features_in_ == 6
    assert fitted.hierarchy_.class_names == tuple("01234567")
    assert fitted.hierarchy_ == Hierarchy.from_classifier(
        fitted_baseline(data).module_, class_names=list("01234567")
    )
    assert fitted.n_iter_ == len(fitted.history_) == len(fitted.baseline_history_) == 18
    assert isinstance(fitted.module_, nn.Module)
    assert fitted.score(X, y) > 0.8


def fitted_baseline(data):
    return quick(curriculum_epochs=0).fit(*data)


def test_the_levels_rise_by_the_validation_accuracies(data):
    classifier = quick(lr=3e-3, max_epochs=40).fit(*data)
    criterion = CoarseToFineLoss(classifier.hierarchy_)
    curriculum = Curriculum(criterion, patience=5, total_epochs=40)
    for row in classifier.history_:
        assert row["level"] == curriculum.level
        curriculum.step(row["valid_level_acc"])
    assert classifier.curriculum_length_ == curriculum.finest_epoch > 1
    assert "valid_level_acc" not in classifier.baseline_history_[0]


def test_the_coarse_levels_take_at_most_half_of_the_epochs(data):
    still = {"lr": 1e-30, "optimizer": torch.optim.SGD, "patience": 0}
    pairs = Hierarchy.from_levels([np.arange(8) // 2])
    classifier = quick(hierarchy=pairs, max_epochs=8, **still).fit(*data)
    assert classifier.history_[:, "level"] == [0] * 4 + [1] * 4
    assert classifier.curriculum_length_ == 4


def test_the_levels_rise_as_the_paper_says_by_choice(data):
    fitted = quick(curriculum_epochs="reach-90").fit(*data)
    curriculum = Curriculum(CoarseToFineLoss(fitted.hierarchy_), epochs=fitted.curriculum_length_)
    expected = [curriculum.level_at(epoch) for epoch in range(fitted.n_iter_)]
    assert fitted.history_[:, "level"] == expected
    assert expected[0] == 0
    assert expected[-1] == len(fitted.hierarchy_.levels) - 1 > 0
    reached = epochs_to_reach(fitted.baseline_history_[:, "valid_acc"])
    assert fitted.curriculum_length_ == max(min(reached, 18 // 3), expected[-1])


def test_a_curriculum_that_would_take_too_long_is_cut_with_a_warning(data):
    with pytest.warns(UserWarning, match="a third of them, 4. Train for longer"):
        classifier = quick(lr=1e-3, max_epochs=12, curriculum_epochs="reach-90").fit(*data)
    assert classifier.curriculum_length_ == 4


def test_plain_training_is_the_baseline_of_the_same_random_state(data, fitted):
    plain = fitted_baseline(data)
    assert plain.history_[:, "valid_acc"] == fitted.baseline_history_[:, "valid_acc"]
    assert plain.best_validation_score_ == plain.baseline_score_ == fitted.baseline_score_
    assert (plain.hierarchy_, plain.curriculum_length_) == (None, 0)
    assert set(plain.history_[:, "level"]) == {0}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"class_weight": "balanced", "label_smoothing": 0.1, "weight_decay": 0.01},
        {"optimizer": torch.optim.SGD, "lr": 0.3},
    ],
)
@pytest.mark.parametrize("rule", ["adaptive", "reach-90"])
def test_a_loop_by_hand_finds_the_same_weights(settings, rule):
    X, y = grouped(120)
    X, y = X[y != 3][:90], y[y != 3][:90]  # so that classes differ in size
    settings = {"patience": 0, "method": "continuous", "curriculum_epochs": rule, **settings}
    classifier = quick(module=linear, **settings).fit(X, y)
    weights = by_hand(classifier, X, y)
    torch.testing.assert_close(dict(classifier.module_.state_dict()), weights)


def by_hand(settings, inputs, y):
    """The weights that the method leads to, by a plain loop in torch."""
    classes, y = np.unique(y, return_inverse=True)
    valid = validation_mask(y, 0.2, SEED)
    torch.manual_seed(SEED)
    model = nn.Linear(6, len(classes))
    per_class = compute_class_weight(settings.class_weight, classes=np.arange(len(classes)), y=y)
    options = {"label_smoothing": settings.label_smoothing}
    if settings.class_weight:
        options["weight"] = torch.tensor(per_class, dtype=torch.float32)
    x, targets = torch.tensor(inputs, dtype=torch.float32), torch.tensor(y)

    def train(model, criterion, curriculum=None):
        torch.manual_seed(SEED)
        kind = settings.optimizer
        optimiser = kind(model.parameters(), settings.lr, weight_decay=settings.weight_decay)
        found = []
        for epoch in range(18):
            if curriculum and not curriculum.is_adaptive:
                curriculum.step(epoch=epoch)
            rows = torch.from_numpy(np.flatnonzero(~valid))
            for batch in rows[torch.randperm(len(rows))].split(16):
                optimiser.zero_grad()
                criterion(model(x[batch]), targets[batch]).backward()
                optimiser.step()
            logits = model(x[valid]).detach()
            score = accuracy(logits, np.arange(len(classes)))
            found.append((score, copy.deepcopy(model.state_dict())))
            if curriculum and curriculum.is_adaptive:
                curriculum.step(accuracy(logits, hierarchy.levels[curriculum.level]))
        return found

    def accuracy(logits, clusters):
        mass = logits.softmax(1).numpy() @ np.eye(max(clusters) + 1)[clusters]
        return np.average(mass.argmax(1) == clusters[y[valid]], weights=per_class[y[valid]])

    baseline = copy.deepcopy(model)
    scores = train(baseline, nn.CrossEntropyLoss(**options))
    baseline.load_state_dict(max(scores, key=lambda pair: pair[0])[1])
    hierarchy = Hierarchy.from_classifier(baseline)
    criterion = CoarseToFineLoss(hierarchy, **options)
    if settings.curriculum_epochs == "adaptive":
        length = {"patience": 5, "total_epochs": 18}
    else:
        reached = capped_length(epochs_to_reach([score for score, _ in scores]), 18)
        length = {"epochs": max(reached, len(hierarchy.levels) - 1)}
    curriculum = Curriculum(criterion, **length)
    scores = train(model, criterion, curriculum)
    return dict(max(scores[curriculum.finest_epoch :], key=lambda pair: pair[0])[1])


def test_only_epochs_at_the_finest_level_count(data):
    pairs = Hierarchy.from_levels([np.arange(8) // 2])
    still = quick(lr=1e-30, optimizer=torch.optim.SGD, hierarchy=pairs, curriculum_epochs=6)
    classifier = still.set_params(max_epochs=50, patience=2).fit(*data)
    # Three epochs on pairs; then the first at the finest level is the best, and two are not.
    assert classifier.history_[:, "level"] == [0, 0, 0, 1, 1, 1]


def test_the_kept_weights_are_those_of_the_best_score(data):
    X, y = data
    classifier = quick(max_epochs=20, lr=0.05, patience=3).fit(X, y)
    valid = validation_mask(y, 0.2, SEED)
    assert classifier.score(X[valid], y[valid]) == classifier.best_validation_score_


def test_two_classes_are_trained_plainly_and_without_a_word(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = pickle.loads(pickle.dumps(quick().fit(X, y // 4)))
    assert classifier.hierarchy_ is None
    assert classifier.history_ == classifier.baseline_history_
    assert classifier.score(X, y // 4) > 0.9


# ---------------------------------------------------------------------------- the hierarchy


def test_a_given_hierarchy_and_length_need_no_baseline(data, tmp_path):
    pairs = Hierarchy.from_levels([np.arange(8) // 2])
    pairs.save(tmp_path / "pairs.json")
    for hierarchy in (pairs, tmp_path / "pairs.json", str(tmp_path / "pairs.json")):
        classifier = quick(hierarchy=hierarchy, curriculum_epochs=np.int64(4)).fit(*data)
        assert classifier.hierarchy_.clusters(0) == ((0, 1), (2, 3), (4, 5), (6, 7))
        assert classifier.history_[:, "level"] == [0] * 2 + [1] * 16
        assert classifier.baseline_history_ is classifier.baseline_score_ is None


def test_the_hierarchy_may_be_read_from_another_network(data):
    other = nn.Linear(5, 8)
    classifier = quick(hierarchy=other, curriculum_epochs=4).fit(*data)
    assert classifier.hierarchy_.num_clusters == Hierarchy.from_classifier(other).num_clusters


def test_the_hierarchy_may_be_made_from_what_a_file_holds(data, tmp_path):
    weight = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    torch.save({"fc.weight": weight}, tmp_path / "w.pt")
    settings = {"hierarchy": tmp_path / "w.pt", "linkage": "complete", "curriculum_epochs": 4}
    expected = Hierarchy.from_embeddings(weight, linkage="complete", class_names=list("01234567"))
    assert quick(**settings).fit(*data).hierarchy_ == expected
    expected.save(tmp_path / "h.json")
    with pytest.raises(ValueError, match=r"h.json leaves no choice of linkage"):
        quick(**settings | {"hierarchy": tmp_path / "h.json"}).fit(*data)


def test_the_classes_of_a_taxonomy_may_come_in_any_order(data):
    X, y = data
    tree = {"plant": ["elm", "ash"], "beast": ["cat", "dog", "gnu", "fox", "bee", "hen"]}
    hierarchy = Hierarchy.from_taxonomy(tree)
    classifier = quick(hierarchy=hierarchy, curriculum_epochs=2).fit(X, NAMES[y])
    assert classifier.hierarchy_.class_names == tuple(NAMES)
    assert classifier.hierarchy_.levels[0].tolist() == [0, 1, 1, 1, 0, 1, 1, 1]
    assert classifier.hierarchy_.cluster_names == (("plant", "beast"),)


def test_a_flat_hierarchy_means_plain_training(data):
    with pytest.warns(UserWarning, match="plain training"):
        flat = Hierarchy.from_levels([np.arange(8)])
    classifier = quick(hierarchy=flat).fit(*data)
    assert (classifier.hierarchy_, classifier.curriculum_length_) == (None, 0)


def test_the_metric_may_look_at_the_validation_confusion(data):
    X, y = data
    classifier = quick(metric="confusion_distance").fit(X, y)
    valid = validation_mask(y, 0.2, SEED)
    pairs = fitted_baseline(data).predict(X[valid]), y[valid]
    by_hand = Hierarchy.from_confusion(pairs, num_classes=8, class_names=list("01234567"))
    assert classifier.hierarchy_ == by_hand


def test_the_metric_may_be_a_matrix(data):
    distances = np.abs(np.subtract.outer(np.arange(8) // 4, np.arange(8) // 4)) + 0.0
    classifier = clone(quick(metric=distances, linkage="complete")).fit(*data)
    assert classifier.hierarchy_ == Hierarchy.from_distances(
        distances, linkage="complete", class_names=list("01234567")
    )


# ------------------------------------------------------------------------------ the network


def test_columns_of_any_scale_will_do(data):
    X, y = data
    stretched = X * 10.0 ** np.arange(-6, 6, 2) + 1e6 * np.arange(6)
    stretched = np.c_[stretched, np.full(len(X), 7.0)]  # and one that says nothing
    plain = quick().fit(np.c_[X, np.zeros(len(X))], y).predict_proba(np.c_[X, np.zeros(len(X))])
    np.testing.assert_allclose(quick().fit(stretched, y).predict_proba(stretched), plain, atol=1e-3)


def test_only_the_samples_to_train_on_set_the_scale(data):
    X, y = data
    module = quick().fit(X, y).module_
    kept = X[~validation_mask(y, 0.2, SEED)]
    np.testing.assert_allclose(module.mean, kept.mean(axis=0))
    np.testing.assert_allclose(module.deviation, kept.std(axis=0))


def test_a_module_that_is_given_is_copied_and_starts_from_its_weights(data):
    X, y = data
    module = nn.Linear(6, 8)
    before = copy.deepcopy(module.state_dict())
    still = quick(module=module, lr=1e-30, optimizer=torch.optim.SGD, curriculum_epochs=0)
    logits = module(torch.tensor(X, dtype=torch.float32))
    np.testing.assert_allclose(
        still.fit(X, y).predict_proba(X), logits.softmax(1).detach(), rtol=1e-5
    )
    quick(module=module, curriculum_epochs=2).fit(X, y)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_lazy_layers_get_their_sizes_from_the_data(data):
    module = nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.Linear(16, 8))
    assert quick(module=module).fit(*data).score(*data) > 0.8


@pytest.mark.parametrize(
    ("count", "size", "to_train", "to_validate"),
    [
        (22, 7, [7, 7, 8], [7, 7, 7, 1]),
        (23, 7, [7, 7, 7, 2], [7, 7, 7, 2]),
        (14, 7, [7, 7], [7, 7]),
        (3, 1, [1, 1, 1], [1, 1, 1]),
        (1, 7, [1], [1]),
    ],
)
def test_one_sample_left_over_joins_the_batch_before_it(count, size, to_train, to_validate):
    dataset = TensorDataset(torch.arange(count))
    for shuffle, lengths in ((True, to_train), (False, to_validate)):
        batches = [batch for (batch,) in SampleBatches(dataset, size, shuffle)]
        assert [len(batch) for batch in batches] == lengths
        assert sorted(torch.cat(batches).tolist()) == list(range(count))


def test_a_batch_size_that_leaves_one_sample_over_suits_batch_normalisation(data):
    module = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 8))
    classifier = quick(module=module, batch_size=127, lr=0.1).fit(*data)  # 128 are to train on
    assert classifier.score(*data) > 0.8


def test_a_module_may_take_images():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 20)
    images = rng.standard_normal((80, 1, 6, 6))
    images[np.arange(80), 0, y + 1, y + 1] += 8

    def make_network(in_channels, num_classes):
        return nn.Sequential(
            nn.Conv2d(in_channels, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, num_classes)
        )

    classifier = quick(module=make_network, lr=0.01).fit(images, y)
    assert classifier.score(images, y) > 0.9
    assert classifier.hierarchy_.num_classes == 4
    with pytest.raises(ValueError, match="Found array with dim 4"):
        quick().fit(images, y)


def test_a_final_layer_that_cannot_be_found_is_named_before_any_training(data):
    class Twins(nn.Module):
        def __init__(self, num_classes):
            super().__init__()
            self.one, self.other = nn.Linear(6, num_classes), nn.Linear(6, num_classes)

        def forward(self, inputs):
            assert not self.training, "training has begun"
            return self.one(inputs) + self.other(inputs)

    with pytest.raises(ValueError, match="could be any of 'one' .* say which: head='one'"):
        quick(module=Twins).fit(*data)
    with pytest.raises(AssertionError, match="training has begun"):
        quick(module=Twins, head="other").fit(*data)
