"""The small BERT of examples/transformers_text.py, from random weights, for mechanism.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mechanism_tasks import Splits, Task, recipe_of
from torch import Tensor, nn

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from transformers_text import make_model, make_tokenizer


class Bert(nn.Module):
    """A BERT for sequence classification that takes tokens and returns logits.

    Args:
        model: Of Hugging Face's class ``BertForSequenceClassification``.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.bert, self.dropout, self.head = model.bert, model.dropout, model.classifier

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (N, K) of tokens (N, L), in which 0 is padding."""
        features = self.bert(tokens, attention_mask=(tokens != 0).long()).pooler_output
        logits: Tensor = self.head(self.dropout(features))
        return logits


def bert_task(name: str, seed: int, splits: Splits) -> Task:
    """Return the task of the BERT: tokens of a vocabulary that the sentences to train on gave."""
    tokenizer = make_tokenizer(list(splits["train"].sentences or ()))
    options = {"padding": True, "truncation": True, "return_tensors": "pt"}
    parts = {
        part: (tokenizer(list(split.sentences or ()), **options)["input_ids"], split.targets)
        for part, split in splits.items()
    }
    count = len(splits["train"].class_names)
    recipe = recipe_of("bert")
    return Task(name, "bert", seed, parts, recipe, lambda: Bert(make_model(tokenizer, count)))
