"""The editor's server: what it answers, and to whom it answers nothing."""

import json
import socket
import subprocess
import sys
import time

import pytest

from coarse2fine.editor import EditorServer, Session
from coarse2fine.editor.requests import HEADERS, MAX_BYTES, Handler

from .conftest import LEVELS, content

# ------------------------------------------------------------------------- what is answered


@pytest.mark.parametrize(
    ("name", "kind", "part"),
    [
        ("", "text/html; charset=utf-8", b'<script type="module" src="app.js">'),
        ("app.js", "text/javascript; charset=utf-8", b"import"),
        ("editor.css", "text/css; charset=utf-8", b"--accent"),
        ("colours.css", "text/css; charset=utf-8", b"--accent: light-dark"),
        ("icon.svg", "image/svg+xml", b"<svg"),
    ],
)
def test_the_page_and_its_files(client, name, kind, part):
    answer = client.get(name)
    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    assert part in answer.content


def test_the_hierarchy_comes_with_the_digest_of_its_file(client, path):
    found = json.loads(client.get("hierarchy").content)
    assert found["hierarchy"] == content(LEVELS)
    assert (found["file"], found["path"]) == ("animals.json", str(path.resolve()))
    before = found["digest"]
    path.write_text(path.read_text() + "\n")
    assert client.digest() != before


@pytest.mark.parametrize("name", ["", "hierarchy", "nothing"])
def test_every_answer_lets_nothing_else_in(client, name):
    answer = client.get(name)
    for header, value in HEADERS.items():
        assert answer.headers[header] == value
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert "Python" not in answer.headers["Server"]


def test_the_page_has_nothing_from_elsewhere_and_no_script_within(client):
    for name, (_, text) in client.server.page.items():
        assert b"innerHTML" not in text, name
        assert b"https://" not in text, name
    assert client.get().content.count(b"<script") == 1
    assert b"style=" not in client.get().content


# -------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "asked",
    [
        "/",
        "/hierarchy",
        "/{wrong}/",
        "/{wrong}/hierarchy",
        "/{token}",
        "//{token}/x",
        "/{token}/../{token}/",
        "/{token}/../../../../etc/passwd",
        "/{token}/..%2f..%2fsession.py",
        "/{token}/%2e%2e/session.py",
        "/{token}/session.py",
        "/{token}/editor.html",
        "/{token}/page/app.js",
        "/{token}/app.js?x=1",
        "/{token}/app.js/",
        "/{token}/\\app.js",
        "/x/{token}/",
        "http://127.0.0.1/{token}/",
        "*",
    ],
)
def test_other_paths_are_not_there(client, asked):
    token = client.server.token
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
    assert client.request("GET", asked.format(token=token, wrong=wrong)).status == 404


def test_two_servers_have_different_long_tokens(client, path):
    with EditorServer(Session(path)) as other:
        assert other.token != client.server.token
        assert len(other.token) >= 40
        assert other.address == f"http://127.0.0.1:{other.server_port}/{other.token}/"


def test_it_listens_on_loopback_only(client):
    assert client.server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "host", [None, "evil.example", "localhost:{port}", "127.0.0.1", "127.0.0.1:1"]
)
def test_only_its_own_address_is_answered(client, host):
    host = host and host.format(port=client.server.server_port)
    assert client.get(headers={"Host": host}).status == 403


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_other_pages_can_do_nothing_even_with_the_token(client, path, headers):
    before = path.read_bytes()
    assert client.get(headers=headers).status == 403
    assert client.get("hierarchy", headers=headers).status == 403
    assert client.put(content(), client.digest(), headers=headers).status == 403
    assert client.quit(headers=headers).status == 403
    assert path.read_bytes() == before
    assert client.thread.is_alive()


def test_its_own_page_may(client):
    own = {"Origin": client.server.origin, "Sec-Fetch-Site": "same-origin"}
    assert client.put(content(), client.digest(), headers=own).status == 200
    assert client.get(headers={"Sec-Fetch-Site": "none"}).status == 200


