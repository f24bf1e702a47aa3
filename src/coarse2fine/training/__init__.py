"""Training: the loop, checkpoints, run directories, and the whole method in one call."""
