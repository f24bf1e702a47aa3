"""An editor for a hierarchy: a page in the browser, served to this machine alone."""

from .server import EditorServer
from .session import Session

__all__ = ["EditorServer", "Session"]
