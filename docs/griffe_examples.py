"""Let mkdocstrings show the docstrings' ``Example:`` sections as code."""

from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Turn ``Example:`` into ``Examples:``, the one name that griffe knows."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of every object as it is read."""
        if obj.docstring:
            value = obj.docstring.value
            obj.docstring.value = value.replace("\nExample:\n", "\nExamples:\n")
