"""The editor's server: on loopback only, and only for those who have the token."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from http.server import ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any

from .requests import Handler
from .session import Session

HOST = "127.0.0.1"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# How long the client may take to read an answer before the connection is closed.
_LINGER_SECONDS = 2.0


class EditorServer(ThreadingHTTPServer):
    """Serves the page that edits one file, until `shutdown` or the page ends it.

    Args:
        session: The file.
        port: Defaults to 0: a free one.

    Attributes:
        address: What to open in a browser; it holds the token.
    """

    # The port is open to all programs and users of this machine, and by their browsers to every
    # web page. The token in the address keeps out who does not know it; `Handler` keeps out
    # pages that do.

    daemon_threads = True
    request_queue_size = 64
    # On Windows, reuse would let another program take the port over.
    allow_reuse_address = os.name == "posix"

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(32)
        self.page = page_files()
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise OSError(
                f"port {port} cannot be used ({error.strerror}); leave it out to get a free one."
            ) from None
        self.origin = f"http://{HOST}:{self.server_port}"
        self.address = f"{self.origin}/{self.token}/"

    def server_bind(self) -> None:
        """Bind without asking the network for this machine's name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, but first let the client read the answer.

        To close while a refused body is still coming in would reset the connection, and the
        client would see that instead of the answer. So what comes is read and thrown away.
        """
        ends = time.monotonic() + _LINGER_SECONDS
        try:
            request.shutdown(socket.SHUT_WR)
            request.settimeout(_LINGER_SECONDS)
            while time.monotonic() < ends and request.recv(65536):
                pass
        except OSError:  # it is gone already, or took too long
            pass
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless it is only that the client went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return the type and content of the page's files by their name; the page itself is ""."""
    colours = files(__package__.rpartition(".")[0]).joinpath("figures", "colours.css")
    found = {"colours.css": (_TYPES[".css"], colours.read_bytes())}
    for file in files(__package__).joinpath("page").iterdir():
        kind = _TYPES.get(os.path.splitext(file.name)[1])  # noqa: PTH122
        if kind is not None:
            name = "" if file.name == "editor.html" else file.name
            found[name] = (kind, file.read_bytes())
    return found
