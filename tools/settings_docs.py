"""Documents `Config` on the site, whose pages are made without importing the package.

Griffe reads the sources only. It does not see the docstring that is made from the settings'
declarations, and takes the call that declares a setting for its default.
"""

from __future__ import annotations

from typing import Any

import griffe

from coarse2fine.runs.config import Config


class SettingsDocs(griffe.Extension):
    """Gives the class its whole docstring, and its fields their defaults."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Look at every class when all its members are known."""
        if cls.path != f"{Config.__module__}.{Config.__name__}":
            return
        cls.docstring = griffe.Docstring(str(Config.__doc__), parent=cls)
        for attribute in cls.attributes.values():
            if isinstance(attribute.value, griffe.ExprCall):
                attribute.value = attribute.value.arguments[0]
