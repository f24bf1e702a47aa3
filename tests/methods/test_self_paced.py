"""Self-paced learning: which samples count, and when."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of, no_losses
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.self_paced import SelfPaced, median

LOSSES = (0.1, 0.4, 0.2, 0.8)


def method(**settings):
    return SelfPaced(Plan(3, 20, 5), **settings)


def at_threshold(threshold):
    """A method whose next epoch has a threshold."""
    found = method(growth=2.0)
    found.threshold.fill_(threshold / 2)
    return found


def losses(*values):
    return lambda: torch.tensor(values)


def counting(found):
    """The samples that count, or None where all do."""
    return None if found.counts is None else found.counts.nonzero().flatten().tolist()


def paced(found, epochs, given=LOSSES):
    """The samples that count in each of some epochs, where losses stay what they are."""
    chosen = []
    for epoch in epochs:
        found.begin_epoch(0, epoch, losses(*given))
        chosen.append(counting(found))
    return chosen


# ------------------------------------------------------------------------- which and when


def test_there_is_one_stage_on_the_classes_that_takes_all_epochs():
    assert method().stages == (Stage(3, 20, 5, counts_from=0),)


@pytest.mark.parametrize(
    ("k", "chosen"),
    [(8, [0]), (4, [0, 2]), (2, [0, 1, 2]), (1, None)],
)
def test_samples_of_a_loss_below_one_over_k_count(k, chosen):
    found = at_threshold(1 / k)
    found.begin_epoch(0, 1, losses(*LOSSES))
    assert counting(found) == chosen


def test_a_sample_whose_loss_is_the_threshold_does_not_count():
    found = at_threshold(0.5)
    found.begin_epoch(0, 1, losses(0.5, 0.25, 1.0))
    assert counting(found) == [1]


@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=6),
    st.integers(1, 200),
)
def test_the_choice_is_the_best_of_all_by_the_objective_of_the_source(hundredths, threshold):
    """Of all v, it has the least Σ vL - (1/K) Σ v; in whole numbers, so that ties are exact."""
    found = at_threshold(float(threshold))
    found.begin_epoch(0, 1, losses(*map(float, hundredths)))
    counts = [True] * len(hundredths) if found.counts is None else found.counts.tolist()

    def objective(chosen):
        return sum(loss - threshold for loss, v in zip(hundredths, chosen, strict=True) if v)

    choices = product([False, True], repeat=len(hundredths))
    assert objective(counts) == min(map(objective, choices))


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (LOSSES, [0, 2]),
        ((5.0, 1.0, 4.0, 2.0, 3.0), [1, 3]),  # of an odd number, the smaller half
        ((0.3, 0.2), [1]),
        (tuple(range(100, 0, -1)), list(range(50, 100))),
    ],
    ids=["four", "five", "two", "hundred"],
)
def test_after_the_warm_epoch_half_of_the_samples_count(given, chosen):
    assert paced(method(), (0, 1), given) == [None, chosen]


def test_the_threshold_grows_by_a_factor_until_all_count():
    """0.4, 0.52, 0.676, 0.8788, of which only the last is above all losses."""
    found = method()
    assert paced(found, range(5)) == [None, [0, 2], [0, 1, 2], [0, 1, 2], None]
    assert found.threshold.item() == pytest.approx(0.4 * 1.3**3)


def test_another_factor_grows_faster():
    found = method(growth=3.0)
    assert paced(found, range(3)) == [None, [0, 2], None]
    assert found.threshold.item() == pytest.approx(0.4 * 3)


def test_losses_are_those_of_the_epoch():
    """What was easy may become hard, and the threshold grows from what it was."""
    found = method()
    assert paced(found, (0, 1)) == [None, [0, 2]]
    assert paced(found, (2,), (0.6, 0.1, 0.51, 0.53)) == [[1, 2]]


def test_no_pass_over_the_data_is_made_before_or_after_the_pacing():
    found = method(warm_epochs=3)
    for epoch in range(3):
        found.begin_epoch(0, epoch, no_losses)
        assert found.counts is None
    assert paced(found, (3, 4, 5, 6))[-1] is None
    for epoch in (7, 8, 19):
        found.begin_epoch(0, epoch, no_losses)
        assert found.counts is None


def test_once_all_count_they_do_for_ever():
    found = method()
    paced(found, range(5))
    found.begin_epoch(0, 5, losses(9.0, 9.0, 9.0, 9.0))
    assert found.counts is None


def test_where_half_of_the_samples_have_no_loss_left_all_count():
    """Nothing is below a threshold of 0, which does not grow either."""
    assert paced(method(), (0, 1), (0.0, 0.0, 0.0, 2.0)) == [None, None]


@given(st.lists(st.floats(0, 50, width=32), min_size=1, max_size=30, unique=True))
def test_half_of_different_losses_are_below_the_median(values):
    below = torch.tensor(values) < median(torch.tensor(values))
    assert below.sum() == len(values) // 2


# ------------------------------------------------------------------------------- the loss


LOGITS = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])


def halfway():
    """A method in an epoch in which samples 0 and 2 of four count."""
    found = method()
    paced(found, (0, 1))
    return found


def test_the_loss_is_the_mean_over_the_batch_with_zeros_for_those_that_do_not_count():
    """By hand: of samples 2, 1 and 0, the one in the middle has no part."""
    batch = batch_of([0, 1, 1], rows=[2, 1, 0])
    e = torch.e
    first = -torch.tensor(e**2 / (e**2 + 2)).log()
    last = -torch.tensor(1 / (e**3 + 2)).log()
    torch.testing.assert_close(halfway()(LOGITS, batch), (first + 0 + last) / 3)


def test_the_rows_of_a_batch_say_which_samples_it_has():
    one_by_one = F.cross_entropy(LOGITS, torch.tensor([0, 1, 1]), reduction="none")
    found = halfway()(LOGITS, batch_of([0, 1, 1], rows=[3, 2, 1]))
    torch.testing.assert_close(found, one_by_one[1] / 3)


def test_samples_that_do_not_count_have_no_gradient():
    logits = LOGITS.clone().requires_grad_()
    halfway()(logits, batch_of([0, 1, 1], rows=[2, 1, 0])).backward()
    wanted = (LOGITS.softmax(1) - F.one_hot(torch.tensor([0, 1, 1]), 3)) / 3
    torch.testing.assert_close(logits.grad[[0, 2]], wanted[[0, 2]])
    assert logits.grad[1].tolist() == [0.0, 0.0, 0.0]


def test_a_batch_of_none_that_count_has_a_loss_of_zero():
    logits = LOGITS.clone().requires_grad_()
    loss = halfway()(logits, batch_of([0, 1, 1], rows=[1, 3, 1]))
    loss.backward()
    assert (loss.item(), logits.grad.abs().sum().item()) == (0.0, 0.0)


@pytest.mark.parametrize("epochs", [(0,), range(6)], ids=["warm", "complete"])
def test_where_all_count_the_loss_is_plain_cross_entropy(epochs):
    found, targets = method(), torch.tensor([0, 1, 1])
    paced(found, epochs)
    assert torch.equal(found(LOGITS, batch_of(targets)), F.cross_entropy(LOGITS, targets))


# ------------------------------------------------------------------------------ the state


@pytest.mark.parametrize("stop", range(7))
def test_a_method_with_the_state_of_another_chooses_what_that_would(stop):
    through = method()
    wanted = paced(through, range(7))
    before, after = method(), method()
    paced(before, range(stop))
    after.load_state_dict(before.state_dict())
    assert paced(after, range(stop, 7)) == wanted[stop:]
    assert after.threshold.equal(through.threshold)
