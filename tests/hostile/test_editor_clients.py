"""Clients of the editor that lie about their requests, or never end them."""

import json
import socket
import time
from contextlib import suppress

import pytest
from serving import served

from coarse2fine import Hierarchy
from coarse2fine.editor.requests import Handler


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "h.json"
    Hierarchy.from_levels([[0, 0, 1, 1]], ["cat", "dog", "car", "van"]).save(path)
    return path


@pytest.fixture
def server(path):
    with served(path) as (server, thread):
        server.thread = thread
        yield server


def connected(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=60)


def head(server, method, name, *lines):
    """The head of a request that is in order, but for lines that are added."""
    own = [f"{method} /{server.token}/{name} HTTP/1.1", f"Host: {server.origin[7:]}", *lines]
    return ("\r\n".join(own) + "\r\n\r\n").encode()


def answer(server, *sent):
    """The status of an answer, and what it holds, if it holds JSON."""
    with connected(server) as connection:
        for part in sent:
            connection.sendall(part)
        whole = connection.makefile("rb").read()
    top, _, body = whole.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(body) if b"application/json" in top else None


TYPE = "Content-Type: application/json"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Content-Length: 2", "Content-Length: 2"], 411),
        (["Content-Length: 2", "Content-Length: 9"], 411),
        (["Content-Length: 2, 2"], 400),
        (["Content-Length: -2"], 400),
        (["Content-Length: 0x2"], 400),
        (["Content-Length : 2"], 411),
        (["Transfer-Encoding: chunked"], 411),
        (["Transfer-Encoding: chunked", "Content-Length: 2"], 411),
        (["Transfer-Encoding: identity", "Content-Length: 2"], 411),
        (["Content-Length: 67108865"], 413),
        (["Content-Length: 1000000000000000000000"], 413),
    ],
    ids=str,
)
def test_a_body_whose_end_is_not_sure_is_not_read(server, path, lines, status):
    before = path.read_bytes()
    for method, name in (("PUT", "hierarchy"), ("POST", "quit")):
        found, content = answer(server, head(server, method, name, TYPE, *lines), b"{}")
        assert found in (400, status)
        assert content["error"]
    assert path.read_bytes() == before
    assert server.thread.is_alive()


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: evil.example"],  # beside its own
        ["Origin: http://evil.example"],
        ["Origin: {own}", "Origin: http://evil.example"],
        ["Origin: {own}.evil.example"],
        ["Origin: http://localhost:{port}"],
        ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"],
    ],
    ids=str,
)
def test_a_foreign_address_beside_the_right_one_is_refused(server, lines):
    lines = [line.format(own=server.origin, port=server.server_port) for line in lines]
    assert answer(server, head(server, "GET", "hierarchy", *lines))[0] == 403


@pytest.mark.parametrize("name", ["evil.example", "localhost", "127.0.0.1.evil.example", "[::1]"])
def test_another_name_that_leads_here_is_refused(server, name):
    """As a page of others would have that changes what its name stands for."""
    asked = head(server, "GET", "hierarchy").replace(b"Host: 127.0.0.1", f"Host: {name}".encode())
    assert answer(server, asked)[0] == 403


@pytest.mark.parametrize("part", [b"GET", "a head", "a body"])
def test_clients_that_stop_half_way_keep_nobody_waiting(server, path, part):
    whole = head(server, "PUT", "hierarchy", TYPE, "Content-Length: 1000") + b'{"hierarchy": '
    sent = {"a head": whole[:60], "a body": whole}.get(part, part)
    stalled = [connected(server) for _ in range(30)]
    try:
        for connection in stalled:
            connection.sendall(sent)
        begun = time.monotonic()
        _, found = answer(server, head(server, "GET", "hierarchy"))
        body = json.dumps({"hierarchy": found["hierarchy"], "replaces": found["digest"]}).encode()
        size = f"Content-Length: {len(body)}"
        assert answer(server, head(server, "PUT", "hierarchy", TYPE, size), body)[0] == 200
        quitting = head(server, "POST", "quit", TYPE, "Content-Length: 2")
        assert answer(server, quitting, b"{}")[0] == 200
        server.thread.join(timeout=60)
        assert not server.thread.is_alive()
        assert time.monotonic() - begun < Handler.timeout  # after which the stalled are dropped
    finally:
        for connection in stalled:
            connection.close()
    assert Hierarchy.load(path).num_classes == 4


def test_a_client_that_drips_is_dropped_after_a_while(server, monkeypatch):
    monkeypatch.setattr("coarse2fine.editor.requests.Handler.max_seconds", 0.5)
    with connected(server) as connection:
        connection.sendall(head(server, "PUT", "hierarchy", TYPE, "Content-Length: 1000000"))
        connection.settimeout(0.02)
        found, ends = b"", time.monotonic() + 60
        while not found and time.monotonic() < ends:
            connection.sendall(b" ")
            with suppress(TimeoutError):
                found = connection.recv(1000)
    assert found.startswith(b"HTTP/1.0 400")
