"""Sentences as integers."""

import subprocess
import sys
import time
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine.data.sources.text import VOCABULARY, tokens, words


def test_words_and_punctuation_are_lower_cased_and_kept_apart():
    assert words("Where's MY card?!") == ["where's", "my", "card", "?", "!"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ich möchte Öl", ["ich", "möchte", "öl"]),
        ("e\u0301te\u0301", ["été"]),
        ("ＡＢＣ ｶﾞ", ["abc", "ガ"]),
        ("don\u2019t", ["don't"]),
        ("我的卡 card", ["我", "的", "卡", "card"]),
        ("カードは？", ["カ", "ー", "ド", "は", "?"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("שָׁלוֹם", ["ש\u05c1\u05b8לו\u05b9ם"]),
        ("ok 👍🎉", ["ok", "👍", "🎉"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_every_script_has_words(sentence, expected):
    assert words(sentence) == [unicodedata.normalize("NFKC", word) for word in expected]


def test_the_same_word_is_the_same_token_anywhere():
    (first, second) = tokens(["my card", "a CARD , my"])
    assert first[0] == second[3]
    assert first[1] == second[1]
    assert first[2:].tolist() == [0, 0]


def test_tokens_are_the_same_in_every_process():
    code = "from coarse2fine.data import tokens; print(tokens(['my new card']).tolist())"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "12"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout == f"{tokens(['my new card']).tolist()}\n"


def test_a_row_is_as_long_as_the_longest_sentence_up_to_the_limit():
    assert tokens(["a b c", "a"]).shape == (2, 3)
    cut = tokens(["a b c", "d e"], max_length=2)
    assert torch.equal(cut[0], tokens(["a b"])[0])
    assert tokens(["word " * 100]).shape == (1, 64)


def test_sentences_without_words_are_padding_alone():
    assert tokens(["", "  "]).tolist() == [[0], [0]]
    assert tokens([]).shape == (0, 1)


@given(st.lists(st.text(st.characters()), max_size=5))
def test_any_string_has_tokens_and_padding_only_at_its_end(sentences):
    found = tokens(sentences)
    assert found.dtype == torch.int64
    assert found.shape[0] == len(sentences)
    assert ((found >= 0) & (found < VOCABULARY)).all()
    for sentence, row in zip(sentences, found, strict=True):
        length = min(64, len(words(sentence)))
        assert row[:length].all()
        assert not row[length:].any()


def test_words_seldom_share_a_token():
    different = tokens([f"word{number}" for number in range(1000)]).unique()
    assert len(different) > 950


def test_ten_thousand_sentences_take_well_under_a_second():
    sentences = [f"what happened to order number {row} of mine, please?" for row in range(10_000)]
    start = time.process_time()
    tokens(sentences)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("sentences", "options", "error", "message"),
    [
        ("one string", {}, TypeError, "a list of strings. Got one string"),
        (["fine", None], {}, TypeError, r"sentences\[1\] must be a string. Got NoneType"),
        (["fine"], {"max_length": 0}, ValueError, "max_length must be at least 1. Got 0"),
    ],
)
def test_anything_but_sentences_is_refused(sentences, options, error, message):
    with pytest.raises(error, match=message):
        tokens(sentences, **options)
