"""An experiment of which version 0.1.0 has left the results here."""

from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant

SETTINGS = {"data": "animals.csv", "model": "net:make", "learning_rate": 0.02, "batch_size": 16}
LENGTH = {"epochs": 8, "patience": 8}
VARIANTS = (Variant("continuous"), Variant("staged"))
ROWS = tuple(
    Setting(f"animals, {size}", {**SETTINGS, **LENGTH, "train_size": size}, VARIANTS)
    for size in (60, 120)
)
CURVES = Experiment("Curves", {"full": Scale("On a table.", ROWS)}, figure="curves")
