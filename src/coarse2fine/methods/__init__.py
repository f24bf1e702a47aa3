"""Training methods, one file each, behind one protocol: `coarse2fine.methods.base.Method`."""

from __future__ import annotations

# What can be compared with plain training: name → module and class, imported when used.
METHODS = {
    "continuous": ("continuous", "Continuous"),
    "staged": ("staged", "Staged"),
}
