"""Classes divided among processes that differ, fail, are lost or lack memory: one sentence each."""

import os
import re
import time

import pytest
import torch
import torch.distributed as dist
from together import outcomes, run_together
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor

from coarse2fine import (
    CoarseToFineLinearLoss,
    Hierarchy,
    RunError,
    _shards,
    coarse_linear_cross_entropy,
)

LEVELS = [[0] * 6 + [1] * 6, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]
PEER_SECONDS = 3.0


def make_criterion(mesh, levels=LEVELS, **options):
    return CoarseToFineLinearLoss(5, 12, Hierarchy.from_levels(levels), mesh=mesh, **options)


def two_levels(criterion, _):
    criterion.level = 1


def other_hierarchy(criterion, _):
    criterion.hierarchy = Hierarchy.from_levels([[0] * 5 + [1] * 7])


def of_more_classes(criterion, _):
    criterion.hierarchy = Hierarchy.from_levels([[0] * 6 + [1] * 7])


def wrong_target(_, batch):
    batch[1][2] = 40


def wide_features(_, batch):
    batch[0] = batch[0].double()


def masks(_, batch):
    batch[1] = torch.ones(4, 12, dtype=torch.bool)


def smoothing(criterion, _):
    criterion.label_smoothing = 0.1


def weights(criterion, _):
    criterion.weight = torch.ones(12)


def no_gradients(criterion, _):
    criterion.linear.weight.requires_grad_(False)


SAME = r"the classes are divided among 2 processes, which must have the same "
FAULTS = {
    two_levels: SAME + r"level \(step the curriculum in all alike\); process 1 has 4 clusters, and "
    r"process 0 2 clusters\.",
    other_hierarchy: SAME + r"hierarchy \(read it in all, or broadcast it\); process 1 has number ",
    of_more_classes: r"the level has 13 classes, so linear_weight must have shape \(13, E\)",
    wrong_target: r"target\[2\] is 40; class indices must lie in 0..11",
    wide_features: r"input is torch.float64, linear_weight is torch.float32; convert them to one",
    masks: SAME + r"kind of targets; process 1 has \(torch.bool, 2\), and process 0 \(torch.int64",
    smoothing: SAME + r"ignore_index, reduction and label_smoothing; process 1 has \(-100, 'mean'",
    weights: SAME + r"class weights; process 1 has number \w{8}, and process 0 none\.",
    no_gradients: SAME + r"gradients to compute \(of features, weight and bias\); process 1 has",
}


def with_faults(mesh):
    """What all processes say to a fault of process 1, and a loss without any, after each."""
    said = []
    for spoil in FAULTS:
        criterion, batch = make_criterion(mesh), [torch.ones(4, 5), torch.arange(4)]
        if mesh.get_rank() == 1:
            spoil(criterion, batch)
        try:
            said.append(criterion(*batch).item())
        except (ValueError, UserWarning) as error:
            said.append(str(error))
        assert make_criterion(mesh)(torch.ones(4, 5), torch.arange(4)) > 0
    return said


def test_a_fault_of_one_process_is_named_in_all_which_can_go_on():
    zero, one = run_together(2, with_faults)
    for spoil, of_zero, of_one in zip(FAULTS, zero, one, strict=True):
        assert re.match(FAULTS[spoil], str(of_one)), (spoil, of_one)
        others = FAULTS[spoil] if FAULTS[spoil].startswith(SAME) else "process 1 cannot go on: "
        assert re.match(others, str(of_zero)), (spoil, of_zero)


