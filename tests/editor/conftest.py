"""A server that edits one small file, as a real one on loopback."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack

import pytest
from serving import served

from coarse2fine import Hierarchy

CLASSES = ["cat", "dog", "car", "van"]
LEVELS = [[0, 0, 1, 1]]
OTHER = [[0, 1, 1, 1]]


def content(levels=OTHER, **changes):
    """What `Hierarchy.to_dict` gives, with some of it changed."""
    return {**Hierarchy.from_levels(OTHER, CLASSES).to_dict(), "levels": levels, **changes}


class Client:
    """Asks a server as the page does; headers given as None are left out."""

    def __init__(self, server):
        self.server = server
        self.base = f"/{server.token}/"

    def request(self, method, path, body=None, headers=(), size=None):
        given = {"Host": f"127.0.0.1:{self.server.server_port}", **dict(headers)}
        if body is not None:
            size = len(body) if size is None else size
            given = {"Content-Type": "application/json", "Content-Length": str(size), **given}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def get(self, name="", **options):
        return self.request("GET", self.base + name, **options)

    def put(self, hierarchy, replaces, **options):
        body = json.dumps({"hierarchy": hierarchy, "replaces": replaces}).encode()
        return self.request("PUT", self.base + "hierarchy", body, **options)

    def quit(self, **options):
        return self.request("POST", self.base + "quit", b"{}", **options)

    def digest(self):
        return json.loads(self.get("hierarchy").content)["digest"]

    def save(self, levels=OTHER, **changes):
        """Save in place of what the file holds now, and return the answer's content."""
        answer = self.put(content(levels, **changes), self.digest())
        return answer.status, json.loads(answer.content)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "animals.json"
    Hierarchy.from_levels(LEVELS, CLASSES).save(path)
    return path


@pytest.fixture
def serve():
    """A function that serves a file, and returns who asks the server."""
    with ExitStack() as stack:

        def serve(file):
            server, thread = stack.enter_context(served(file))
            client = Client(server)
            client.thread = thread
            return client

        yield serve


@pytest.fixture
def client(serve, path):
    return serve(path)
