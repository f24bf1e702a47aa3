"""Sentences as integers, without a vocabulary to keep: words are hashed."""

from __future__ import annotations

import functools
import re
import unicodedata
import zlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

VOCABULARY = 2**15
"""Tokens are 1..VOCABULARY-1; 0 is padding."""

# Scripts without spaces between words: Thai to Tibetan, Burmese, Khmer, Kana, Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Accents, points and vowel signs are no letters to `re`, and would tear words apart.
_LETTER = r"[\w\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u200c\u200d]"
_TOKEN = re.compile(rf"{_LETTER}+(?:'{_LETTER}+)*|\S")


def tokens(sentences: Sequence[str], max_length: int = 64) -> Tensor:
    """Return the words and punctuation marks of sentences as integers.

    Each is lower-cased and hashed into 1..VOCABULARY-1, the same everywhere, so another file
    needs nothing but this function. Scripts without spaces are split into characters.

    Args:
        sentences: The N sentences.
        max_length: How many tokens of a sentence are kept. Defaults to 64.

    Returns:
        Integers (N, L), 0 for padding, where L is the length of the longest, at least 1.

    Examples:
        >>> tokens(["Where is my card?", "my CARD"])
        tensor([[20070, 23662, 16184, 17661,  2940],
                [16184, 17661,     0,     0,     0]])
    """
    _check_sentences(sentences)
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1. Got {max_length}.")
    token_of = functools.cache(_hash)  # for this call alone, so that it does not grow for ever
    rows = [[token_of(word) for word in words(text)[:max_length]] for text in sentences]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    padded = np.zeros((len(rows), max(1, lengths.max(initial=1))), dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = [one for row in rows for one in row]
    return torch.from_numpy(padded)


def words(sentence: str) -> list[str]:
    """Return the lower-cased words and punctuation marks of a sentence.

    Examples:
        >>> words("It hasn't come: 我的卡?")
        ['it', "hasn't", 'come', ':', '我', '的', '卡', '?']
    """
    if not sentence.isascii():
        sentence = unicodedata.normalize("NFKC", sentence).replace("\u2019", "'")
        sentence = _UNSPACED.sub(r" \g<0> ", sentence)
    return _TOKEN.findall(sentence.lower())


def _hash(word: str) -> int:
    return zlib.crc32(word.encode(errors="surrogatepass")) % (VOCABULARY - 1) + 1


def _check_sentences(sentences: Sequence[str]) -> None:
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of strings. Got one string.")
    for row, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise TypeError(f"sentences[{row}] must be a string. Got {type(sentence).__name__}.")