@pytest.mark.parametrize(
    ("method", "name", "status"),
    [
        ("PUT", "", 405),
        ("POST", "app.js", 405),
        ("POST", "hierarchy", 405),
        ("GET", "quit", 405),
        ("HEAD", "", 501),
        ("DELETE", "hierarchy", 501),
        ("OPTIONS", "hierarchy", 501),
        ("TRACE", "", 501),
    ],
)
def test_other_methods_are_refused(client, method, name, status):
    assert client.request(method, client.base + name, b"{}").status == status


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_other_types_of_body_are_refused(client, kind):
    headers = {"Content-Type": kind}
    assert client.put(content(), client.digest(), headers=headers).status == 415
    assert client.quit(headers=headers).status == 415


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": None}, 411),
        ({"Content-Length": "2", "Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": None, "Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": "+2"}, 400),
        ({"Content-Length": "2.0"}, 400),
        ({"Content-Length": "\u00b2"}, 400),
        ({"Content-Length": "9" * 5000}, 413),
        ({"Content-Length": str(MAX_BYTES + 1)}, 413),
    ],
    ids=lambda value: str(value)[:50],
)
def test_the_size_of_a_body_is_checked_before_it_is_read(client, headers, status):
    assert client.request("PUT", client.base + "hierarchy", b"{}", headers).status == status


def test_a_refused_body_that_is_large_still_gets_its_answer(client):
    answer = client.request("PUT", client.base + "nothing", b" " * 3_000_000)
    assert answer.status == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"NaN", 400),
        (b"[" * 200_000, 400),
        (b"1" * 10_000, 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"hierarchy": null, "replaces": null, "path": "/etc/passwd"}', 400),
        (b'{"hierarchy": null, "replaces": null}', 422),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_body_that_is_no_hierarchy_is_refused_in_one_sentence(client, path, body, status):
    before = path.read_bytes()
    answer = client.request("PUT", client.base + "hierarchy", body)
    message = json.loads(answer.content)["error"]
    assert answer.status == status
    assert message.endswith(".")
    assert "\n" not in message
    assert path.read_bytes() == before


def test_an_oversized_request_line_or_header_is_refused(client):
    assert client.request("GET", client.base + "x" * 70_000).status == 414
    assert client.get(headers={"X": "x" * 70_000}).status == 431


# -------------------------------------------------------------------- clients that do not play


def test_stalled_clients_block_nobody(client):
    port = client.server.server_port
    stalled = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    for connection in stalled[::2]:
        connection.sendall(f"PUT {client.base}hierarchy HTTP/1.1\r\nHost: 127".encode())
    begun = time.monotonic()
    assert client.get("hierarchy").status == 200
    assert client.save()[0] == 200
    assert time.monotonic() - begun < Handler.timeout  # after which the stalled are dropped
    for connection in stalled:
        connection.close()


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n\r\n", b"GET", b"\x16\x03\x01\x02\x00\x01\x00", b"GET /\r\n\r\n"]
)
def test_what_is_no_http_neither_ends_it_nor_writes_a_traceback(client, sent, capfd):
    with socket.create_connection(("127.0.0.1", client.server.server_port)) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").read()
    assert client.server.token.encode() not in answer
    assert client.get().status == 200
    assert capfd.readouterr() == ("", "")


def test_a_body_cut_short_is_not_saved(client, path):
    before = path.read_bytes()
    head = (
        f"PUT {client.base}hierarchy HTTP/1.1\r\nHost: 127.0.0.1:{client.server.server_port}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{}"
    )
    with socket.create_connection(("127.0.0.1", client.server.server_port)) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        assert b" 400 " in connection.makefile("rb").readline()
    assert path.read_bytes() == before


def test_a_slow_client_is_dropped_in_the_end(client, monkeypatch):
    monkeypatch.setattr("coarse2fine.editor.requests.Handler.timeout", 0.1)
    with socket.create_connection(
        ("127.0.0.1", client.server.server_port), timeout=15
    ) as connection:
        assert connection.recv(1) == b""


# ------------------------------------------------------------------------------------ ending


def test_the_page_ends_it(client):
    assert client.quit().status == 200
    client.thread.join(timeout=60)
    assert not client.thread.is_alive()


def test_a_port_in_use_is_said(client, path):
    port = client.server.server_port
    with pytest.raises(OSError, match=f"port {port} cannot be used .*leave it out"):
        EditorServer(Session(path), port)


def test_the_page_is_served_by_the_core_alone():
    code = (
        "import sys, coarse2fine.editor\n"
        "print([name for name in ('torch', 'typer', 'jinja2', 'plotly') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
