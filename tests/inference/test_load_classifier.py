"""Which model is loaded, and that it gives what the training's own evaluation gives."""

import shutil

import numpy as np
import pytest
import torch

from coarse2fine import Result, RunError, fit, load_classifier
from coarse2fine.data import load_data
from coarse2fine.runs.restore import load_trained


def expected(run, data):
    """The probabilities by the model and preprocessing of the training."""
    best = Result.load(run).best
    model = load_trained(best.path)
    source = load_data(str(data), class_names=model.class_names, columns=model.columns or None)
    return model.logits(source.train).softmax(1).numpy()


def test_images_are_prepared_as_in_training(image_run, images):
    photos = image_run.parent / "photos"
    assert images.predict_proba(photos) == pytest.approx(expected(image_run, photos), abs=1e-6)


def test_sentences_are_prepared_as_in_training(text_run, text):
    file = text_run.parent / "intents.csv"
    assert text.predict_proba(file) == pytest.approx(expected(text_run, file), abs=1e-6)


def test_rows_are_prepared_as_in_training(table_run, table):
    file = table_run.parent / "table.csv"
    assert table.preprocessing.columns == ("width", "form=flat", "form=round", "height")
    assert table.predict_proba(file) == pytest.approx(expected(table_run, file), abs=1e-6)


def test_the_run_that_validates_best_is_loaded(table_run):
    best = Result.load(table_run).best
    loaded = load_classifier(table_run)
    weights = load_trained(best.path).model.state_dict()
    for name, tensor in loaded.model.state_dict().items():
        assert torch.equal(tensor, weights[name])
    assert loaded.description == (
        f"{'the baseline' if best.method == 'baseline' else best.method} of seed 0, validation "
        f"accuracy {100 * best.val_accuracy:.2f} %, test accuracy {100 * best.accuracy:.2f} % "
        f"({best.path})"
    )


def test_a_method_can_be_asked_for(table_run):
    for method, name in (("baseline", "the baseline of seed 0"), ("continuous", "continuous of")):
        loaded = load_classifier(table_run, method, seed=0)
        assert loaded.description.startswith(name)
    with pytest.raises(RunError, match="has no seed 3"):
        load_classifier(table_run, "baseline", 3)


def test_a_baseline_has_the_hierarchy_of_its_seed(table_run):
    of_method = load_classifier(table_run / "seed-0" / "continuous").hierarchy
    assert of_method is not None
    assert load_classifier(table_run, "baseline").hierarchy == of_method
    assert load_classifier(table_run / "best").hierarchy == of_method


def test_a_run_by_itself_has_its_own_hierarchy_or_none(table_run, tmp_path):
    for method in ("baseline", "continuous"):
        shutil.copytree(table_run / "seed-0" / method, tmp_path / method)
    alone = load_classifier(tmp_path / "baseline")
    assert alone.hierarchy is None
    assert next(alone.stream(np.zeros((1, 4)))).clusters == ()
    assert load_classifier(tmp_path / "continuous").hierarchy is not None


def test_a_model_of_ones_own_is_named_again(tmp_path):
    def make(num_classes):
        return torch.nn.Linear(3, num_classes)

    inputs, targets = torch.randn(40, 3), torch.arange(40) % 4
    result = fit((inputs, targets), model=make, epochs=2, curriculum_epochs=1, out=tmp_path / "run")
    loaded = load_classifier(result.path, model=make)
    assert loaded.predict_proba(inputs).shape == (40, 4)
    assert set(loaded.predict(inputs)) <= {"0", "1", "2", "3"}
    with pytest.raises(RunError, match="there is no run"):
        load_classifier(tmp_path / "nothing")
