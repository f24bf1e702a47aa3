"""Finding, reading and replacing the final layer of every common kind of model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.utils import parametrizations, prune
from torch.nn.utils import spectral_norm as old_spectral_norm
from torch.nn.utils import weight_norm as old_weight_norm

from coarse2fine import Hierarchy, class_vectors, find_head, replace_head
from coarse2fine.heads import unwrap

K, E = 5, 8


class Parts(nn.Module):
    """A model of named parts, in the order they are given."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


class Net(nn.Module):
    """A backbone and its head `fc`."""

    def __init__(self, fc: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone = mlp(4, E)
        self.fc = nn.Linear(E, K) if fc is None else fc

    def forward(self, inputs: Tensor) -> Any:
        return self.fc(self.backbone(inputs))


class Timm(nn.Module):
    """A model that says which layer is its classifier, registered before others."""

    def __init__(self, told: str, **parts: nn.Module) -> None:
        super().__init__()
        self.told = told
        for name, part in parts.items():
            self.add_module(name, part)
        self.blocks = mlp(4, E)

    def get_classifier(self) -> Any:
        names = self.told.split()
        parts = tuple(self.get_submodule(name) for name in names)
        return parts if len(parts) > 1 else parts[0]


class Cosine(nn.Module):
    """A head that is not a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, E))


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.downsample = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride=2), nn.BatchNorm2d(outputs)
        )


def mlp(inputs: int, outputs: int, hidden: int = 16) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def resnet(head: str = "fc") -> nn.Module:
    return Parts(
        conv1=nn.Conv2d(3, 4, 7),
        layer1=nn.Sequential(BasicBlock(4, 6), BasicBlock(6, E)),
        avgpool=nn.AdaptiveAvgPool2d(1),
        **{head: nn.Linear(E, K)},
    )


def squeezenet() -> nn.Module:
    return Parts(
        features=nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, E, 1)),
        classifier=nn.Sequential(
            nn.Dropout(), nn.Conv2d(E, K, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        ),
    )


def compiled(model: nn.Module) -> nn.Module:
    wrapped: nn.Module = torch.compile(model, backend="eager")
    return wrapped


def twice_parametrised(layer: nn.Module) -> nn.Module:
    return parametrizations.spectral_norm(parametrizations.weight_norm(layer))


def tied() -> nn.Module:
    head = nn.Linear(E, K)
    return Parts(net=nn.Sequential(mlp(4, E), head), fc=head)


FOUND: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a layer by itself": (lambda: nn.Linear(E, K), ""),
    "an MLP": (lambda: mlp(4, K), "2"),
    "an MLP that ends in dropout": (lambda: nn.Sequential(*mlp(4, K), nn.Dropout()), "2"),
    "an MLP with a constant width": (lambda: nn.Sequential(mlp(E, E, E), mlp(E, K, E)), "1.2"),
    "a 1×1 convolution before flattening": (
        lambda: nn.Sequential(nn.Conv2d(E, 2, 1), nn.Flatten(), nn.Linear(E, K)),
        "2",
    ),
    "a sequence with a hidden layer named like a head": (
        lambda: nn.Sequential(OrderedDict(fc=nn.Linear(4, E), last=nn.Linear(E, K))),
        "last",
    ),
    "a ResNet": (resnet, "fc"),
    "a ResNet with another name": (lambda: resnet("top"), "top"),
    "a SqueezeNet": (squeezenet, "classifier.1"),
    "a 1-D convolutional net": (
        lambda: Parts(body=nn.Conv1d(3, E, 5), head=nn.Conv1d(E, K, 1)),
        "head",
    ),
    "a VGG": (lambda: Parts(features=nn.Conv2d(3, 4, 3), classifier=mlp(4, K)), "classifier.2"),
    "a vision transformer": (
        lambda: Parts(
            conv_proj=nn.Conv2d(3, E, 4),
            encoder=nn.TransformerEncoderLayer(E, 2),
            heads=nn.Sequential(OrderedDict(head=nn.Linear(E, K))),
        ),
        "heads.head",
    ),
    "a head registered before its backbone": (
        lambda: Parts(head=nn.Linear(E, K), backbone=mlp(4, E)),
        "head",
    ),
    "a long-named head registered before its backbone": (
        lambda: Parts(image_classifier=nn.Linear(E, K), backbone=mlp(4, E)),
        "image_classifier",
    ),
    "such a model as the one part of another": (
        lambda: Parts(model=Parts(head=nn.Linear(E, K), backbone=mlp(4, E)), act=nn.ReLU()),
        "model.head",
    ),
    "auxiliary classifiers": (
        lambda: Parts(
            aux1=Parts(fc=nn.Linear(E, K)), aux2=Parts(fc=nn.Linear(E, K)), fc=nn.Linear(E, K)
        ),
        "fc",
    ),
    "an auxiliary classifier registered last": (
        lambda: Parts(fc=nn.Linear(E, K), aux=Parts(fc=nn.Linear(E, K))),
        "fc",
    ),
    "an auxiliary classifier named like a head": (
        lambda: Parts(classifier=nn.Linear(E, K), aux_classifier=nn.Linear(16, K)),
        "classifier",
    ),
    "numbered layers": (lambda: Parts(fc1=nn.Linear(4, E), fc2=nn.Linear(E, K)), "fc2"),
    "numbered layers with a gap between": (
        lambda: Parts(fc_1=nn.Linear(4, E), fc_2=nn.Linear(2 * E, K)),
        "fc_2",
    ),
    "layers named by their order": (
        lambda: Parts(layer_in=nn.Linear(4, E), layer_out=nn.Linear(E, K), dropout=nn.Dropout()),
        "layer_out",
    ),
    "a hidden layer that ends in a head's name": (
        lambda: Parts(pre_classifier=nn.Linear(E, E), classifier=nn.Linear(E, K)),
        "classifier",
    ),
    "a hidden layer called like a head too": (
        lambda: Parts(linear=nn.Linear(4, E), out=nn.Linear(E, K)),
        "out",
    ),
    "a square hidden layer called like a head too": (
        lambda: Parts(fc=nn.Linear(E, E), out=nn.Linear(E, K)),
        "out",
    ),
    "a nested attribute called like a head": (
        lambda: Parts(encoder=Parts(output=nn.Linear(4, E)), predictor=nn.Linear(E, K)),
        "predictor",
    ),
    "a part without a linear layer called like a head": (
        lambda: Parts(body=mlp(4, E), output=nn.LayerNorm(K), final=nn.Linear(E, K)),
        "final",
    ),
    "a tied layer": (tied, "fc"),
    "timm, a layer": (lambda: Timm("top", top=nn.Linear(E, K)), "top"),
    "timm, a nested layer": (lambda: Timm("head.fc", head=Parts(fc=nn.Linear(E, K))), "head.fc"),
    "timm, a sequence": (lambda: Timm("top", top=mlp(E, K)), "top.2"),
    "timm, one part of another": (
        lambda: Parts(model=Timm("top", top=nn.Linear(E, K))),
        "model.top",
    ),
}

AMBIGUOUS: dict[str, tuple[Callable[[], nn.Module], list[str]]] = {
    "two heads": (
        lambda: Parts(body=mlp(4, E), head_a=nn.Linear(E, K), head_b=nn.Linear(E, 3)),
        ["head_a", "head_b"],
    ),
    "two heads registered before their backbone": (
        lambda: Parts(head_a=nn.Linear(E, K), head_b=nn.Linear(E, 3), body=mlp(4, E)),
        ["head_a", "head_b"],
    ),
    "two heads of other names": (
        lambda: Parts(body=mlp(4, E), genus=nn.Linear(E, 3), species=nn.Linear(E, K)),
        ["genus", "species"],
    ),
    "a dictionary of heads": (
        lambda: Parts(heads=nn.ModuleDict({"a": mlp(E, K), "b": mlp(E, 3)})),
        ["heads.a.2", "heads.b.2"],
    ),
    "a list of heads": (
        lambda: Parts(heads=nn.ModuleList([nn.Linear(E, K), nn.Linear(E, 3)])),
        ["heads.0", "heads.1"],
    ),
    "a student and its teacher": (
        lambda: Parts(student=mlp(4, K), teacher=mlp(4, K)),
        ["student.2", "teacher.2"],
    ),
    "a first layer called like a head": (
        lambda: Parts(linear=nn.Linear(4, E), final=nn.Linear(E, K)),
        ["linear", "final"],
    ),
    "timm, distilled": (
        lambda: Timm("head head_dist", head=nn.Linear(E, K), head_dist=nn.Linear(E, K)),
        ["head", "head_dist"],
    ),
}


def tiny(name: str, **changes: Any) -> Callable[[], nn.Module]:
    """Return a maker of a small Hugging Face model with random weights."""
    config = name.split("For")[0]

    def make() -> nn.Module:
        settings = getattr(transformers, f"{config}Config")(num_labels=K, **changes)
        model: nn.Module = getattr(transformers, name)(settings)
        return model

    return make


TEXT = {
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
IMAGE = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "image_size": 8,
    "patch_size": 4,
}
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}
HUGGING_FACE = {
    "BertForSequenceClassification": (TEXT, "classifier"),
    "RobertaForSequenceClassification": (TEXT, "classifier.out_proj"),
    "ElectraForSequenceClassification": (TEXT, "classifier.out_proj"),
    "DistilBertForSequenceClassification": (
        {"vocab_size": 20, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 20},
        "classifier",
    ),
    "GPT2ForSequenceClassification": (
        {"vocab_size": 20, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16},
        "score",
    ),
    "ViTForImageClassification": (IMAGE, "classifier"),
    "ResNetForImageClassification": ({**STAGES, "embedding_size": 8}, "classifier.1"),
    "ConvNextForImageClassification": (STAGES, "classifier"),
    "MobileNetV2ForImageClassification": (
        {"depth_multiplier": 0.1, "image_size": 32},
        "classifier",
    ),
}


def each_of(*cases: str) -> Any:
    """Parametrise a test by cases of a table."""
    return pytest.mark.parametrize("case", cases)


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_unwrap_refuses_what_is_not_a_module() -> None:
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module. Got dict."):
        unwrap({})


class TestFindHead:
    @each_of(*FOUND)
    def test_finds_the_final_layer_of(self, case: str) -> None:
        make, expected = FOUND[case]
        model = make()

        name, layer = find_head(model)

        assert name == expected
        assert layer is model.get_submodule(expected)

    @each_of(*AMBIGUOUS)
    def test_lists_the_layers_that_could_be_meant_by(self, case: str) -> None:
        make, expected = AMBIGUOUS[case]
        model = make()

        with pytest.raises(ValueError, match="the final layer could be any of") as error:
            find_head(model)

        for name in expected:
            layer = model.get_submodule(name)
            assert isinstance(layer, nn.Linear)
            size = f"{layer.in_features} → {layer.out_features}"
            assert f"{name!r} (Linear {size})" in str(error.value)
        assert str(error.value).count("→") == len(expected)
        assert f"say which: head={expected[0]!r}" in str(error.value)

    @each_of(*AMBIGUOUS)
    def test_takes_the_name_it_proposes_for(self, case: str) -> None:
        make, expected = AMBIGUOUS[case]
        model = make()

        for name in expected:
            assert find_head(model, name) == (name, model.get_submodule(name))

    @each_of(*HUGGING_FACE)
    def test_finds_the_final_layer_of_hugging_faces(self, case: str) -> None:
        changes, expected = HUGGING_FACE[case]

        name, layer = find_head(tiny(case, **changes)())

        assert name == expected
        assert layer.weight.shape[0] == K

    def test_does_not_choose_between_the_heads_of_a_distilled_model(self) -> None:
        model = tiny("DeiTForImageClassificationWithTeacher", **IMAGE)()

        with pytest.raises(ValueError, match="'cls_classifier'.*'distillation_classifier'"):
            find_head(model)

    def test_gives_every_name_of_a_tied_layer_its_layer(self) -> None:
        model = tied()

        assert find_head(model, "fc")[1] is find_head(model, "net.1")[1]

    def test_takes_the_last_layer_of_a_part_that_is_named(self) -> None:
        assert find_head(squeezenet(), "classifier")[0] == "classifier.1"
        assert find_head(squeezenet(), "features")[0] == "features.1"

    @pytest.mark.parametrize("name", ["fc", "_orig_mod.fc"])
    def test_takes_names_within_and_without_the_wrapper(self, name: str) -> None:
        model = Net()

        assert find_head(compiled(model), name)[1] is model.fc

    def test_names_the_layers_there_are_when_the_name_is_unknown(self) -> None:
        with pytest.raises(
            ValueError, match=r"no layer 'top'; name it by head=.*'backbone.2', 'fc'"
        ):
            find_head(Net(), "top")

    def test_refuses_a_named_part_without_a_linear_layer(self) -> None:
        with pytest.raises(ValueError, match=r"'backbone.1' \(ReLU\).*head=.*'fc'"):
            find_head(Net(), "backbone.1")

    def test_says_what_is_needed_where_no_layer_could_be_named(self) -> None:
        with pytest.raises(ValueError, match=r"no layer 'fc'; a model needs a linear layer"):
            find_head(nn.Sequential(nn.ReLU()), "fc")

    def test_refuses_a_classifier_that_is_not_part_of_the_model(self) -> None:
        model = Timm("head", head=nn.Linear(E, K))
        model.get_classifier = lambda: nn.Linear(E, K)  # type: ignore[method-assign]

        with pytest.raises(ValueError, match=r"no linear layer.*head=.*'head'"):
            find_head(model)

    def test_refuses_a_model_without_a_linear_layer(self) -> None:
        with pytest.raises(ValueError, match="no linear layer or 1×1 convolution to be the final"):
            find_head(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()))

    def test_refuses_a_head_of_another_kind_rather_than_take_a_hidden_layer(self) -> None:
        with pytest.raises(ValueError, match=r"in 'fc' \(Cosine\).*head="):
            find_head(Net(Cosine()))

    def test_refuses_timms_identity_rather_than_take_a_hidden_layer(self) -> None:
        with pytest.raises(ValueError, match=r"in 'head' \(Identity\).*head=.*'blocks.2'"):
            find_head(Timm("head", head=nn.Identity()))

    @pytest.mark.parametrize("convolution", [nn.Conv2d(E, K, 3), nn.Conv2d(5, 5, 1, groups=5)])
    def test_does_not_take_a_convolution_that_is_not_linear_for_a_head(
        self, convolution: nn.Module
    ) -> None:
        with pytest.raises(ValueError, match="no linear layer or 1×1 convolution"):
            find_head(convolution)

    @pytest.mark.parametrize("place", ["fc", "backbone"])
    def test_asks_for_a_batch_where_a_size_is_not_known_yet(self, place: str) -> None:
        model = Net()
        setattr(model, place, nn.LazyLinear(E))

        with pytest.raises(ValueError, match=rf"'{place}' \(LazyLinear\) has no size.*one batch"):
            find_head(model)

        model(torch.randn(2, 4))
        assert find_head(model)[0] == "fc"


class TestWrappedModels:
    @pytest.mark.parametrize("wrap", [compiled, nn.DataParallel, nn.Sequential])
    def test_are_looked_through(self, wrap: Callable[[nn.Module], nn.Module]) -> None:
        model = Net()

        assert find_head(wrap(model))[1] is model.fc
        assert torch.equal(class_vectors(wrap(model)), model.fc.weight)

    def test_are_looked_through_one_within_another(self) -> None:
        model = Net()

        assert find_head(nn.DataParallel(compiled(model))) == ("fc", model.fc)

    @pytest.mark.usefixtures("process_group")
    def test_under_ddp_are_read_but_not_changed(self) -> None:
        model = Net()
        wrapped = nn.parallel.DistributedDataParallel(model)

        assert find_head(wrapped) == ("fc", model.fc)
        for whole in (wrapped, compiled(wrapped)):
            with pytest.raises(ValueError, match=r"DistributedDataParallel.*first, then wrap"):
                replace_head(whole, 3)

    @pytest.mark.usefixtures("process_group")
    @pytest.mark.filterwarnings("ignore:FSDP is switching to use `NO_SHARD`")
    def test_under_fsdp_are_read_but_not_changed(self) -> None:
        model = Net()
        weight = model.fc.weight.detach().clone()
        wrapped = fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"))

        assert find_head(wrapped)[0] == "fc"
        assert torch.equal(class_vectors(wrapped), weight)
        with pytest.raises(ValueError, match=r"FullyShardedDataParallel.*first, then wrap"):
            replace_head(wrapped, 3)

    @pytest.mark.skipif(not hasattr(fsdp, "fully_shard"), reason="torch has it from 2.6 on")
    @pytest.mark.usefixtures("process_group")
    def test_under_fully_shard_are_gathered_but_not_changed(self) -> None:
        model = Net()
        weight = model.fc.weight.detach().clone()
        fsdp.fully_shard(model, mesh=init_device_mesh("cpu", (1,)))

        vectors = class_vectors(model)
        assert type(vectors) is Tensor
        assert torch.equal(vectors, weight)
        with pytest.raises(ValueError, match=r"FSDPModule.*first, then wrap"):
            replace_head(model, 3)


class TestClassVectors:
    @pytest.mark.parametrize(
        "layer",
        [nn.Linear(E, K), nn.Conv1d(E, K, 1), nn.Conv2d(E, K, 1), nn.Conv3d(E, K, 1)],
        ids=lambda layer: type(layer).__name__,
    )
    def test_are_the_rows_of_the_weight(self, layer: nn.Linear) -> None:
        vectors = class_vectors(Net(layer))

        assert vectors.shape == (K, E)
        assert not vectors.requires_grad
        assert torch.equal(vectors.flatten(), layer.weight.detach().flatten())

    def test_are_those_of_the_named_layer(self) -> None:
        model = Net()

        assert torch.equal(class_vectors(model, head="backbone.0"), model.backbone[0].weight)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_keep_their_precision_and_can_be_clustered(self, dtype: torch.dtype) -> None:
        model = Net().to(dtype)

        assert class_vectors(model).dtype == dtype
        assert Hierarchy.from_embeddings(class_vectors(model)).num_classes == K

    def test_come_from_the_present_factors_of_weight_norm(self) -> None:
        model = Net(parametrizations.weight_norm(nn.Linear(E, K)))
        with torch.no_grad():
            model.fc.parametrizations.weight.original0.fill_(3.0)

        assert torch.allclose(class_vectors(model).norm(dim=1), torch.full((K,), 3.0))

    def test_come_from_the_present_factors_of_the_older_weight_norm(self) -> None:
        with pytest.warns(FutureWarning, match="weight_norm"):
            model = Net(old_weight_norm(nn.Linear(E, K)))
        model(torch.randn(2, 4))
        with torch.no_grad():
            model.fc.weight_g.fill_(3.0)
            model.fc.weight_v[0] = torch.eye(E)[0]

        vectors = class_vectors(model)

        assert torch.allclose(vectors.norm(dim=1), torch.full((K,), 3.0))
        assert torch.allclose(vectors[0], 3 * torch.eye(E)[0])

    @pytest.mark.parametrize("normalise", [parametrizations.spectral_norm, old_spectral_norm])
    def test_are_read_without_changing_spectral_norm(
        self, normalise: Callable[[nn.Module], nn.Module]
    ) -> None:
        model = Net(normalise(nn.Linear(E, K))).train()
        before = {name: value.clone() for name, value in model.state_dict().items()}

        first, second = class_vectors(model), class_vectors(model)

        assert torch.equal(first, second)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert all(module.training for module in model.modules())
        with torch.no_grad():
            logits = model.eval().fc(torch.eye(E)) - model.fc.bias
        assert torch.allclose(logits.T, first, atol=1e-6)

    def test_are_read_after_the_older_spectral_norm_changed(self) -> None:
        model = Net(old_spectral_norm(nn.Linear(E, K)))
        before = class_vectors(model)
        with torch.no_grad():
            model.fc.weight_orig.copy_(torch.randn(K, E))

        assert not torch.allclose(class_vectors(model), before)

    def test_are_the_pruned_ones_of_a_pruned_layer(self) -> None:
        model = Net(prune.ln_structured(nn.Linear(E, K), "weight", amount=2, n=2, dim=1))
        with torch.no_grad():
            model.fc.weight_orig.fill_(1.0)

        assert torch.equal(class_vectors(model), model.fc.weight_mask)

    def test_are_refused_where_the_weight_is_a_shard(self) -> None:
        model = Net()
        model.fc.weight = nn.Parameter(torch.randn(K * E // 2))

        with pytest.raises(ValueError, match=rf"'fc' has the shape \(20,\), not {K} × {E}; gather"):
            class_vectors(model)


class TestReplaceHead:
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("kind", [nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d])
    def test_makes_a_layer_of_the_same_kind(self, kind: Callable[..., Any], bias: bool) -> None:
        size = () if kind is nn.Linear else (1,)
        model = Net(kind(E, K, *size, bias=bias, dtype=torch.float64)).eval()
        old = model.fc

        new = replace_head(model, 3)

        assert new is model.fc
        assert new is not old
        assert type(new) is kind
        assert new.weight.shape == (3, E, *old.weight.shape[2:])
        assert (new.bias is not None) == bias
        assert new.weight.dtype == torch.float64
        assert not new.training

    def test_makes_a_layer_on_the_same_device(self) -> None:
        assert replace_head(Net().to("meta"), 3).weight.device.type == "meta"

    def test_keeps_the_stride_and_the_padding_of_a_convolution(self) -> None:
        new = replace_head(Net(nn.Conv2d(E, K, 1, stride=2, padding=1)), 3)

        assert new(torch.randn(1, E, 4, 4)).shape == (1, 3, 3, 3)

    @each_of("a SqueezeNet", "an MLP", "a ResNet", "a tied layer", "timm, a nested layer")
    def test_puts_the_layer_in_place_in(self, case: str) -> None:
        model = FOUND[case][0]()

        new = replace_head(model, 3)

        assert find_head(model)[1] is new
        assert class_vectors(model).shape == (3, new.weight.shape[1])

    def test_leaves_everything_but_the_head_as_it_was(self) -> None:
        model = Net()
        before = {n: value.clone() for n, value in model.backbone.state_dict().items()}
        parts = list(model.backbone)

        replace_head(model, 3)

        assert model(torch.randn(2, 4)).shape == (2, 3)
        assert all(now is then for now, then in zip(model.backbone, parts, strict=True))
        assert all(torch.equal(v, before[n]) for n, v in model.backbone.state_dict().items())

    def test_replaces_a_tied_layer_everywhere(self) -> None:
        model = tied()

        new = replace_head(model, 3)

        assert model.get_submodule("net.1") is model.get_submodule("fc") is new

    def test_replaces_only_the_named_head(self) -> None:
        model = AMBIGUOUS["two heads"][0]()
        other = model.get_submodule("head_b")

        replace_head(model, 7, head="head_a")

        assert class_vectors(model, "head_a").shape == (7, E)
        assert model.get_submodule("head_b") is other

    @pytest.mark.parametrize("wrap", [compiled, nn.DataParallel])
    def test_replaces_within(self, wrap: Callable[[nn.Module], nn.Module]) -> None:
        model = Net()

        new = replace_head(wrap(model), 3)

        assert model.fc is new
        assert model(torch.randn(2, 4)).shape == (2, 3)

    def test_replaces_the_head_of_a_hugging_face_model(self) -> None:
        model = tiny("RobertaForSequenceClassification", **TEXT)().eval()

        replace_head(model, 3)

        assert model.classifier(torch.randn(2, 4, 16)).shape == (2, 3)  # type: ignore[operator]

    @pytest.mark.parametrize("dim", [0, 1])
    def test_keeps_weight_norm(self, dim: int) -> None:
        model = Net(parametrizations.weight_norm(nn.Linear(E, K), dim=dim))

        new: Any = replace_head(model, 3)

        assert new.parametrizations.weight.original0.shape == ((3, 1) if dim == 0 else (1, E))
        assert model(torch.randn(2, 4)).shape == (2, 3)

    def test_keeps_the_older_weight_norm_in_the_newer_form(self) -> None:
        with pytest.warns(FutureWarning, match="weight_norm"):
            model = Net(old_weight_norm(nn.Linear(E, K))).double()

        new: Any = replace_head(model, 3)

        assert new.parametrizations.weight.original0.shape == (3, 1)
        assert model(torch.randn(2, 4, dtype=torch.float64)).shape == (2, 3)

    @pytest.mark.parametrize(
        ("change", "kind"),
        [
            (parametrizations.spectral_norm, "_SpectralNorm"),
            (parametrizations.orthogonal, "_Orthogonal"),
            (old_spectral_norm, "SpectralNorm"),
            (lambda layer: prune.l1_unstructured(layer, "weight", 2), "L1Unstructured"),
            (twice_parametrised, "_WeightNorm, _SpectralNorm"),
        ],
    )
    def test_refuses_other_parametrisations(
        self, change: Callable[[nn.Module], nn.Module], kind: str
    ) -> None:
        model = Net(change(nn.Linear(E, K)))
        old = model.fc

        with pytest.raises(ValueError, match=rf"'fc' is parametrised by {kind}.*remove it first"):
            replace_head(model, 3)
        assert model.fc is old

    @pytest.mark.parametrize("wrap", [lambda layer: layer, compiled])
    def test_refuses_a_model_that_is_the_layer_itself(self, wrap: Callable[..., Any]) -> None:
        with pytest.raises(ValueError, match=rf"itself the final layer \(Linear {E} → {K}\).*Seq"):
            replace_head(wrap(nn.Linear(E, K)), 3)

    @pytest.mark.parametrize("num_classes", [0, -1])
    def test_refuses_less_than_one_class(self, num_classes: int) -> None:
        with pytest.raises(ValueError, match=rf"num_classes must be at least 1. Got {num_classes}"):
            replace_head(Net(), num_classes)
