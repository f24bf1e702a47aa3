"""From bytes to inputs: choices that a fuzzer can steer, and a plain mutator for the tests."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_DEEP = 3000
# Values that have broken programs, each as JSON.
ODD = (
    *("null", "true", "false", "0", "-1", "2", "0.5", "-0.0", "1e308", "1e400", "-1e400", "NaN"),
    *(str(2**31), str(2**63), str(-(2**63) - 1), str(2**64), "1" + "0" * 400, "9" * 5000),
    *('""', '"a"', '"\\ud800"', '"\\u0000"', '"\\u001b[31m"', '"\\u2028"', '"../../x"'),
    *('"/dev/zero"', '"CON"', '"a.b:c"', '":"', '"seed-1"', f'"{"long " * 60}"'),
    *("[]", "{}", "[[]]", "[{}]", '{"": {}}', "[null]", "[1, [2, [3]]]", '["a", 1, null]'),
    *("[" * _DEEP + "]" * _DEEP, '{"a":' * _DEEP + "1" + "}" * _DEEP),
)
TOKENS = (
    *(odd.encode() for odd in ODD[:40]),
    *(b'"', b",", b";", b"\t", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80"),
    *(b"../", b"/etc/passwd", b"%s", b"\x1f\x8b\x08", b"PK\x03\x04", b"cposix\nsystem\n", b"."),
    *(b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"\xff" * 8),
)


class Choices:
    """Draws numbers, parts and bytes from an input; at its end all are zero or empty."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, below: int) -> int:
        """Return a number from 0 on."""
        width = 1 if below <= 256 else 4
        return int.from_bytes(self.bytes(width), "little") % below

    def pick(self, items: Sequence[T]) -> T:
        """Return one of some things."""
        return items[self.number(len(items))]

    def bytes(self, count: int) -> bytes:
        """Return the next so many bytes, fewer at the end."""
        part = self.data[self.at : self.at + count]
        self.at += count
        return part

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.bytes(len(self.data))

    def edited(self, content: bytes) -> bytes:
        """Return bytes with a few changes: overwritten, cut out, put in, cut off or doubled."""
        for _ in range(self.number(4)):
            at, kind = self.number(len(content) + 1), self.number(5)
            part = self.pick(TOKENS) if self.number(2) else self.bytes(1 + self.number(8))
            if kind == 0:
                content = content[:at] + part + content[at + len(part) :]
            elif kind == 1:
                content = content[:at] + part + content[at:]
            elif kind == 2:
                content = content[:at] + content[at + 1 + self.number(16) :]
            elif kind == 3:
                content = content[:at]
            else:
                content = content[:at] + content[max(0, at - 8) : at] + content[at:]
        return content

    def changed_json(self, document: Any) -> bytes:
        """Return a document as JSON after a few of its values were changed, moved or removed."""
        document = json.loads(json.dumps(document))
        odd: list[str] = []
        for _ in range(1 + self.number(4)):
            places = list(_places([document]))[1:] or [([document], 0)]
            holder, key = self.pick(places)
            self._change(holder, key, self.pick(places), odd)
        text = json.dumps(document)
        for number, value in enumerate(odd):
            text = text.replace(f'"@{number}@"', value)
        return text.encode()

    def _change(self, holder: Any, key: Any, other: tuple[Any, Any], odd: list[str]) -> None:
        kind = self.number(6)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[key] = json.loads(json.dumps(other[0][other[1]])) if len(odd) < 8 else None
        elif kind == 2 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif kind == 3 and isinstance(holder, dict):
            holder[self.pick(("a", "", "format", "level", "\ud800", "names"))] = holder.pop(key)
        else:
            holder[key] = f"@{len(odd)}@"
            odd.append(self.pick(ODD))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every value within JSON, by what holds it and its key there."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


def mutations(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yield so many changed seeds, the same for the same numbers, the seeds themselves first.

    Args:
        seeds: Inputs that are right, or nearly.
        count: How many inputs in all.
        seed: Of the changes.
    """
    yield from seeds[:count]
    rng = random.Random(seed)
    for _ in range(count - len(seeds)):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 5)):
            _mutate(data, rng, seeds)
        yield bytes(data)


def _mutate(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    at, kind = rng.randint(0, len(data)), rng.randrange(7)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at:at] = rng.randbytes(rng.randint(1, 8))
    elif kind == 2:
        del data[at : at + rng.randint(1, 16)]
    elif kind == 3:
        part = rng.choice(TOKENS)
        data[at : at + (len(part) if rng.random() < 0.5 else 0)] = part
    elif kind == 4:
        other = rng.choice(seeds)
        start = rng.randint(0, len(other))
        data[at:] = other[start:]
    elif kind == 5:
        data[at:at] = data[max(0, at - 16) : at]
    else:  # the choices of the first bytes
        data[: rng.randint(1, 6)] = rng.randbytes(rng.randint(1, 6))
