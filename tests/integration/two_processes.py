"""A small comparison to be started by torchrun; with a third argument, one process dies."""

import os
import sys

import torch
from killing import PLACES, compare, die_at, hurry

if __name__ == "__main__":
    hurry()
    out, *dying = sys.argv[1:]
    if dying and os.environ["RANK"] == "1":
        die_at(*PLACES["epoch"], int(dying[0]))

    def make_net(num_classes):
        """Without dropout or batch norm, which see only a process's own part of a batch."""
        return torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, num_classes)
        )

    compare(out, model=make_net)
