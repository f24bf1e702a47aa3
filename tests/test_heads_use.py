"""Reading and replacing the final layer of every common kind of model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from model_zoo import (
    AMBIGUOUS,
    FOUND,
    TEXT,
    E,
    K,
    Net,
    compiled,
    each_of,
    tied,
    tiny,
    twice_parametrised,
)
from torch import nn
from torch.nn.utils import parametrizations, prune
from torch.nn.utils import spectral_norm as old_spectral_norm
from torch.nn.utils import weight_norm as old_weight_norm

from coarse2fine import Hierarchy, class_vectors, find_head, replace_head


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
