"""How much memory can still be had, by files of the system that are made here."""

import pytest

from coarse2fine._util import memory

MEMINFO = "MemTotal:  900 kB\nMemAvailable:     500 kB\nHugePages_Free:  0\nSwapFree:   100 kB\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_where_the_system_does_not_say_nobody_knows(system):
    assert memory.free_bytes() is None
    system({"proc/meminfo": "MemTotal: 900 kB\n"})
    assert memory.free_bytes() is None


def test_is_what_the_machine_has_with_its_swap(system):
    system({"proc/meminfo": MEMINFO})
    assert memory.free_bytes() == 600 * 1024


def test_is_less_where_a_container_has_a_limit(system):
    system(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/jobs/mine\n",
            "cgroup/jobs/mine/memory.max": "max\n",
            "cgroup/jobs/mine/memory.current": "10\n",
            "cgroup/jobs/memory.max": "5000\n",
            "cgroup/jobs/memory.current": "1500\n",
            "cgroup/jobs/memory.stat": "anon 900\ninactive_file 200\n",
        }
    )
    assert memory.free_bytes() == 5000 - 1500 + 200


def test_knows_the_first_version_of_limits_too(system):
    folder = "cgroup/memory/job/memory"
    system(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "5:cpu:/job\n4:memory:/job\n0::/\n",
            f"{folder}.limit_in_bytes": "7000\n",
            f"{folder}.usage_in_bytes": "6000\n",
            f"{folder}.stat": "total_inactive_file 50\n",
        }
    )
    assert memory.free_bytes() == 1050


@pytest.mark.skipif(memory.free_bytes() is None, reason="only Linux says so")
def test_this_machine_has_some():
    assert 2**20 < memory.free_bytes() < 2**50
