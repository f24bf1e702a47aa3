"""The hierarchy editor's server, on loopback, while a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from coarse2fine.editor import EditorServer, Session


@contextmanager
def served(path: Path, **options: Any) -> Iterator[tuple[EditorServer, Thread]]:
    """Serve a file's editor; what yields is the server and the thread that it runs in."""
    server = EditorServer(Session(path, **options))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server, thread
    server.shutdown()
    thread.join()
    server.server_close()
