"""What the editor's page may request, and everything that is refused."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from secrets import compare_digest
from threading import Timer
from typing import TYPE_CHECKING, Any

from .._util.files import decode_json
from .._util.text import brief
from .session import ChangedError

if TYPE_CHECKING:
    from .server import EditorServer

MAX_BYTES = 64 * 1024 * 1024

# The page loads nothing from elsewhere, cannot be framed, runs no inline script (so that a class
# name with markup in it stays text), and does not send its address, with the token, anywhere.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_JSON = "application/json"


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: The HTTP status of the answer.
        message: One sentence.
        **more: What else the answer contains.
    """

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.content = {"error": message, **more}


class Handler(BaseHTTPRequestHandler):
    """Answers one request; every connection has a thread of its own."""

    server: EditorServer
    timeout = 20  # for each single read or write
    max_seconds = 120.0  # for a whole request; one byte every 19 seconds would never time out

    def handle(self) -> None:
        """Answer a request; nothing is read any more once its time is over."""
        ends = Timer(self.max_seconds, self._stop_reading)
        ends.daemon = True
        ends.start()
        try:
            super().handle()
        finally:
            ends.cancel()

    def _stop_reading(self) -> None:
        with suppress(OSError):  # it is gone already
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        """Answer with the page or the hierarchy, save the hierarchy, or end the editor."""
        try:
            self._check_sender()
            kind, body = self._result(self._requested_name())
        except RefusedError as refused:
            self._send(refused.status, _JSON, _to_json(**refused.content))
            return
        self._send(200, kind, body)
        # After the answer, so that the page learns of it. This does not wait for itself, as every
        # request has a thread of its own.
        if self.command == "POST":
            self.server.shutdown()

    do_PUT = do_POST = do_GET  # noqa: N815, as http.server calls them

    # ---------------------------------------------------------------- who may ask for what

    def _check_sender(self) -> None:
        """Refuse what other pages send, whatever name they use for this server.

        The host is checked since a page may give its own name this server's address (DNS
        rebinding), and would then be of the same origin. Browsers say where a request comes from
        by Origin or Sec-Fetch-Site; other clients send neither, and need the token anyway. Each
        header may come several times, and must be right every time.
        """
        if self.request_version == "HTTP/0.9":
            raise RefusedError(400, "HTTP/0.9 is too old.")
        if self.headers.get_all("Host") != [self.server.origin.removeprefix("http://")]:
            raise RefusedError(403, "This is not the address of the editor.")
        if self.headers.get_all("Origin", []) not in ([], [self.server.origin]):
            raise RefusedError(403, "Other pages may not use the editor.")
        for site in self.headers.get_all("Sec-Fetch-Site", []):
            if site not in {"same-origin", "none"}:
                raise RefusedError(403, "Other pages may not use the editor.")

    def _requested_name(self) -> str:
        """Return what is requested: the part of the path after the token."""
        parts = self.path.split("/")
        _, token, name = parts if len(parts) == 3 else ("", "", "")
        # In constant time, so that the time of an answer says nothing about the token. A wrong
        # token and a missing file get the same answer.
        is_right = compare_digest(token.encode(), self.server.token.encode())
        if not is_right or parts[0] or name not in {*self.server.page, "hierarchy", "quit"}:
            raise RefusedError(404, "There is nothing here.")
        return name

    def _result(self, name: str) -> tuple[str, bytes]:
        actions = {
            ("GET", "hierarchy"): self._hierarchy,
            ("PUT", "hierarchy"): self._save,
            ("POST", "quit"): self._quit,
        }
        if (self.command, name) in actions:
            return _JSON, actions[self.command, name]()
        if self.command == "GET" and name in self.server.page:
            return self.server.page[name]
        raise RefusedError(405, f"{self.command} does nothing here.")

    # ----------------------------------------------------------------------------- actions

    def _hierarchy(self) -> bytes:
        session = self.server.session
        try:
            hierarchy, digest = session.read()
        except ValueError as error:
            raise RefusedError(409, _sentence(error)) from None
        except OSError as error:
            message = f"{session.path.name} could not be read: {_sentence(error)}"
            raise RefusedError(409, message) from None
        return _to_json(
            file=session.path.name,
            path=str(session.path),
            hierarchy=hierarchy.to_dict(),
            digest=digest,
            command=session.command,
        )

    def _save(self) -> bytes:
        asked = self._body()
        if not isinstance(asked, dict) or asked.keys() != {"hierarchy", "replaces"}:
            raise RefusedError(400, 'The body must hold "hierarchy" and "replaces".')
        try:
            saved = self.server.session.save(asked["hierarchy"], asked["replaces"])
        except ValueError as error:
            raise RefusedError(422, _sentence(error)) from None
        except ChangedError as error:
            raise RefusedError(409, str(error), digest=error.digest) from None
        except OSError as error:
            message = f"It could not be saved: {_sentence(error)} The file is as it was."
            raise RefusedError(500, message) from None
        return _to_json(digest=saved.digest, backup=saved.backup and saved.backup.name)

    def _quit(self) -> bytes:
        self._body()
        return _to_json()

    def _body(self) -> Any:
        """Return the JSON of the request, of which nothing is read before its size is known."""
        # Forms of other pages can send text, but not this type without the browser asking first.
        if self.headers.get_content_type() != _JSON:
            raise RefusedError(415, f"The body must be {_JSON}.")
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or "Transfer-Encoding" in self.headers:
            raise RefusedError(411, "The size of the body must be given once.")
        if not (lengths[0].isascii() and lengths[0].isdigit()):
            raise RefusedError(400, "The size of the body must be a number.")
        # int() of very many digits is slow, and raises an error.
        if len(lengths[0]) > 18 or int(lengths[0]) > MAX_BYTES:
            raise RefusedError(413, f"The body may have at most {MAX_BYTES} bytes.")
        data = self.rfile.read(int(lengths[0]))
        if len(data) < int(lengths[0]):
            raise RefusedError(400, "The body ended too early.")
        try:
            return decode_json(data)
        except ValueError as error:
            raise RefusedError(400, _sentence(error)) from None

    # --------------------------------------------------------------------------- answering

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **HEADERS}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request in the same form as any other."""
        text = brief(message or explain or "No proper request.")
        self._send(code, _JSON, _to_json(error=text))

    def version_string(self) -> str:
        """Return the name of the server, without the versions of what it is made of."""
        return "coarse2fine"

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: the page says what happens, and addresses hold the token."""


def _to_json(**content: Any) -> bytes:
    return json.dumps(content).encode()


def _sentence(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{' '.join(text.split()).rstrip('.')}."
