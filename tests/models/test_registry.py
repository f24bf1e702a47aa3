"""Models by name, by place and by callable."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from coarse2fine.models import MODELS, build_model, default_model
from coarse2fine.models.cnn import CNN

SHAPES = {"image": (3, 32, 32), "text": (12,), "table": (7,)}


class Taking(nn.Module):
    """Remembers what it was made with."""

    def __init__(self, **given):
        super().__init__()
        self.given = given


def everything(num_classes, input_shape, in_channels=None, image_size=None, in_features=None):
    return Taking(
        num_classes=num_classes,
        input_shape=input_shape,
        in_channels=in_channels,
        image_size=image_size,
        in_features=in_features,
    )


def classes_only(num_classes, depth=3):
    return Taking(num_classes=num_classes, depth=depth)


def anything(**options):
    return Taking(**options)


def features(num_classes, in_features):
    return Taking(num_classes=num_classes, in_features=in_features)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A current directory with a module of one's own."""
    (tmp_path / "my_models.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Linear):\n"
        "    def __init__(self, num_classes, in_features):\n"
        "        super().__init__(in_features, num_classes)\n"
        "    @classmethod\n"
        "    def wide(cls, num_classes):\n"
        "        return cls(num_classes, 1000)\n"
        "built = Net(2, 2)\n"
        "width = 3\n"
    )
    (tmp_path / "my_broken.py").write_text("import no_such_library\n")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_models", None)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_of_the_registry_tells_the_classes_apart(name):
    kind, _ = MODELS[name]
    with torch.device("meta"):
        model = build_model(name, 5, SHAPES[kind], kind)
        inputs = torch.zeros(2, *SHAPES[kind], dtype=torch.int64 if kind == "text" else None)
        assert model(inputs).shape == (2, 5)


@pytest.mark.parametrize(("kind", "name"), [("image", "cnn"), ("text", "bag"), ("table", "mlp")])
def test_each_kind_of_data_has_a_default(kind, name):
    assert default_model(kind) == name


def test_other_data_has_no_default():
    with pytest.raises(ValueError, match="'other' has no default model: give one as package.mod"):
        default_model("other")


def test_an_unknown_name_is_answered_with_those_there_are():
    names = "cnn, resnet20, resnet18, resnet50, wrn-28-10, bag, transformer, mlp"
    with pytest.raises(
        ValueError, match=f"'resnet19' is unknown. Must be one of {names}, or .*package.module:call"
    ):
        build_model("resnet19", 5, SHAPES["image"])


@pytest.mark.parametrize(
    ("kind", "instead"), [("text", "bag or transformer or one"), ("table", "mlp or"), ("other", "")]
)
def test_a_model_for_other_data_is_refused(kind, instead):
    with pytest.raises(
        ValueError, match=f"'image', and this is of kind '{kind}'. Must be {instead}"
    ):
        build_model("cnn", 5, (12,), kind)


# ---------------------------------------------------------------------- package.module:callable


def test_a_model_may_lie_in_an_installed_package():
    assert isinstance(build_model("coarse2fine.models.cnn:CNN", 5, SHAPES["image"]), CNN)


@pytest.mark.usefixtures("own")
def test_a_model_may_lie_in_the_current_directory():
    before = list(sys.path)
    model = build_model("my_models:Net", 5, (7,), "table")
    assert model.weight.shape == (5, 7)
    assert sys.path == before


@pytest.mark.usefixtures("own")
def test_a_method_makes_a_model_too():
    assert build_model("my_models:Net.wide", 5, (7,), "table").in_features == 1000


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "no_such.module:Net",
            "'no_such.module:Net' cannot be imported: No module named 'no_such'",
        ),
        ("my_models:Nett", "cannot be found: my_models has no Nett"),
        ("my_broken:Net", "'my_broken:Net' cannot be imported: .*'no_such_library'"),
        ("my_models:", "'my_models:' must have the form package.module:callable"),
        (":Net", "':Net' must have the form"),
        (".my_models:Net", "'.my_models:Net' must have the form"),
        ("my_models:Net:wide", "must have the form"),
    ],
)
def test_what_cannot_be_found_is_named(name, message):
    before = list(sys.path)
    with pytest.raises(ValueError, match=message):
        build_model(name, 5, (7,), "table")
    assert sys.path == before


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(("what", "got"), [("built", "Net"), ("width", "int")])
def test_only_what_makes_a_model_will_do(what, got):
    with pytest.raises(TypeError, match=f"my_models:{what} must be a class or .* Got a {got}"):
        build_model(f"my_models:{what}", 5, (7,), "table")


# ---------------------------------------------------------------------------- callables


@pytest.mark.parametrize(
    ("kind", "shape", "told"),
    [
        ("image", (1, 28, 28), {"in_channels": 1, "image_size": 28}),
        ("table", (7,), {"in_features": 7}),
        ("text", (12,), {}),
        ("other", (4, 3, 32, 32), {}),
        ("other", (9,), {"in_features": 9}),
    ],
)
def test_a_callable_is_told_what_it_asks_for(kind, shape, told):
    nothing = dict.fromkeys(("in_channels", "image_size", "in_features"))
    given = build_model(everything, 5, list(shape), kind).given
    assert given == {"num_classes": 5, "input_shape": shape, **nothing, **told}


def test_what_a_callable_does_not_name_is_kept_from_it():
    assert build_model(classes_only, 5, SHAPES["image"]).given == {"num_classes": 5, "depth": 3}
    assert build_model(anything, 5, SHAPES["image"]).given == {"num_classes": 5}


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (lambda width: width, (7,), "<lambda> must take num_classes. It takes width"),
        (lambda: None, (7,), "<lambda> must take num_classes. It takes nothing by name"),
        (lambda *sizes: sizes, (7,), "<lambda> must take num_classes"),
        (
            features,
            (3, 8, 8),
            "features must not need in_features: .* num_classes, input_shape, in_",
        ),
        (lambda num_classes: num_classes, (7,), "<lambda> must make an nn.Module. Got a int"),
        (nn.Linear(2, 2), (7,), "Linear must be a class or function .* Got a Linear"),
        (None, (7,), "NoneType must be a class or function"),
        (dict, (7,), "dict does not say which arguments it takes"),
    ],
)
def test_callables_that_make_no_model_are_named(model, shape, message):
    with pytest.raises(TypeError, match=message):
        build_model(model, 5, shape)


def test_an_image_size_needs_square_images():
    with pytest.raises(ValueError, match="everything takes image_size, .* but these are 32×48"):
        build_model(everything, 5, (3, 32, 48))


def test_the_registry_is_read_without_torch():
    code = "import sys, coarse2fine.models; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
