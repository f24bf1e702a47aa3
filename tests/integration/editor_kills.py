"""The hierarchy editor in a process of its own that is killed while it saves."""

import http.client
import json
import multiprocessing
import os
import signal
import tempfile
from pathlib import Path
from threading import Timer
from urllib.parse import urlsplit

import killing

from coarse2fine import Hierarchy
from coarse2fine.editor import EditorServer, Session
from coarse2fine.editor.requests import Handler

CLASSES = ["cat", "dog", "car", "van"]
# All that a save does to the disk, and its answer.
PLACES = {
    "temporary": ([tempfile], "mkstemp"),
    "sync": ([os], "fsync"),
    "mode": ([os], "chmod"),
    "link": ([os], "link"),
    "touch": ([Path], "touch"),  # where there are no links
    "replace": ([os], "replace"),
    "unlink": ([Path], "unlink"),
    "answer": ([Handler], "_send"),
}


def version(number):
    """A hierarchy that no other number gives."""
    names = [[f"version {number}", "the others"]]
    return Hierarchy.from_levels([[0, 1, 1, 1]], CLASSES, names)


def work(path, ready, place, call, after, has_links):
    if not has_links:
        os.link = refuse
    if place is not None:
        holders, name = PLACES[place]
        killing.die_at(holders, name, call, after=after)
    with EditorServer(Session(path)) as server:
        ready.send(server.address)
        server.serve_forever(poll_interval=0.01)


def refuse(*_):
    raise PermissionError(1, "Operation not permitted")


class Editing:
    """A file that is edited in one session after another, each of which is killed.

    Args:
        path: The file; made with version 0.
        has_links: Whether the disk knows second names of files. Defaults to True.
    """

    def __init__(self, path, has_links=True):
        self.path, self.has_links = path, has_links
        self.tried = 0  # the newest version that an editor was asked to save
        self.answered = 0  # the newest version that it said it had saved
        self.count = 0  # of saves that were answered
        self.kept = {}
        version(0).save(path)

    def session(self, saves, place=None, call=0, after=False, seconds=None, first=0):
        """Start the editor, save again and again, and return whether it was killed.

        Args:
            saves: The most saves.
            place: See `PLACES`. Defaults to None: it does not kill itself.
            call: Which call there.
            after: Whether after the call.
            seconds: When to kill it instead. Defaults to None: never.
            first: After how many saves the seconds begin. Defaults to 0.
        """
        before = self.path.read_bytes()
        process, address = self._start(place, call, after)
        timer = Timer(seconds or 0, process.kill)
        try:
            for number in range(saves):
                if seconds is not None and number == first:
                    timer.start()
                self.tried += 1
                if not self._save(address):
                    break
                self.answered = self.tried
                self.count += 1
        finally:
            timer.cancel()
            if place is not None or seconds is not None:
                process.join(killing.PATIENCE)
            is_killed = process.exitcode == -signal.SIGKILL
            process.kill()
            process.join()
        self.check(before)
        return is_killed

    def check(self, before):
        """Nothing that was said to be saved is lost, nor what was there before the session."""
        found = Hierarchy.load(self.path)
        assert found in (version(self.answered), version(self.tried))
        self.answered = self.tried = self.tried if found == version(self.tried) else self.answered
        backups = self.backups()
        assert self.kept.items() <= backups.items(), "a kept file was lost or changed"
        self.kept = backups
        if self.path.read_bytes() != before:
            assert before in backups.values(), "what was overwritten is not kept"
        for path, data in backups.items():
            if data or self.has_links:  # else a number may have been taken for nothing
                Hierarchy.load(path)

    def backups(self):
        found = self.path.parent.glob(f"{self.path.name}.~*~")
        return {path: path.read_bytes() for path in found}

    def strays(self):
        """What is neither the file nor a kept one."""
        known = {self.path, *self.backups()}
        return [path.name for path in self.path.parent.iterdir() if path not in known]

    def _start(self, *kill):
        reader, writer = multiprocessing.Pipe(duplex=False)
        process = killing.in_server(work, self.path, writer, *kill, self.has_links)
        writer.close()
        with reader:
            assert reader.poll(killing.PATIENCE)
            return process, reader.recv()

    def _save(self, address):
        """Save as the page does, and return whether there was an answer."""
        try:
            found = _ask(address, "GET")
            body = {"hierarchy": version(self.tried).to_dict(), "replaces": found["digest"]}
            answer = _ask(address, "PUT", body)
        except (OSError, http.client.HTTPException, ValueError):  # it is dead, perhaps amid
            return False
        assert answer.keys() == {"digest", "backup"}, answer
        return True


def _ask(address, method, body=None):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=killing.PATIENCE)
    headers = {"Content-Type": "application/json"}
    try:
        connection.request(method, f"{parts.path}hierarchy", body and json.dumps(body), headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
