"""Classes, clusters and mistakes of random runs against plain counting, and of many classes."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from made_runs import make_comparison, make_run
from plain import plain_content

from coarse2fine import Hierarchy
from coarse2fine.report.runs import gather


@pytest.fixture(scope="module")
def random_runs(tmp_path_factory):
    """Twelve classes of random size, one of them empty, in three levels; three seeds."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("random")
    middle = rng.permutation([0, 0, 0, 1, 1, 2, 3, 3, 3, 4, 4, 4])
    tree = Hierarchy.from_levels([np.array([0, 1, 1, 0, 2])[middle], middle])
    pairs = {"baseline": [], "continuous": []}
    for seed in range(3):
        targets = rng.integers(0, 11, 300)
        for method, share in (("baseline", 0.3), ("continuous", 0.4)):
            guesses = rng.integers(0, 12, 300)
            found = np.where(rng.random(300) < share, targets, guesses)
            levels = None if method == "baseline" else tree
            names = tuple(f"class {index}" for index in range(12))
            options = {"method": method, "seed": seed, "hierarchy": levels, "class_names": names}
            folder = path / f"seed-{seed}" / method
            make_run(folder, predictions=found, targets=targets, **options)
            pairs[method] += list(zip(targets.tolist(), found.tolist(), strict=True))
    return plain_content([path]), tree, pairs


def percent(part, whole):
    return pytest.approx(100 * part / whole, abs=5e-4) if whole else None


def test_classes_agree_with_plain_counting(random_runs):
    content, _, pairs = random_runs
    classes = content["classes"]
    for place, index in enumerate(classes["index"]):
        assert classes["names"][place] == f"class {index}"
        for when, method in (("before", "baseline"), ("after", "continuous")):
            own = [found for wanted, found in pairs[method] if wanted == index]
            assert classes["samples"][place] == len(own)
            assert classes[when][place] == percent(own.count(index), len(own))
    assert None in classes["after"]  # of the class without samples


def test_clusters_agree_with_plain_counting(random_runs):
    content, tree, pairs = random_runs
    index = content["classes"]["index"]
    assert len(content["clusters"]) == len(content["levels"]) == 2
    for at, level in enumerate(content["levels"]):
        members = [set(index[start:end]) for start, end in pairwise(level["edges"])]
        assert sorted(map(sorted, members)) == sorted(map(sorted, tree.clusters(at)))
        for place, own in enumerate(members):
            check_cluster(content["clusters"][at], place, own, index, pairs)


def check_cluster(level, place, own, index, pairs):
    mistakes = {}
    for when, method in (("before", "baseline"), ("after", "continuous")):
        inside = [(wanted, found) for wanted, found in pairs[method] if wanted in own]
        within = sum(found in own for _, found in inside)
        assert level[when][place] == percent(within, len(inside))
        right = sum(wanted == found for wanted, found in inside)
        assert level[f"class_{when}"][place] == percent(right, len(inside))
        mistakes[when] = Counter(
            (wanted, found)
            for wanted, found in pairs[method]
            if wanted != found and (wanted in own or found in own)
        )
    most = {
        cell: max(c[cell] for c in mistakes.values()) for cell in sum(mistakes.values(), Counter())
    }
    listed = level["pairs"][place]
    cells = [(index[row], index[column]) for row, column, *_ in listed]
    assert [most[cell] for cell in cells] == sorted(most.values(), reverse=True)[:5]
    samples = Counter(wanted for wanted, _ in pairs["baseline"])
    for cell, (*_, before, after) in zip(cells, listed, strict=True):
        assert before == percent(mistakes["before"][cell], samples[cell[0]])
        assert after == percent(mistakes["after"][cell], samples[cell[0]])


def test_confusions_and_mistakes_agree_with_plain_counting(random_runs):
    content, _, pairs = random_runs
    index = content["classes"]["index"]
    counts = {}
    for when, method in (("before", "baseline"), ("after", "continuous")):
        counts[when] = Counter(pairs[method])
        rows, columns, cells = content["confusion"][when]
        found = {
            (index[row], index[column]): count
            for row, column, count in zip(rows, columns, cells, strict=True)
        }
        assert found == dict(counts[when])
    rises = {
        cell: counts["after"][cell] - counts["before"][cell]
        for cell in counts["before"].keys() | counts["after"].keys()
        if cell[0] != cell[1]
    }
    check_mistakes(content["mistakes"]["better"], index, counts, sorted(rises.values()), -1)
    check_mistakes(content["mistakes"]["worse"], index, counts, sorted(rises.values())[::-1], 1)


def check_mistakes(listed, index, counts, rises, sign):
    assert [after - before for *_, before, after in listed] == rises[:20]
    assert all(sign * rise > 0 for rise in rises[:20])
    for row, column, before, after in listed:
        cell = (index[row], index[column])
        assert (before, after) == (counts["before"][cell], counts["after"][cell])


# ------------------------------------------------------------------------------ many classes


@pytest.mark.parametrize(("count", "level"), [(1500, None), (1503, 1)])
def test_more_than_1500_classes_are_confused_by_cluster(tmp_path, count, level):
    fine = np.arange(count) // 3
    tree = Hierarchy.from_levels([fine // 10, fine])
    path = make_comparison(tmp_path, tree, methods={"baseline": 0.4, "continuous": 0.5})
    content = plain_content([path])
    confusion = content["confusion"]
    assert confusion["level"] == level
    assert (content["taken_for"] is None) == (level is not None)
    owner = np.arange(count) if level is None else fine
    assert confusion["samples"] == (30 * np.bincount(owner)).tolist()
    rows, columns, counts = confusion["after"]
    assert sum(counts) == 30 * count
    cells = np.zeros((owner[-1] + 1,) * 2, int)
    for entry in gather([path]).entries[1:]:
        for run in entry.runs:
            predictions, targets = run.predictions
            np.add.at(cells, (owner[targets], owner[predictions]), 1)
    assert np.array_equal(cells[rows, columns], counts)
    assert np.count_nonzero(cells) == len(counts)


@pytest.mark.parametrize("method", ["baseline", "continuous"])
def test_too_many_clusters_have_no_matrix(tmp_path, method):
    tree = Hierarchy.from_levels([np.arange(3002) // 2])
    path = make_comparison(tmp_path, tree, methods={method: 0.4}, seeds=(0,), samples=1)
    assert plain_content([path])["confusion"] is None


def test_a_hundred_thousand_classes_take_little_memory(tmp_path):
    """A dense matrix of them would take 80 GB."""
    count = 100_000
    tree = Hierarchy.from_levels([np.arange(count) // size for size in (10_000, 100, 5)])
    methods = {"baseline": 0.4, "continuous": 0.5}
    path = make_comparison(tmp_path, tree, methods=methods, seeds=(0,), samples=1)
    content = plain_content([path])
    assert content["confusion"]["level"] == 1
    assert [len(level["after"]) for level in content["clusters"]] == [10, 1000, 20_000]
    found = gather([path]).entries[1].runs[0]
    assert np.mean(content["classes"]["after"]) == pytest.approx(found.accuracy)
