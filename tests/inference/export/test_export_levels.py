"""What a model was calibrated to answer goes with its export."""

import json

import numpy as np
import pytest
from trainings import inputs_of, targets

from coarse2fine import Hierarchy, LevelPredictor, RunError, export_model, load_classifier
from coarse2fine.inference.folder import export_files

LEVELS = "levels.json"


@pytest.fixture
def calibrated(made):
    """A comparison, and its classifier once it was calibrated."""
    result = made("table")[0]
    classifier = load_classifier(result.path)
    # The logits of a better model, as a few epochs teach nothing to be sure of.
    known = 5 * np.eye(6)[targets()]
    classifier.level_predictor = LevelPredictor(classifier.hierarchy, 0.8).fit(known, targets())
    return result, classifier


@pytest.mark.usefixtures("without_programs")
def test_an_export_answers_as_the_classifier_does(calibrated, tmp_path):
    result, classifier = calibrated
    folder = tmp_path / "model"
    export_model(result, folder, level_predictor=classifier.level_predictor)
    assert folder / LEVELS in export_files(folder)
    loaded = load_classifier(folder)
    assert loaded.level_predictor.to_dict() == classifier.level_predictor.to_dict()
    assert loaded.answer(inputs_of("table")) == classifier.answer(inputs_of("table"))
    export_model(result, folder)  # which replaces all of it
    assert not (folder / LEVELS).exists()
    assert load_classifier(folder).level_predictor is None


@pytest.mark.usefixtures("without_programs")
def test_a_damaged_file_is_named(calibrated, tmp_path):
    result, classifier = calibrated
    folder = tmp_path / "model"
    export_model(result, folder, level_predictor=classifier.level_predictor)
    content = json.loads((folder / LEVELS).read_text())
    other = Hierarchy.from_levels([[0, 0, 0, 0, 0, 1]]).to_dict()
    for change, message in (
        ({"threshold": "high"}, '"threshold" must be a number from 0'),
        ({"hierarchy": other}, "its hierarchy is not the model's"),
    ):
        (folder / LEVELS).write_text(json.dumps(content | change))
        with pytest.raises(RunError, match=f"levels.json is damaged: {message}"):
            load_classifier(folder)
    (folder / LEVELS).write_text("{")
    with pytest.raises(RunError, match=r"levels.json is damaged"):
        load_classifier(folder)


def test_a_predictor_that_does_not_fit_is_refused_before_anything_is_written(calibrated, tmp_path):
    result, classifier = calibrated
    other = LevelPredictor(Hierarchy.from_levels([[0, 0, 0, 0, 0, 1]]))
    for predictor, message in (
        (other, "level_predictor must have the hierarchy of the run"),
        (LevelPredictor(classifier.hierarchy), "has no threshold yet; call fit first"),
    ):
        with pytest.raises(ValueError, match=message):
            export_model(result, tmp_path / "model", level_predictor=predictor)
    assert not (tmp_path / "model").exists()
