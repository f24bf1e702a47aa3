"""`c2f hierarchy compare`."""

import json
from pathlib import Path

import pytest
from made_runs import make_run

from coarse2fine import RunResult, class_distances, class_vectors, distance_correlation
from coarse2fine.cli.app import run

from .calls import SHORT


@pytest.fixture(scope="session")
def seeds(tmp_path_factory):
    """The folder of a finished comparison of three seeds."""
    path = tmp_path_factory.mktemp("seeds") / "run"
    assert run(["train", *SHORT, "--seeds", "3", "--out", str(path), "--json"]) == 0
    return path


def distances(path):
    return class_distances(class_vectors(RunResult.load(Path(path)).model()))


def test_the_baselines_of_all_seeds_are_compared(c2f, seeds):
    code, out, err = c2f("hierarchy", "compare", seeds, "--json")
    assert (code, err) == (0, "")
    pairs = [json.loads(line) for line in out.splitlines()]
    runs = [seeds / f"seed-{seed}" / "baseline" for seed in range(3)]
    assert [pair["runs"] for pair in pairs] == [
        [str(runs[0]), str(runs[1])],
        [str(runs[0]), str(runs[2])],
        [str(runs[1]), str(runs[2])],
    ]
    for pair in pairs:
        wanted = distance_correlation(*map(distances, pair["runs"]))
        assert pair["distance_correlation"] == pytest.approx(wanted)
        fewest = min(len(counts) for counts in pair["num_clusters"])
        assert len(pair["level_agreements"]) == fewest - 1


def test_the_table_has_a_line_for_each_source_and_for_each_two(c2f, seeds):
    code, out, _ = c2f("hierarchy", "compare", seeds, seeds / "seed-0" / "baseline")
    assert code == 0
    head, *lines = out.splitlines()
    assert head.split()[:8] == ["runs", "of", "and", "of", "pairs", "distances", "finest", "level"]
    # Three pairs of seeds, and the run beside each of them; alone it makes no pair.
    assert [line.split()[2] for line in lines] == ["3", "3"]
    assert [line.split()[1] for line in lines] == [str(seeds), str(seeds / "seed-0" / "baseline")]
    assert lines[1].count("to 1.00)") >= 2  # by its distances and levels with itself


def test_a_run_agrees_with_itself(c2f, seeds):
    path = seeds / "seed-1" / "continuous"
    (line,) = c2f("hierarchy", "compare", path, path)[1].splitlines()[1:]
    assert set(line.split()[2:]) == {"1", "1.00"}


def test_the_linkage_is_that_of_the_levels(c2f, seeds):
    found = [
        json.loads(c2f("hierarchy", "compare", seeds, "--json", *more)[1].splitlines()[0])
        for more in ([], ["--linkage", "complete"])
    ]
    assert found[0]["distance_correlation"] == found[1]["distance_correlation"]
    assert found[0]["num_clusters"] != found[1]["num_clusters"]


def test_what_cannot_be_compared_is_one_line(c2f, seeds, tmp_path):
    alone = seeds / "seed-0" / "baseline"
    none = tmp_path / "none"
    make_run(none / "seed-0" / "continuous", predictions=[0, 1], targets=[0, 1])
    for sources, message in (
        ([alone], f"to compare takes at least two runs. Got only {alone}."),
        ([tmp_path / "nowhere"], f"there is no run {tmp_path / 'nowhere'}."),
        ([none], f"{none} has no baseline that is done; name runs of it instead."),
    ):
        code, out, err = c2f("hierarchy", "compare", *sources)
        assert (code, out, err) == (2, "", f"error: {message}\n")
