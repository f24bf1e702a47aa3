"""Targets: hierarchies, taxonomies and matrices in files, the editor, and settings."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from fuzz_choices import Choices
from fuzz_guard import Attempt, ParserError

from coarse2fine import Config, Hierarchy
from coarse2fine._util.files import decode_json
from coarse2fine.editor.requests import Handler
from coarse2fine.editor.session import Session
from coarse2fine.runs.hierarchies import read_hierarchy

NESTED = {"animal": {"pet": ["cat", "dog"], "wild": ["fox"]}, "vehicle": ["car", "bus"]}
TREE = Hierarchy.from_taxonomy(NESTED)
PAIRS = b"parent,child\nanimal,cat\nanimal,dog\nvehicle,car\n"
SAMPLES = b"\xef\xbb\xbfcoarse_label,fine_label,x\n0,0,a\n0,1,b\n1,2,c\n"
COLUMNS = {"coarse_label": [0, 0, 1], "fine_label": ["a", "b", "c"]}


# ------------------------------------------------------------------------ hierarchy files


def hierarchy_json(folder: Path) -> Any:
    path = folder / "h.json"

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        content = choices.changed_json(TREE.to_dict()) if choices.number(2) else choices.rest()
        path.write_bytes(content)
        yield Attempt(partial(_load_and_use, path), named=str(path))
        yield Attempt(partial(read_hierarchy, path), named=str(path))

    return attempts


def _load_and_use(path: Path) -> None:
    found = Hierarchy.load(path)
    if Hierarchy.from_dict(found.to_dict()) != found or not str(found):
        raise ParserError("it is not the same after a round trip")


def hierarchy_seeds() -> list[bytes]:
    bare = {"format": "coarse2fine-hierarchy", "version": 1, "num_classes": 5, "levels": []}
    documents = [TREE.to_dict(), bare, NESTED, COLUMNS]
    return [*(b"\0" + json.dumps(one).encode() for one in documents), *steered(12)]


def taxonomy(folder: Path) -> Any:
    paths = [folder / "t.csv", folder / "t.json"]

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        path = choices.pick(paths)
        content = choices.rest()
        if path.suffix == ".json" and content[:1] < b"\x20":
            inner = Choices(content)
            content = inner.changed_json(inner.pick([NESTED, COLUMNS]))
        path.write_bytes(content)
        yield Attempt(partial(Hierarchy.from_taxonomy, path), named=str(path))
        wanted = partial(Hierarchy.from_taxonomy, path, ["car", "cat", "dog"])
        yield Attempt(wanted, named=str(path))
        yield Attempt(partial(read_hierarchy, path), named=str(path))

    return attempts


def taxonomy_seeds() -> list[bytes]:
    tables = [PAIRS, SAMPLES, b'parent,child\r\n,a\r\na,"b\nc"\r\na,d\r\n']
    documents = [NESTED, COLUMNS, {"a": None, "b": {"c": [], "d": 3}}]
    return [
        *(b"\0" + table for table in tables),
        *(b"\1" + json.dumps(one).encode() for one in documents),
        *(b"\1" + one for one in steered(8)),
    ]


def matrix(folder: Path) -> Any:
    paths = [folder / "m.csv", folder / "m.npy", folder / "m.npz"]
    metrics = ["embedding", "confusion_distance", "embedding_similarity"]

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        path, metric = choices.pick(paths), choices.pick(metrics)
        path.write_bytes(choices.rest())
        yield Attempt(partial(read_hierarchy, path, metric=metric), named=str(path))

    return attempts


def matrix_seeds() -> list[bytes]:
    arrays = [np.eye(3), np.arange(8.0, dtype="f4").reshape(4, 2), np.ones((2, 2), "u1")]
    tables = [b"0,1,2\n1,0,3\n2,3,0\n", b",a,b\na,0,1\nb,1,0\n", b"cat,1,2\ndog,3,5\n"]
    seeds = [b"\0" + bytes([number]) + table for number, table in enumerate(tables)]
    for number, array in enumerate(arrays):
        seeds.append(b"\1" + bytes([number]) + _saved(array))
        named = {"x": array, "names": np.array(["a"] * len(array))}
        seeds.append(b"\2" + bytes([number]) + _saved(**named))
    return seeds


def _saved(*arrays: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **named) if named else np.save(file, *arrays)
    return file.getvalue()


# ----------------------------------------------------------------------------- the editor


def editor(folder: Path) -> Any:
    path = folder / "edited.json"
    text = (json.dumps(TREE.to_dict()) + "\n").encode()
    digest = hashlib.sha256(text).hexdigest()
    host = "127.0.0.1:1"

    def attempts(data: bytes) -> Iterator[Attempt]:
        path.write_bytes(text)
        choices = Choices(data)
        form = choices.number(3)
        body = choices.rest()
        if form == 1:
            body = Choices(body).changed_json({"hierarchy": TREE.to_dict(), "replaces": digest})
        request = (
            f"PUT /token/hierarchy HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        server = SimpleNamespace(
            session=Session(path), token="token", origin=f"http://{host}", page={}
        )
        server.shutdown = lambda: None
        yield Attempt(partial(_answered, server, body if form == 2 else request), allowed=())
        yield Attempt(partial(Hierarchy.load, path), allowed=())
        for backup in folder.glob("edited*"):
            backup.unlink()

    return attempts


def _answered(server: Any, request: bytes) -> None:
    """Answer a request as the server does, without a socket."""
    handler = Handler.__new__(Handler)
    handler.server, handler.client_address = server, ("127.0.0.1", 2)
    handler.rfile, handler.wfile = io.BytesIO(request), io.BytesIO()
    handler.close_connection = True
    handler.handle_one_request()
    answer = handler.wfile.getvalue()
    if not answer:  # nothing was asked
        return
    has_head = answer.startswith(b"HTTP/")  # which HTTP/0.9 has not
    head, _, body = answer.partition(b"\r\n\r\n") if has_head else (b"", b"", answer)
    content = json.loads(body)
    refused = b" 200 " not in head.split(b"\r\n")[0]
    if refused and not 0 < len(content["error"]) < 1000:
        raise ParserError(f"no sentence: {content}")


def editor_seeds() -> list[bytes]:
    body = json.dumps({"hierarchy": TREE.to_dict(), "replaces": None}).encode()
    head = b"GET /token/hierarchy HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
    requests = [head + b"\r\n", head.replace(b"GET", b"POST") + b"Content-Length: 2\r\n\r\n{}"]
    return [
        b"\0" + body,
        *(b"\2" + request for request in requests),
        *(b"\1" + s for s in steered(8)),
    ]


# ------------------------------------------------------------------------------- settings


def config(_folder: Path) -> Any:
    full = {
        **Config().to_dict(),
        "model": "mlp",
        "epochs": 3,
        "milestones": [0.5],
        "method_settings": SETTINGS,
        "methods": ["continuous", "nbdt", "dp-l"],
        "seeds": [0, 1],
        "clip": 1.0,
        "augment": True,
    }

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        content = choices.changed_json(full) if choices.number(2) else choices.rest()
        yield Attempt(partial(_config_and_back, content), (ValueError, TypeError))

    return attempts


SETTINGS = {"nbdt.weight": 10, "spl.growth": 1.5, "dp-l.class_init": 0.1}


def _config_and_back(content: bytes) -> None:
    found = Config.from_dict(decode_json(content))
    if Config.from_dict(json.loads(json.dumps(found.to_dict()))) != found or not str(found):
        raise ParserError("it is not the same after a round trip")


def config_seeds() -> list[bytes]:
    documents = [{"methods": "staged", "seeds": 3}, {"method_settings": {"nbdt.weight": 2}}]
    whole = [json.dumps(one).encode() for one in (*documents, Config(epochs=2).to_dict())]
    return [*(b"\0" + one for one in whole), *steered(12)]


def steered(count: int) -> list[bytes]:
    """Seeds that are choices of changes to a document, rather than a document."""
    rng = np.random.default_rng(count)
    return [b"\1" + rng.integers(0, 256, 24, dtype=np.uint8).tobytes() for _ in range(count)]
