"""Hundreds of kills at random moments, and proof that they lost nothing.

    python tests/integration/torture_kills.py --kills 300 --seed 0 --out kills.json

Each round takes something up that is killed several times, goes on to its end, and is compared
bit for bit with what came out undisturbed. The moments depend on how fast the machine is, so a
seed repeats what is tried, not the very same instant.
"""

import argparse
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import editor_kills
import killing
import sweep_kills

from coarse2fine import Hierarchy
from coarse2fine.runs.writer import versions

KILLS_A_ROUND = (3, 9)
# How far a process gets at most before it dies; a resumed one counts anew.
CALLS = {"methods": 16, "levels": 3}


class Torture:
    """Kills, compares and counts.

    Args:
        folder: For all that is made.
        seed: Of what is tried.
    """

    def __init__(self, folder, seed):
        self.folder, self.seed = folder, seed
        self.kills, self.counts, self.round = Counter(), Counter(), 0
        self.undisturbed = {}

    def run(self, kills):
        """Go on until there were so many kills, each kind of round in turn."""
        self._train_undisturbed()
        kinds = [
            self.training, self.checkpoints, self.editor, self.sweep, self.levels,
            self.sweep_workers, self.training, self.checkpoints, self.search, self.sweep,
            self.editor, self.sweep_workers,
        ]  # fmt: skip
        while self.kills.total() < kills:
            self.moments = random.Random(f"{self.seed}/{self.round}")
            self.place = self.folder / str(self.round)
            self.place.mkdir()
            kinds[self.round % len(kinds)](self.moments.randint(*KILLS_A_ROUND))
            self.round += 1
            if self.round % 5 == 0:
                say(f"{self.kills.total()} kills in {self.round} rounds")

    def _train_undisturbed(self):
        for name in killing.TRAININGS:
            killing.finish(killing.start(self.folder / name, None, 0, False, name))
            self.undisturbed[name] = killing.outcome(self.folder / name)
        folder = self.folder / "sweep"
        folder.mkdir()
        self.undisturbed["sweep"] = sweep_kills.end(folder)

    # ------------------------------------------------------------------------ trainings

    def training(self, kills):
        """All methods, at any moment."""
        self._at_any_moment("methods", "training, any moment", kills)

    def search(self, kills):
        """The search for T, at any moment."""
        self._at_any_moment("search", "search for T, any moment", kills)

    def checkpoints(self, kills):
        """All methods, around the calls that change something on the disk."""
        places = [name for name in killing.PLACES if name != "level"]
        self._around_calls("methods", places, "training", kills)

    def levels(self, kills):
        """The curriculum, around and amid its level changes."""
        places = ["level", "level", "epoch", "checkpoint", "replace"]
        self._around_calls("levels", places, "level changes", kills)

    def _at_any_moment(self, training, count_as, kills):
        for _ in range(kills):
            process = killing.start(self.place, None, 0, False, training)
            killing.kill_somewhen(process, self.place, self.moments)
            self._settle(process.exitcode, training, count_as)
        self._compare(training)

    def _around_calls(self, training, places, count_as, kills):
        for _ in range(kills):
            place, after = self.moments.choice(places), self.moments.random() < 0.5
            call = self.moments.randint(1, CALLS[training])
            process = killing.start(self.place, place, call, after, training)
            self._settle(killing.exit_code(process), training, f"{count_as}, {place}")
        self._compare(training)

    def _settle(self, exit_code, training, count_as):
        """Count a kill, or compare what was too quick for one and begin anew."""
        assert exit_code in (0, -signal.SIGKILL), exit_code
        if exit_code:
            self.kills[count_as] += 1
        else:
            self._compare(training)
            self.place = self.place / "next"

    def _compare(self, training):
        """Go on to the end; what comes out is the same to the bit, and nothing else is left."""
        killing.finish(killing.start(self.place, None, 0, False, training))
        assert killing.outcome(self.place) == self.undisturbed[training], "not the same bits"
        assert killing.leftovers(self.place) == []
        results = [name for name in self.undisturbed[training] if name.endswith("result.json")]
        self.counts["resumed runs compared bit for bit"] += len(results)

    # --------------------------------------------------------------------------- sweeps

    def sweep(self, kills):
        """The parent of a sweep; what was finished stays as it is."""
        finished = {}
        for _ in range(kills):
            self.kills["sweep, parent"] += sweep_kills.kill_parent(self.place, self.moments)
            finished = self._still_there(finished)
        self._compare_sweep(finished)

    def sweep_workers(self, kills):
        """The workers of a sweep."""
        found = sweep_kills.kill_workers(self.place, self.moments, kills)
        self.kills["sweep, worker"] += found
        self._compare_sweep(self._still_there({}))

    def _still_there(self, finished):
        now = sweep_kills.finished(self.place)
        assert finished.items() <= now.items(), "a finished result was lost or changed"
        self.counts["finished results found unchanged"] += len(finished)
        return now

    def _compare_sweep(self, finished):
        outcome = sweep_kills.end(self.place)
        self._still_there(finished)
        assert outcome == self.undisturbed["sweep"], "not the same bits"
        self.counts["resumed runs compared bit for bit"] += len(sweep_kills.finished(self.place))

    # --------------------------------------------------------------------------- editor

    def editor(self, kills):
        """The editor, around the steps of a save and at any moment."""
        has_links = self.moments.random() < 0.8
        editing = editor_kills.Editing(self.place / "animals.json", has_links)
        for number in range(kills):
            if number % 2:
                seconds = self.moments.uniform(0, 0.15)
                is_killed = editing.session(1_000_000, seconds=seconds)
            else:
                # Each of these is called with every save.
                places = ["temporary", "sync", "mode", "replace", "unlink", "answer"]
                kill = self.moments.choice(places), self.moments.randint(1, 4)
                is_killed = editing.session(4, *kill, self.moments.random() < 0.5)
            assert is_killed
            self.kills["editor, any moment" if number % 2 else "editor, around a step"] += 1
        assert not editing.session(1)
        assert Hierarchy.load(editing.path) == editor_kills.version(editing.tried)
        assert editing.strays() == []
        self.counts["saves that were answered"] += editing.count
        self.counts["kept old files found unchanged"] += len(editing.backups())


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description="Kill, resume, compare.")
    parser.add_argument("--kills", type=int, default=300, help="at least so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    # Python would warn of semaphores that killed processes leave, which it cleans up.
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        torture = Torture(Path(folder), options.seed)
        try:
            torture.run(options.kills)
        except BaseException:
            say(
                f"failed in round {torture.round} after {torture.kills.total()} kills with seed "
                f"{options.seed}; again by {shlex.join([sys.executable, *sys.argv])}"
            )
            raise
    figures = {
        "command": shlex.join(sys.argv),
        "seed": options.seed,
        "seconds": round(time.monotonic() - started, 1),
        "kills": torture.kills.total(),
        "rounds": torture.round,
        **{f"kills: {place}": count for place, count in sorted(torture.kills.items())},
        **torture.counts,
        "versions": versions(),
    }
    text = json.dumps(figures, indent=1)
    say(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
