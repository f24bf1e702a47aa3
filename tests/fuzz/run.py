"""Fuzz every parser, guided by coverage: ``python tests/fuzz/run.py --inputs 1000000``.

It needs atheris, which there is for Linux alone. A failure is kept in the folder of
``--crashes``, and repeated by ``--target NAME --input FILE``, for which atheris is not needed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
PROGRESS_SECONDS = 30.0
WAIT_SECONDS = 25  # for an input that waits without computing
MEMORY_MB = 4096


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=MILLION, help="over all targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", help="one alone; it gets all inputs")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--out", type=Path, help="JSON of what was done")
    parser.add_argument("--crashes", type=Path, default=Path("fuzz-crashes"))
    parser.add_argument("--input", type=Path, help="repeat one input of a target")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)  # of a target's own process
    return parser.parse_args(arguments)


def main() -> int:
    asked = parsed()
    sys.path.insert(0, str(HERE))  # as pytest does
    if asked.count is not None:
        fuzz(asked.target, asked.inputs, asked.seed, asked.count, asked.crashes)
        return 0
    if asked.input is not None:
        return repeat(asked.target, asked.input)
    return drive(asked)


# ------------------------------------------------------------------------------- one target


def fuzz(name: str, inputs: int, seed: int, count: Path, crashes: Path) -> None:
    """Fuzz a target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["coarse2fine"]):
        import targets
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="c2f-fuzz-") as place:
        root = Path(place)
        test = prepared(name, root / "in", is_alarmed=False)
        corpus = root / "corpus"
        corpus.mkdir()
        for number, data in enumerate(targets.TARGETS[name].seeds()):
            (corpus / f"{number:04d}").write_bytes(data)
        done = 0

        def test_and_count(data: bytes) -> None:
            nonlocal done
            done += 1
            if done % 500 == 0 or done == inputs:
                count.write_text(str(done))
            test(data)

        options = {
            "atheris_runs": inputs,
            "seed": seed + 1,  # 0 would be the time
            "max_len": targets.TARGETS[name].longest,
            "timeout": WAIT_SECONDS,
            "rss_limit_mb": MEMORY_MB,
            "artifact_prefix": f"{crashes / name}-",
            "verbosity": 1,
        }
        flags = [f"-{option}={value}" for option, value in options.items()]
        atheris.Setup([sys.argv[0], *flags, str(corpus)], test_and_count)
        try:
            atheris.Fuzz()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the fuzzer's own, which it leaves running


def prepared(name: str, folder: Path, *, is_alarmed: bool) -> Any:
    """Return a target's function of an input, with everything imported and the guard set up."""
    import targets
    from fuzz_guard import Guard, limit_memory, only_documented_warnings

    folder.mkdir()
    only_documented_warnings()
    targets.warm_up(name)
    limit_memory()
    return targets.tester(name, folder, Guard(folder, is_alarmed=is_alarmed))


def repeat(name: str, input: Path) -> int:
    """Try one input, and say how each attempt with it ended."""
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="c2f-fuzz-") as place:
        test = prepared(name, Path(place) / "in", is_alarmed=True)
        for error in test(input.read_bytes()):
            say("fine" if error is None else f"{type(error).__name__}: {error}")
    return 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def scratch() -> str | None:
    """Return a folder in memory where the system has one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# ------------------------------------------------------------------------------ all targets


def drive(asked: argparse.Namespace) -> int:
    """Fuzz all targets, each in a process of its own, and write down what was done."""
    from targets import TARGETS

    started = time.monotonic()
    asked.crashes.mkdir(parents=True, exist_ok=True)
    waiting = [asked.target] if asked.target else list(TARGETS)
    running: dict[str, Job] = {}
    finished: dict[str, Job] = {}
    while waiting or running:
        while waiting and len(running) < asked.jobs:
            name = waiting.pop(0)
            inputs = asked.inputs if asked.target else share(TARGETS[name].share, asked.inputs)
            running[name] = Job(name, inputs, asked)
        time.sleep(0.2)
        for name, job in list(running.items()):
            if job.is_done():
                finished[name] = running.pop(name)
                say(job.outcome())
            elif job.is_due():
                say(f"{name}: {job.done()} of {job.inputs} inputs")
    report(asked, finished, time.monotonic() - started)
    failed = [job for job in finished.values() if job.process.returncode]
    for job in failed:
        say(f"{job.name} failed (seed {asked.seed}): {job.advice()}")
    return 1 if failed else 0


def share(of_a_million: int, inputs: int) -> int:
    return max(1, round(of_a_million * inputs / MILLION))


class Job:
    """The process that fuzzes a target."""

    def __init__(self, name: str, inputs: int, asked: argparse.Namespace) -> None:
        self.name, self.inputs, self.crashes = name, inputs, asked.crashes
        self.folder = tempfile.TemporaryDirectory(prefix="c2f-fuzz-log-")
        self.count, self.log = (Path(self.folder.name) / x for x in ("count", "log"))
        self.before = set(asked.crashes.iterdir())
        command = [sys.executable, __file__, "--target", name, "--inputs", str(inputs)]
        command += ["--seed", str(asked.seed), "--crashes", str(asked.crashes.resolve())]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--count", str(self.count)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self.started = self.told = time.monotonic()
        self.seconds = 0.0

    def is_done(self) -> bool:
        if self.process.poll() is None:
            return False
        self.seconds = time.monotonic() - self.started
        return True

    def is_due(self) -> bool:
        """Whether it is time for a line of progress."""
        if time.monotonic() - self.told < PROGRESS_SECONDS:
            return False
        self.told = time.monotonic()
        return True

    def done(self) -> int:
        return int(self.count.read_text() or 0) if self.count.is_file() else 0

    def coverage(self) -> int:
        """Return how many places in the code were reached, as libFuzzer counts them."""
        found = re.findall(r"cov: (\d+)", self.log.read_text(errors="replace"))
        return max(map(int, found), default=0)

    def outcome(self) -> str:
        rate = self.done() / max(self.seconds, 1e-9)
        state = "failed" if self.process.returncode else "fine"
        return f"{self.name}: {self.done()} inputs in {self.seconds:.0f} s ({rate:.0f}/s), {state}"

    def advice(self) -> str:
        """Return what went wrong, and how to see it again."""
        new = sorted(set(self.crashes.iterdir()) - self.before)
        log = self.log.read_text(errors="replace")
        kept = self.crashes / f"{self.name}.log"
        kept.write_text(log)
        mine = [path for path in new if path.name.startswith(self.name) and path != kept]
        if not mine:
            return f"exit code {self.process.returncode}, see {kept}"
        again = [sys.executable, __file__, "--target", self.name, "--input", str(mine[0])]
        return f"{shlex.join(again)}  (see {kept})"


def report(asked: argparse.Namespace, jobs: dict[str, Job], seconds: float) -> None:
    content = {
        "inputs": sum(job.done() for job in jobs.values()),
        "failures": sum(bool(job.process.returncode) for job in jobs.values()),
        "seconds": round(seconds, 1),
        "seed": asked.seed,
        "command": shlex.join(sys.argv),
        **{f"inputs {name}": job.done() for name, job in jobs.items()},
        **{f"seconds {name}": round(job.seconds, 1) for name, job in jobs.items()},
        **{f"coverage {name}": job.coverage() for name, job in jobs.items()},
        "python": platform.python_version(),
        **{name: version(name) for name in ("coarse2fine", "atheris", "torch", "pyarrow")},
    }
    say(f"{content['inputs']} inputs, {content['failures']} failures in {seconds:.0f} s")
    if asked.out is not None:
        asked.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
