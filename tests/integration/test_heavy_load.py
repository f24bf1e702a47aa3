"""Many runs, a hundred thousand classes, a million epochs."""

import sys

import loading
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_many_runs_over_two_processes_are_right_and_memory_stays_flat(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figures = loading.many_runs(tmp_path, 150)  # `make torture` trains 500
    assert figures["runs"] == 150
    assert figures["megabytes_most_after_that"] < 1.05 * figures["megabytes_after_a_tenth"]


def test_a_hundred_thousand_classes_go_through_loss_json_tree_and_report(tmp_path):
    figures = loading.many_classes(tmp_path, 100_000)
    assert figures["megabytes_report"] < 10


@pytest.mark.parametrize(
    "count", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["10k", "1M"]
)
def test_a_long_log_is_resumed_and_ends_as_it_should(count, tmp_path):
    figures = loading.many_epochs(tmp_path, count)
    assert figures["epochs"] == count
