"""Errors on the command line speak of options, not of keyword arguments."""

import warnings

import pytest

from coarse2fine import Config
from coarse2fine.cli.app import _chosen, one_line, run
from coarse2fine.cli.options import in_terms_of_options, option_name
from coarse2fine.runs.settings import config_fields

FIELDS = config_fields(Config)
WITH_RULE = {name: field for name, field in FIELDS.items() if field.declared.rule is not None}
# Whatever a rule allows, it refuses one of these.
FAULTY = (-1, 0, 2, "no-such", (), (-1,), (2.0,), ("no-such",), ("spl", "spl"), {"x": 1.0})


def refusal(field, value):
    """What a setting's rule says of a value, None if it is taken or of another type."""
    try:
        field.check(value)
    except ValueError as error:
        return str(error)
    except TypeError:
        return None
    return None


@pytest.mark.parametrize("name", WITH_RULE)
def test_every_rule_names_the_option(name):
    field = WITH_RULE[name]
    said = list(filter(None, (refusal(field, value) for value in FAULTY)))
    assert said
    for text in said:
        found = in_terms_of_options(text)
        assert found.startswith(f"{'--method' if name == 'methods' else option_name(field)} must ")
        assert found.count("--") == 1
        assert f"{name}=" not in found


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - {"data"}))
@pytest.mark.parametrize(
    "form", ["give {}=, or not.", "give {}=.", "({}=)", "it has {} = 4, not 5."]
)
def test_a_keyword_is_called_by_its_option(name, form):
    option = option_name(FIELDS[name])
    wanted = form.replace("=", "", 1) if "{}=" in form else form
    assert in_terms_of_options(form.format(name)) == wanted.format(option)


def test_a_tree_with_several_parents_is_made_one_by_another_command():
    found = in_terms_of_options('keep one, or give parents="first" to take the first.')
    assert found == "keep one, or give c2f hierarchy --parents first to take the first."


def test_every_option_is_the_one_that_the_command_has():
    options = {each.name: each.opts[0] for each in _chosen(["train"])[0].params}
    for name in FIELDS.keys() - {"data"}:
        assert options[name] == option_name(FIELDS[name])


@pytest.mark.parametrize(
    "text",
    [
        "the model must give a tensor of 3 logits",
        "the hierarchy has 5 classes, the data 7.",
        "/data/val_share/rows.csv: the column 'image_size' is missing.",
        "rows.csv has no column 'x'; it has 'train_size', 'y'.",
        "year/target=5/rows.csv cannot be read.",
        "model mine:Net takes image_size, the side of square images.",
        "val_share.csv has no rows.",
        "train for more epochs.",
    ],
)
def test_what_only_looks_like_a_setting_stays_as_it_is(text):
    assert in_terms_of_options(text) == text


ROWS = "x,label,number\n" + "".join(f"{row},{'ab'[row % 2]},{row % 2}\n" for row in range(40))
OWN = "def flat(batch):\n    return batch[:, 0]\n\ndef spoiled(batch):\n    return batch / 0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "--epochs must be at least 1. Got 0."),
        (["--seeds", "x"], "--seeds must be a number, or a list such as 0,1,2. Got 'x'."),
        (["--method", "x"], "--method must be one of continuous, staged, spl"),
        (["--val-share", "1"], "--val-share must be at least 0 and less than 1. Got 1.0."),
        (["--train-size", "1"], "--train-size must be at least one for each of the 2 classes"),
        (["--target", "x"], "name the column of the classes by --target."),
        (
            ["--no-baseline", "--hierarchy", "h.json", "--curriculum-epochs", "reach-90"],
            "without a baseline, --curriculum-epochs must be a number or 'adaptive'",
        ),
        (["--epochs", "1"], "only 1; give a larger --epochs."),
        (
            ["--hierarchy", "h.json", "--hierarchy-model", "cnn"],
            "give --hierarchy or --hierarchy-model, not both.",
        ),
        (
            ["--hierarchy", "h.json", "--hierarchy-epochs", "3"],
            "give --hierarchy or --hierarchy-epochs, not both.",
        ),
        (["--hierarchy-epochs", "0"], "--hierarchy-epochs must be at least 1. Got 0."),
        (["--no-baseline"], "must be given, or --hierarchy-epochs."),
        (["--hierarchy", "features"], "hierarchy 'features' needs --encoder, a function of yours"),
        (["--encoder", "a:b"], "--encoder has no use unless --hierarchy is features or names."),
        (
            ["--hierarchy", "names", "--encoder", "a:b", "--metric", "confusion"],
            "--metric 'confusion' is of a trained model's mistakes",
        ),
        (
            ["--hierarchy", "features", "--encoder", "own:nothing"],
            "encoder 'own:nothing' cannot be found: own has no nothing.",
        ),
        (
            ["--hierarchy", "features", "--encoder", "own:flat"],
            "--encoder must return an array of the shape (N, D)",
        ),
        (
            ["--hierarchy", "features", "--encoder", "own:spoiled"],
            "--encoder must return finite vectors that are not zero. Got a NaN or an infinity",
        ),
        (
            ["--hierarchy", "names", "--encoder", "own:flat", "--target", "number"],
            "these are only numbers, such as 0, 1; give --hierarchy features",
        ),
        (["--class-weights", "x"], "--class-weights must be one of balanced. Got 'x'."),
        (["--curriculum-epochs", "0"], "--curriculum-epochs must be at least 1. Got 0."),
        (
            ["--set", "continuous.patience=0"],
            "error: continuous.patience must be an integer of at least 1. Got 0.",
        ),
        (["--model", "nothing"], "--model 'nothing' is unknown."),
    ],
)
def test_training_is_refused_in_terms_of_its_options(
    arguments, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "own.py").write_text(OWN)
    assert run(["train", "rows.csv", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "error: " in said


def test_a_named_set_is_asked_for_by_the_option_of_its_folder(monkeypatch, capsys):
    monkeypatch.delenv("COARSE2FINE_DATA", raising=False)
    assert run(["train", "cifar100"]) == 2
    assert "say in which folder by --data or the environment variable" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_warnings_speak_of_options_too(monkeypatch, capsys):
    def warn(*_, **__):
        warnings.warn("give another target=.", stacklevel=1)

    monkeypatch.setattr("coarse2fine.cli.train._show_settings", warn)
    assert run(["train", "rows.csv", "--dry-run"]) == 0
    assert "warning: give another --target." in capsys.readouterr().err


def test_an_error_is_one_line():
    assert one_line(ValueError("give\nseeds=.")) == "give --seeds."
