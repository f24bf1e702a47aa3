"""An editor for hierarchies: a page in the browser, served to this machine only."""

from .server import EditorServer
from .session import Session

__all__ = ["EditorServer", "Session"]
