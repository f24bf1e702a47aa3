"""Coarse-to-fine training as a scikit-learn classifier, on handwritten digits.

It shows how the classifier is used in a pipeline and in cross-validation, the hierarchy it
finds and the level of each epoch. Ten digits are few classes and seldom confused, so expect
about the same scores with and without the curriculum here; plain_pytorch.py has 30 classes
and a gain.

    python examples/scikit_learn.py
"""

from itertools import groupby

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

from coarse2fine.integrations.sklearn import CoarseToFineClassifier

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def main() -> None:
    pixels, digits = load_digits(return_X_y=True)
    labels = [WORDS[digit] for digit in digits]
    train_x, test_x, train_y, test_y = train_test_split(
        pixels, labels, stratify=labels, random_state=0
    )

    # One fit trains the baseline, makes the hierarchy from it, and trains through the levels.
    classifier = CoarseToFineClassifier(max_epochs=20, random_state=0)
    pipeline = make_pipeline(PCA(40), classifier).fit(train_x, train_y)
    print(f"The hierarchy that the baseline gives:\n\n{classifier.hierarchy_}\n")
    for level, rows in groupby(classifier.history_, key=lambda row: row["level"]):
        epochs = [row["epoch"] for row in rows]
        print(f"level {level}: epochs {epochs[0]} to {epochs[-1]}")
    print(
        f"validation accuracy: {classifier.val_accuracies_['baseline']:.3f} for the baseline, "
        f"{classifier.val_accuracies_['continuous']:.3f} through the levels; "
        f"{classifier.best_} is kept"
    )
    print(f"test accuracy: {pipeline.score(test_x, test_y):.3f}\n")

    # By default the better one is kept; to compare them, each is asked for by name.
    for name, method in (("without", "baseline"), ("with", "continuous")):
        pipeline.set_params(coarsetofineclassifier__method=method)
        scores = cross_val_score(pipeline, pixels, labels, cv=3)
        print(
            f"cross-validation {name} the curriculum: {scores.mean():.3f} "
            f"(folds {', '.join(f'{score:.3f}' for score in scores)})"
        )


if __name__ == "__main__":
    main()
