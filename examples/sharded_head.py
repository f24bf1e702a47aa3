"""A final layer whose classes are divided among processes, none of which holds them all.

Each process reads its own part of the samples and has its own encoder in DistributedDataParallel.
However many there are, the result is the same, up to rounding. A checkpoint of any number of them
is gone on with by any other; the second half of the training starts from one here.

    python examples/sharded_head.py
    torchrun --nproc_per_node 2 examples/sharded_head.py
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from coarse2fine import CoarseToFineLinearLoss, Curriculum, Hierarchy, level_accuracy

EPOCHS, T = 10, 4  # in all, and of the curriculum
GENERA, SPECIES = 40, 25  # of a made-up collection: 1,000 classes

if "RANK" not in os.environ:  # not started by torchrun: one process
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
# A process that waits for another one longer than that says so and ends.
dist.init_process_group("gloo", timeout=timedelta(minutes=10))
rank, processes = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (processes,))

torch.manual_seed(0)  # each class near its genus, and eight samples near each class
centres = torch.randn(GENERA, 1, 32) + torch.randn(GENERA, SPECIES, 32)
y = torch.arange(GENERA * SPECIES).repeat(10)
x = centres.flatten(0, 1)[y] + 0.7 * torch.randn(len(y), 32)
train_set, test_set = torch.arange(8000), torch.arange(8000, 10000)

hierarchy = Hierarchy.from_levels([[genus for genus in range(GENERA) for _ in range(SPECIES)]])
encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
criterion = CoarseToFineLinearLoss(64, GENERA * SPECIES, hierarchy, mesh=mesh)
curriculum = Curriculum(criterion, epochs=T)
parallel = DistributedDataParallel(encoder)  # averages the encoder's gradients
# Two groups, as torch's faster optimisers take no divided weights together with others.
optimiser = torch.optim.Adam(
    [{"params": encoder.parameters()}, {"params": criterion.parameters()}], lr=3e-3
)
model = nn.ModuleDict({"encoder": encoder, "criterion": criterion})


def part(rows):
    """Return the samples of this process."""
    return rows.tensor_split(processes)[rank]


def train(epochs):
    for epoch in epochs:
        generator = torch.Generator().manual_seed(epoch)  # the same shuffling in all processes
        for batch in train_set[torch.randperm(len(train_set), generator=generator)].split(250):
            rows = part(batch)
            optimiser.zero_grad()
            loss = criterion(parallel(x[rows]), y[rows])  # the same number in each process
            loss.backward()
            optimiser.step()
        rows = part(test_set)
        accuracy = level_accuracy(encoder, [(x[rows], y[rows])], criterion)
        if rank == 0:
            print(f"epoch {epoch}: level {criterion.level}, test accuracy {accuracy:.1%}")
        curriculum.step()


def save(folder):
    weights, state = get_state_dict(model, optimiser)
    everything = {"model": weights, "optimiser": state, "curriculum": curriculum.state_dict()}
    dcp.save(everything, checkpoint_id=folder)


def load(folder):
    weights, state = get_state_dict(model, optimiser)
    everything = {"model": weights, "optimiser": state, "curriculum": curriculum.state_dict()}
    dcp.load(everything, checkpoint_id=folder)
    set_state_dict(model, optimiser, model_state_dict=weights, optim_state_dict=state)
    curriculum.load_state_dict(everything["curriculum"])  # the last, as it sets the level


folders = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folders)
train(range(EPOCHS // 2))
save(folders[0])
load(folders[0])
train(range(EPOCHS // 2, EPOCHS))

with torch.no_grad():
    logits = criterion.linear(encoder(x[part(test_set)]))  # all classes, own samples
held = len(criterion.linear.weight.to_local())
if rank == 0:
    print(f"the first process holds {held} of {logits.shape[1]} classes, {processes} processes")
dist.destroy_process_group()
