"""What every test needs before anything is imported."""

import os

# Keras chooses its backend when it is imported; TensorFlow, its default, is not installed.
os.environ.setdefault("KERAS_BACKEND", "torch")
# The models of the tests are tiny: on a busy machine their threads mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Doctests are looked for in every module, but two files of one name cannot both be imported, and
# conftest.py is in many folders.
collect_ignore_glob = ["*/conftest.py"]
