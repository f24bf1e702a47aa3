"""What every test needs before anything is imported."""

import os

# Keras chooses its backend when it is imported; TensorFlow, its default, is not installed.
os.environ.setdefault("KERAS_BACKEND", "torch")
# The models of the tests are tiny: on a busy machine their threads mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