def different_layers(mesh):
    rank = mesh.get_rank()
    with pytest.raises(ValueError, match=SAME + "number of classes; process 1 has 13, and process"):
        CoarseToFineLinearLoss(5, 12 + rank, mesh=mesh)
    with pytest.raises(ValueError, match=SAME + "bias; process 1 has True, and process 0 False"):
        CoarseToFineLinearLoss(5, 12, bias=bool(rank), mesh=mesh)
    with pytest.raises(TypeError, match=r"mesh must be a DeviceMesh, such as .* Got ProcessGroup"):
        CoarseToFineLinearLoss(5, 12, mesh=mesh.get_group())
    with pytest.raises(ValueError, match="mesh must have one dimension. Got 2"):
        CoarseToFineLinearLoss(5, 12, mesh=init_device_mesh("cpu", (2, 1)))
    with pytest.raises(ValueError, match="give device or mesh, not both"):
        CoarseToFineLinearLoss(5, 12, mesh=mesh, device="cpu")
    weight = distribute_tensor(torch.ones(12, 5), mesh, [Replicate()])
    with pytest.raises(ValueError, match=r"must be divided by its classes, placements \(Shard"):
        coarse_linear_cross_entropy(torch.ones(1, 5), weight, torch.tensor([0]), range(12))
    criterion = make_criterion(mesh)
    with pytest.raises(ValueError, match="have no gradients; compute them under torch.no_grad"):
        criterion.linear(torch.ones(1, 5))
    loss = criterion(torch.ones(1, 5), torch.tensor([0]))
    with pytest.raises(ValueError, match="has no second derivatives; leave out create_graph"):
        torch.autograd.grad(loss, criterion.linear.weight, create_graph=True)


def without_memory(mesh, free):
    _shards._LITTLE = 100
    _shards.free_bytes = lambda: free[mesh.get_rank()]
    with pytest.raises(MemoryError) as layer:
        CoarseToFineLinearLoss(5, 12, mesh=mesh)
    _shards.free_bytes = lambda: 10**9
    criterion = CoarseToFineLinearLoss(5, 12, mesh=mesh)
    _shards._HAD.clear()
    _shards.free_bytes = lambda: free[mesh.get_rank()]
    with pytest.raises(MemoryError) as loss:
        criterion(torch.ones(1, 5), torch.tensor([0]))
    return str(layer.value), str(loss.value)


def layers_and_memory(mesh):
    different_layers(mesh)
    return without_memory(mesh, [10**9, 200])


def test_layers_that_differ_and_memory_that_lacks_are_named():
    for layer, loss in run_together(2, layers_and_memory):
        assert re.fullmatch(
            r"a final layer of 12 classes and 5 features takes 0.00 GB of memory in each of 2 "
            r"processes of a machine, where 0.00 GB are free: 0.00 GB are missing; divide the "
            r"classes among processes of more machines \(mesh\), or free some\.",
            layer,
        )
        assert loss.startswith("the loss of a final layer of 12 classes and 5 features takes ")


def test_memory_that_one_process_lacks_is_named_before_it_is_tried():
    with pytest.raises(MemoryError, match=r"classes and 1,024 features takes 40,960.00 GB of memo"):
        CoarseToFineLinearLoss(1024, 10**10)


def test_what_could_be_had_once_is_not_asked_for_again(monkeypatch):
    monkeypatch.setattr(_shards, "_LITTLE", 100)
    monkeypatch.setattr(_shards, "_HAD", {})
    monkeypatch.setattr(_shards, "free_bytes", lambda: 10**9)
    criterion, batch = CoarseToFineLinearLoss(5, 12), (torch.ones(3, 5), torch.arange(3))
    criterion(*batch)
    monkeypatch.setattr(_shards, "free_bytes", lambda: 0)
    criterion(*batch)
    with pytest.raises(MemoryError, match="the loss of a final layer of 12 classes"):
        criterion(torch.ones(300, 5), torch.zeros(300, dtype=torch.int64))


def lose_one(mesh, how):
    """Compute losses until process 1 is gone, and say how long that took."""
    criterion, batch = make_criterion(mesh), (torch.ones(4, 5), torch.arange(4))
    criterion(*batch)
    begin = time.monotonic()
    if mesh.get_rank() == 1:
        if how == "dies":
            os._exit(9)
        time.sleep(4 * PEER_SECONDS)
    try:
        criterion(*batch)
    except RunError as error:
        return str(error), time.monotonic() - begin
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("how", ["dies", pytest.param("stalls", marks=pytest.mark.slow)])
def test_a_lost_process_ends_the_others_in_time_by_one_sentence(how):
    said, seconds = outcomes(2, lose_one, how, peer_seconds=PEER_SECONDS)[0]
    assert re.fullmatch(
        r"another of the 2 processes that the classes are divided among has died, or has not "
        r"answered in time \([^()]+\); see what became of it, then start all of them again from "
        r"the last checkpoint\.",
        said,
    )
    assert seconds < 3 * PEER_SECONDS
