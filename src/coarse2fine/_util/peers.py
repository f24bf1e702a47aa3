"""Whether an error means that another process is gone."""

from __future__ import annotations

import re

from torch.distributed import DistError

# Gloo, which connects processes on CPUs, raises a plain RuntimeError for everything. Its words
# are all there is to tell a lost peer by.
_LOST = re.compile(
    r"timed? ?out|connection (was )?(closed|reset|refused)|broken pipe|socket|remote process",
    re.IGNORECASE,
)


def lost_peer(error: BaseException) -> str | None:
    """Return what became of another process if that is what an error tells, else None."""
    is_plain = isinstance(error, RuntimeError) and _LOST.search(str(error))
    if not isinstance(error, DistError) and not is_plain:
        return None
    # Gloo puts the place in its own source before what happened, and advice after it.
    return re.sub(r"^\[[^]]*\] ", "", str(error)).partition(". ")[0].rstrip(".")
