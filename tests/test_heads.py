"""Finding the final layer of every common kind of model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from model_zoo import (
    AMBIGUOUS,
    FOUND,
    HUGGING_FACE,
    IMAGE,
    Cosine,
    E,
    K,
    Net,
    Timm,
    compiled,
    each_of,
    squeezenet,
    tied,
    tiny,
)
from torch import Tensor, nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import init_device_mesh

from coarse2fine import class_vectors, find_head, replace_head
from coarse2fine.heads import unwrap


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
