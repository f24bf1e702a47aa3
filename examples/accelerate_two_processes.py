"""Hugging Face Accelerate: any number of processes, without the curriculum and with it.

The main process makes the hierarchy and sends it to the others. Each process has its own loss,
whose level follows from the epoch. Both commands give the same result, up to rounding.

    python examples/accelerate_two_processes.py
    torchrun --nproc_per_node 2 examples/accelerate_two_processes.py
"""

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.utils import broadcast_object_list
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

EPOCHS, T = 15, 6  # in all, and of the curriculum

# A batch is that of all processes together, and the shuffling does not depend on their number.
config = DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True, data_seed=0)
accelerator = Accelerator(
    cpu=not torch.cuda.is_available(),  # else Accelerate takes no notice of torchrun on processors
    gradient_accumulation_steps=2,
    dataloader_config=config,
)

torch.manual_seed(0)  # readings of 5 machines with 7 faults, each of which shows in 4 ways
machines, faults = 2 * torch.randn(5, 6), 1.5 * torch.randn(7, 4, 14)
y = torch.arange(35).repeat(75)
way = torch.randint(4, y.shape)
x = torch.cat([machines[y // 7], faults[y % 7, way]], dim=1) + torch.randn(len(y), 20)
train_set, test_set = TensorDataset(x[:1000], y[:1000]), TensorDataset(x[1000:], y[1000:])


def train(criterion, curriculum=None):
    torch.manual_seed(0)  # the same initial weights in every process, and both times
    model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 35))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    # Whole batches only, so that the processes have equal parts of each and their mean is right.
    loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
    for epoch in range(EPOCHS):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                accelerator.backward(criterion(model(inputs), targets))
                optimiser.step()
                optimiser.zero_grad()
        if curriculum:
            levels = accelerator.gather(torch.tensor([criterion.level], device=accelerator.device))
            accelerator.print(f"epoch {epoch}: level in each process {levels.tolist()}")
            curriculum.step()
    return model, corrects(model)


def corrects(model):
    """Return whether each test sample is classified correctly."""
    correct = []
    for inputs, targets in accelerator.prepare(DataLoader(test_set, batch_size=100)):
        # Processes get equal parts, so some samples twice at the end; this leaves those out.
        guesses, truth = accelerator.gather_for_metrics((model(inputs).argmax(1), targets))
        correct.append(guesses == truth)
    return torch.cat(correct).float()


baseline, without = train(nn.CrossEntropyLoss())
made = [Hierarchy.from_classifier(baseline) if accelerator.is_main_process else None]
hierarchy = broadcast_object_list(made)[0]
criterion = CoarseToFineLoss(hierarchy).to(accelerator.device)
_, with_it = train(criterion, Curriculum(criterion, epochs=T))

accelerator.print(hierarchy)
accelerator.print(f"test accuracy on {len(with_it)} samples:", end=" ")
accelerator.print(f"{without.mean():.1%} without, {with_it.mean():.1%} with the curriculum")
accelerator.end_training()
