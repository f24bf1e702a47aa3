"""The curriculum in Keras: a table of 30 classes in six groups, without and with it.

A baseline is trained first; its final layer gives the hierarchy and its learning curve the
length of the curriculum; then the same network is trained anew, from the same initial
weights and for as many epochs, through the levels. This shows how the parts fit: on a table
as easy as this one, which is made up, the curriculum gains nothing.

    python examples/keras_table.py
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # before anything imports Keras

import keras
import numpy as np

from coarse2fine import capped_length, epochs_to_reach
from coarse2fine.integrations.keras import (
    CoarseToFineCallback,
    CoarseToFineCrossentropy,
    hierarchy_from_model,
)

EPOCHS = 30
NAMES = [f"{group}{member}" for group in "ABCDEF" for member in range(1, 6)]


def make_tables():
    """Return rows and labels for training, validation and test."""
    rng = np.random.default_rng(0)
    groups = 4 * np.repeat(rng.normal(size=(6, 8)), 5, axis=0)
    classes = groups + rng.normal(size=(30, 8))
    columns = rng.normal(size=(8, 20)) / 8**0.5
    tables = []
    for per_class in (20, 10, 40):
        labels = np.repeat(np.arange(30), per_class)
        factors = classes[labels] + 0.7 * rng.normal(size=(len(labels), 8))
        rows = factors @ columns + 0.3 * rng.normal(size=(len(labels), 20))
        tables.append((rows.astype("float32"), labels))
    return tables


def make_model(loss):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((20,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(30, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    return model


def train(model, train_table, valid_table, callbacks=()):
    fitted = model.fit(
        *train_table,
        batch_size=64,
        epochs=EPOCHS,
        validation_data=valid_table,
        callbacks=list(callbacks),
        verbose=0,
    )
    return fitted.history


def main():
    train_table, valid_table, test_table = make_tables()
    baseline = make_model("sparse_categorical_crossentropy")
    history = train(baseline, train_table, valid_table)

    hierarchy = hierarchy_from_model(baseline, NAMES)
    length = capped_length(epochs_to_reach(history["val_accuracy"]), EPOCHS)
    print(hierarchy)

    model = make_model(CoarseToFineCrossentropy(hierarchy))
    history = train(model, train_table, valid_table, [CoarseToFineCallback(epochs=length)])
    print("\nepoch  level  loss   validation loss")
    for epoch, level in enumerate(history["curriculum_level"]):
        if epoch == 0 or level != history["curriculum_level"][epoch - 1] or epoch == EPOCHS - 1:
            print(
                f"{epoch:5}  {level:5}  {history['loss'][epoch]:.3f}  "
                f"{history['val_loss'][epoch]:.3f}"
            )

    before, after = (
        100 * part.evaluate(*test_table, verbose=0, return_dict=True)["accuracy"]
        for part in (baseline, model)
    )
    print(f"\ntest accuracy {before:.1f} without, {after:.1f} with the curriculum (T = {length})")


if __name__ == "__main__":
    main()
