"""Two small classifiers of sentences: a bag of words and word pairs, and a transformer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Knuth's multiplicative hash, a prime near 2³² divided by the golden ratio: it spreads
# neighbouring numbers evenly.
_GOLDEN = 0x9E3779B1


class TextBag(nn.Module):
    """The mean of the embeddings of words and of pairs of neighbours, then a hidden layer.

    Words and pairs share one table of embeddings by their hashes. So there is no vocabulary to
    keep, and the table stays small, as optimisers update all of it in every step.

    Args:
        num_classes: K.
        vocabulary_size: How many embeddings there are, that of padding included. Defaults
            to 2**14.
        width: The size of an embedding. Defaults to 128.
        hidden: The size of the hidden layer. Defaults to 256.
        dropout: The share of features left out in training. Defaults to 0.5.

    Examples:
        >>> TextBag(num_classes=3)(torch.tensor([[5, 7, 0], [0, 0, 0]])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_classes: int,
        vocabulary_size: int = 2**14,
        width: int = 128,
        hidden: int = 256,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(vocabulary_size, width, mode="mean", padding_idx=0)
        # Smaller than torch's 1.0, beside which the steps of an optimiser would be too small.
        _draw(self.bag.weight, std=0.3)
        self.hidden = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout)
        )
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (N, K) of tokens (N, L)."""
        # One more column of padding, so that an exported program may meet a sentence of one word.
        tokens = F.pad(tokens, (0, 1)) if torch.compiler.is_exporting() else tokens
        size = self.bag.num_embeddings
        ids = torch.cat([folded(tokens, size), neighbour_pairs(tokens, size)], dim=1)
        logits: Tensor = self.head(self.hidden(self._mean(ids)))
        return logits

    def _mean(self, ids: Tensor) -> Tensor:
        """Return the mean of the embeddings of each row but those of padding."""
        if not torch.compiler.is_exporting():
            mean: Tensor = self.bag(ids)
            return mean
        # torch exports a bag for two rows or more alone, as it counts the rows anew.
        is_word = (ids != 0).unsqueeze(-1)
        words = F.embedding(ids, self.bag.weight) * is_word
        return words.sum(dim=1) / is_word.sum(dim=1).clamp(min=1)


class TextTransformer(nn.Module):
    """A small pre-norm transformer encoder with learned positions, averaged over the words.

    Args:
        num_classes: K.
        vocabulary_size: How many embeddings there are, that of padding included; words
            share them by their hashes. Defaults to 2**14.
        max_length: The longest sentence in tokens. Defaults to 64.
        width: The size of an embedding, a multiple of `heads`. Defaults to 128.
        layers: Defaults to 2.
        heads: Attention heads in a layer. Defaults to 4.
        dropout: The share of features left out in training. Defaults to 0.1.

    Examples:
        >>> TextTransformer(num_classes=3)(torch.tensor([[5, 7, 0], [0, 0, 0]])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_classes: int,
        vocabulary_size: int = 2**14,
        max_length: int = 64,
        width: int = 128,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary_size, width, padding_idx=0)
        _draw(self.words.weight, std=0.1)
        self.positions = nn.Parameter(0.1 * torch.randn(max_length, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (N, K) of tokens (N, L)."""
        length, longest = tokens.shape[1], len(self.positions)
        if length > longest:
            raise ValueError(
                f"the sentences are {length} tokens long, but the model takes {longest}; cut "
                f"them or build the model with max_length={length}."
            )
        padding = tokens == 0
        x = self.dropout(
            self.words(folded(tokens, self.words.num_embeddings)) + self.positions[:length]
        )
        # A softmax over nothing is NaN, so a sentence without words attends to its padding.
        x = self.encoder(x, src_key_padding_mask=padding & ~padding.all(dim=1, keepdim=True))
        x = self.norm(x).masked_fill(padding.unsqueeze(-1), 0.0)
        # The mean over words alone, so that it does not depend on the length of the batch.
        mean = x.sum(dim=1) / (~padding).sum(dim=1, keepdim=True).clamp(min=1)
        logits: Tensor = self.head(self.dropout(mean))
        return logits


def folded(tokens: Tensor, size: int) -> Tensor:
    """Return tokens as ids below `size`, padding as 0 and nothing else as 0.

    Examples:
        >>> folded(torch.tensor([0, 1, 4, 5, 6]), size=5)
        tensor([0, 1, 4, 1, 2])
    """
    return torch.where(tokens == 0, 0, (tokens - 1) % (size - 1) + 1)


def neighbour_pairs(tokens: Tensor, size: int) -> Tensor:
    """Return a hash in 1..size-1 of each two neighbouring tokens, 0 where one is padding.

    Args:
        tokens: Integers (N, L).
        size: One more than the greatest hash.
    """
    left, right = tokens[:, :-1], tokens[:, 1:]
    # The inner product makes (a, b) differ from (b, a), the outer one spreads b as well. In a
    # product low bits depend on low bits only, so they are dropped before the remainder.
    hashed = ((left * _GOLDEN + right) * _GOLDEN) >> 15
    return torch.where((left == 0) | (right == 0), 0, hashed % (size - 1) + 1)


def _draw(weight: Tensor, std: float) -> None:
    """Initialise embeddings; that of padding is 0."""
    with torch.no_grad():
        weight.normal_(std=std)
        weight[0] = 0
