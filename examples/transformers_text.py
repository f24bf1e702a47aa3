"""A small BERT with random weights, trained by Hugging Face's Trainer on a csv of sentences.

The baseline is trained first; its classifier gives the hierarchy and its validation accuracies
the length of the curriculum. Then the same network is trained anew, from the same weights and
for as many epochs, through the levels.

    python examples/transformers_text.py
    python examples/transformers_text.py --data train.csv --test test.csv --label category
"""

import argparse
import csv
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

from coarse2fine import Hierarchy, capped_length, epochs_to_reach
from coarse2fine.integrations.transformers import coarse_to_fine

REQUESTS = Path(__file__).parent / "data" / "requests.csv"
PADDING, UNKNOWN, START = "[PAD]", "[UNK]", "[CLS]"


def read(path, options):
    """Return pairs of a sentence and its class."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        if not {options.text, options.label} <= set(table.fieldnames or ()):
            raise SystemExit(f"{path} has the columns {table.fieldnames}; see --text and --label")
        return [(row[options.text], row[options.label]) for row in table]


def cut(rows, size):
    return rows[:size], rows[size:]


def read_splits(options, seed):
    """Return the three splits of the data, and the names of all classes in it."""
    rows = read(options.data, options)
    names = sorted({name for _, name in rows})
    rows = [rows[index] for index in np.random.RandomState(seed).permutation(len(rows))]
    if options.test is None:
        test, rows = cut(rows, len(rows) // 4)
    else:
        test = read(options.test, options)
    if unknown := sorted({name for _, name in test}.difference(names)):
        raise SystemExit(f"{options.data} has no row of these classes of the test: {unknown}")
    rows = rows[: options.rows]
    valid, train = cut(rows, len(rows) // 5)
    return {"train": train, "valid": valid, "test": test}, names


def make_tokenizer(sentences):
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = {"pad_token": PADDING, "unk_token": UNKNOWN, "cls_token": START}
    # Letters within words are listed too, as the trainer numbers them by chance otherwise.
    letters = sorted(set(tokenizer.normalizer.normalize_str("".join(sentences))) - {" "})
    listed = [*special.values(), *(f"##{letter}" for letter in letters)]
    trainer = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=listed)
    tokenizer.train_from_iterator(sentences, trainer)
    start = [(START, tokenizer.token_to_id(START))]  # BERT classifies by this token
    tokenizer.post_processor = processors.TemplateProcessing(f"{START} $A", special_tokens=start)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=48, **special)


def encoded(rows, tokenizer, names):
    return [
        {
            **tokenizer(sentence, truncation=True, return_token_type_ids=False),
            "label": names.index(name),
        }
        for sentence, name in rows
    ]


def make_model(tokenizer, num_classes):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4}
    widths = {"hidden_size": 128, "intermediate_size": 256, "initializer_range": 0.05}
    return BertForSequenceClassification(
        BertConfig(vocab_size=len(tokenizer), num_labels=num_classes, **sizes, **widths)
    )


def accuracy(prediction):
    return {"accuracy": float(np.mean(prediction.predictions.argmax(-1) == prediction.label_ids))}


def train(options, seed, tokenizer, data, num_classes, folder, curriculum=None):
    """Return the model of the best validation epoch, its test accuracy, and the log."""
    loss, callback = curriculum or (None, None)
    arguments = TrainingArguments(
        folder,
        num_train_epochs=options.epochs,
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=256,
        learning_rate=options.lr,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=0.1,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        seed=seed,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    torch.manual_seed(seed)
    model = make_model(tokenizer, num_classes)
    trainer = Trainer(
        model,
        arguments,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=data["train"],
        eval_dataset=data["valid"],
        compute_metrics=accuracy,
        compute_loss_func=loss,
        callbacks=[callback] if callback else None,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    log = trainer.state.log_history
    return model, 100 * trainer.evaluate(data["test"])["eval_accuracy"], log


def run(options, seed):
    """Train without and with the curriculum, print and return the figures of one seed."""
    splits, names = read_splits(options, seed)
    tokenizer = make_tokenizer([sentence for sentence, _ in splits["train"]])
    data = {split: encoded(rows, tokenizer, names) for split, rows in splits.items()}
    with tempfile.TemporaryDirectory() as folder:
        common = options, seed, tokenizer, data, len(names)
        baseline, without, log = train(*common, f"{folder}/baseline")
        accuracies = [entry["eval_accuracy"] for entry in log if "eval_accuracy" in entry]
        length = capped_length(epochs_to_reach(accuracies), options.epochs)
        hierarchy = Hierarchy.from_classifier(baseline, class_names=names)
        curriculum = coarse_to_fine(hierarchy, epochs=length)
        _, with_it, log = train(*common, f"{folder}/curriculum", curriculum)
    levels = [entry["curriculum_level"] for entry in log if "loss" in entry]
    clusters = list(hierarchy.num_clusters)
    print(f"{hierarchy.to_text(max_lines=20)}\n\nlevel of each epoch: {levels}")
    print(
        f"seed {seed}: test accuracy {without:.1f} without, {with_it:.1f} with the curriculum "
        f"(T = {length})\n",
        flush=True,
    )
    accuracies = {"without": round(without, 2), "with": round(with_it, 2)}
    return {"seed": seed, **accuracies, "T": length, "clusters": clusters}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=REQUESTS, help="a csv of sentences")
    parser.add_argument("--test", help="a csv for testing (default: a quarter of the data)")
    parser.add_argument("--text", default="text", help="the column of sentences")
    parser.add_argument("--label", default="intent", help="the column of classes")
    parser.add_argument("--rows", type=int, help="use so many rows to train and validate on")
    parser.add_argument("--epochs", type=int, default=28)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    for seed in options.seeds:
        results.append(run(options, seed))
        if options.json:
            versions = {"torch": torch.__version__, "transformers": transformers.__version__}
            settings = {
                key: getattr(options, key) for key in ("rows", "epochs", "batch_size", "lr")
            }
            content = {"settings": settings, "versions": versions, "runs": results}
            options.json.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
