"""What every test needs before anything is imported."""

import os

# Keras chooses its backend when it is imported; TensorFlow, its default, is not installed.
os.environ.setdefault("KERAS_BACKEND", "torch")
