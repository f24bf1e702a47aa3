"""Run directories: the only place that knows what a training leaves on disk."""
