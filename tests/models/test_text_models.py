"""The two classifiers of sentences."""

import os
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from coarse2fine import find_head
from coarse2fine.data.sources.tables import load_table
from coarse2fine.models.text import TextBag, TextTransformer, folded, neighbour_pairs

MODELS = [TextBag, TextTransformer]


@pytest.fixture(params=MODELS, ids=lambda model: model.__name__)
def model(request):
    return request.param(num_classes=4).eval()


def test_the_head_is_found(model):
    name, layer = find_head(model)
    assert name == "head"
    assert layer.out_features == 4


def test_padding_changes_nothing(model):
    sentence = torch.tensor([[5, 7, 9]])
    torch.testing.assert_close(model(F.pad(sentence, (0, 6))), model(sentence))


def test_the_other_sentences_of_a_batch_change_nothing(model):
    batch = torch.tensor([[5, 7, 9], [8, 0, 0], [0, 0, 0]])
    for row in range(3):
        torch.testing.assert_close(model(batch)[row : row + 1], model(batch[row : row + 1]))


@pytest.mark.parametrize("training", [True, False])
def test_a_sentence_without_words_has_finite_logits_and_gradients(model, training):
    model.train(training)
    logits = model(torch.tensor([[0, 0], [3, 0]]))
    logits.logsumexp(dim=1).sum().backward()
    assert logits.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_the_order_of_words_counts(model):
    one, other = model(torch.tensor([[5, 7, 9], [7, 5, 9]]))
    assert not torch.allclose(one, other)


def test_padding_keeps_an_embedding_of_zero(model):
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.tensor([[5, 7, 0]])).sum().backward()
    optimiser.step()
    table = next(
        part for part in model.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)
    )
    assert not table.weight[0].any()


def test_a_bag_is_the_mean_over_its_words_and_pairs():
    bag = TextBag(num_classes=2, vocabulary_size=50, dropout=0.0)
    batch = torch.tensor([[5, 7, 9, 0]])
    ids = [5, 7, 9, *neighbour_pairs(batch, 50)[0, :2].tolist()]
    mean = bag.bag.weight[ids].mean(dim=0)
    torch.testing.assert_close(bag(batch)[0], bag.head(bag.hidden(mean)))


def test_pairs_tell_neighbours_and_their_order_apart():
    pairs = neighbour_pairs(torch.tensor([[5, 7, 5, 7, 0, 9]]), size=2**14)[0]
    assert pairs[0] == pairs[2] != pairs[1]
    assert pairs[3:].tolist() == [0, 0]
    assert ((pairs[:3] > 0) & (pairs[:3] < 2**14)).all()


def test_pairs_spread_evenly_over_their_hashes():
    tokens = torch.randint(1, 2**15, (2000, 51))
    counts = neighbour_pairs(tokens, size=101).flatten().bincount(minlength=101)
    assert counts[0] == 0
    assert counts[1:].min() > 850
    assert counts[1:].max() < 1150


def test_words_are_folded_into_the_table():
    assert folded(torch.tensor([0, 1, 4, 5, 2**15 - 1]), size=5).tolist() == [0, 1, 4, 1, 3]
    TextBag(num_classes=2, vocabulary_size=16)(torch.tensor([[2**15 - 1, 17]]))


def test_a_sentence_longer_than_the_positions_is_refused_with_the_way_out():
    model = TextTransformer(num_classes=2, max_length=3)
    with pytest.raises(ValueError, match="4 tokens long, but the model takes 3; .*max_length=4"):
        model(torch.ones(1, 4, dtype=torch.int64))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_word_order_can_be_learned(model):
    """The class is which of two words comes first; a bag of words alone could not tell."""
    first = torch.randint(2, (64,))
    noise = torch.randint(10, 20, (64, 2))
    batch = torch.stack([first + 5, 6 - first, *noise.T], dim=1)
    model = model(num_classes=2, vocabulary_size=32, width=16, dropout=0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimiser.zero_grad()
        F.cross_entropy(model(batch), first).backward()
        optimiser.step()
    assert (model(batch).argmax(dim=1) == first).all()


@pytest.mark.slow
def test_a_bag_learns_banking77():
    folder = Path(os.environ.get("COARSE2FINE_DATA", ""), "banking77")
    if not folder.is_dir():
        pytest.skip("needs the folder banking77 in COARSE2FINE_DATA")
    source = load_table(folder)
    model = TextBag(num_classes=77)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(15):
        for rows in torch.randperm(len(source.train)).split(128):
            optimiser.zero_grad()
            batch = source.train.take(rows)
            F.cross_entropy(model(batch.inputs), batch.targets).backward()
            optimiser.step()
    model.eval()
    assert (model(source.test.inputs).argmax(dim=1) == source.test.targets).float().mean() > 0.85
