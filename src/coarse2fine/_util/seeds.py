"""Seeds of independent random streams, each with a name."""

from __future__ import annotations

import hashlib
from typing import Literal

Stream = Literal["weights", "head", "batches", "files", "layers"]


def seed_of(stream: Stream, *place: int) -> int:
    """Return the seed of one stretch of a random stream, the same on every machine.

    A seed is a hash of the stream's name and of the place in it. So no stream ever repeats
    another: adding dropout to a model, say, does not change the order of its batches.

    Args:
        stream: ``"weights"``: a fresh model; ``"head"``: the new final layer of a later
            stage; ``"batches"``: an epoch's order and augmentation; ``"files"``: the
            augmentation of a file as it is read; ``"layers"``: dropout and the like.
        *place: Where in the stream, such as the run's seed, the stage and the epoch.

    Examples:
        >>> seed_of("weights", 0) == seed_of("weights", 0), seed_of("batches", 0)
        (True, 3254883429990493641)
    """
    # Written out as text, since numpy's SeedSequence pads its key with zeros: (0,) and (0, 0)
    # would be one stream there.
    text = "/".join((stream, *map(str, place)))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes seeds of 63 bits
