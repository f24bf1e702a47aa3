"""What the hub's library writes into the schema of a parquet file."""

from __future__ import annotations

import json
from typing import Any


def declared_features(schema: Any) -> dict[str, dict[str, Any]]:
    """Return what is declared of each column: its type, and the names of its classes.

    Args:
        schema: An Arrow schema. One that the hub's library did not write declares nothing.
    """
    written = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        features = json.loads(written)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(features, dict):
        return {}
    return {name: feature for name, feature in features.items() if isinstance(feature, dict)}


def declared_names(schema: Any, column: str) -> tuple[str, ...] | None:
    """Return the names of the classes in a column, None where they are not declared."""
    names = declared_features(schema).get(column, {}).get("names")
    return tuple(map(str, names)) if isinstance(names, list) and names else None
