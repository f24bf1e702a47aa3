"""Small models of every common kind, for the tests of final layers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn.utils import parametrizations

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
