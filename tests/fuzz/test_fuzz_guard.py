"""The guard sees what a parser must never do."""

import json

import pytest
from test_fuzz_short import HERE, run

SEEN = {
    "write outside": "it opened",
    "write outside, error swallowed": "it opened",
    "write by a path that climbs": "it opened",
    "read outside": "it opened",
    "remove outside": "os.remove",
    "rename out": "os.rename",
    "link outside": "os.symlink",
    "chmod outside": "os.chmod",
    "temporary file": "mkstemp",
    "process": "subprocess.Popen",
    "shell": "os.system",
    "socket": "socket.",
    "eval": "it ran",
    "pickle": "pickle.find_class",
    "KeyError": "KeyError",
    "recursion": "RecursionError",
    "memory": "MemoryError",
    "computes too long": "took",
    "waits too long": "Hang",
    "warning": "UserWarning",
    "file not named": "does not name the file",
    "message too long": "a message of",
    "control characters": "no sentence",
    "two lines": "no sentence",
    "write inside": "",
    "a sentence": "",
    "import": "",
}


@pytest.fixture(scope="module")
def outcome():
    done = run(HERE / "fuzz_misbehaving.py")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("deed", SEEN)
def test_the_guard_sees(outcome, deed):
    assert SEEN[deed] in outcome["found"][deed]
    assert bool(SEEN[deed]) == bool(outcome["found"][deed])


def test_the_guard_prevents_what_it_sees(outcome):
    assert outcome["left"] == ["deep", "secret"]
