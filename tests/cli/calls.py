"""Calls of `c2f train` that take a second or two."""

SMALL = ["shapes:300", "--image-size", "24", "--batch-size", "64", "--max-levels", "2"]
SHORT = [*SMALL, "--epochs", "2", "--curriculum-epochs", "1"]
