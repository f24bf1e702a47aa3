"""A folder that takes the place of the Hugging Face hub, so that nothing needs a network."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class LocalHub:
    """What `huggingface_hub`'s mixin and `HubClassifier` call, done in a folder.

    Args:
        folder: Has the repositories and what was downloaded of them.
    """

    def __init__(self, folder: Path) -> None:
        self.repositories, self.cache = folder / "hub", folder / "cache"

    def replacements(self) -> dict[str, Any]:
        """What takes the place of which name."""
        mixin = "huggingface_hub.hub_mixin"
        return {
            f"{mixin}.HfApi": lambda **_: self,
            f"{mixin}.hf_hub_download": self.download,
            "coarse2fine.inference.hub.snapshot_download": self.snapshot,
        }

    def create_repo(self, *, repo_id: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(self, *, repo_id: str, folder_path: Path, **_: Any) -> str:
        shutil.copytree(folder_path, self.repositories / repo_id)
        return f"the commit of {repo_id}"

    def download(self, *, repo_id: str, filename: str, **_: Any) -> str:
        return str(self.repositories / repo_id / filename)

    def snapshot(self, repo_id: str, *, allow_patterns: list[str], **_: Any) -> str:
        folder = self.cache / repo_id
        folder.mkdir(parents=True)
        for path in (self.repositories / repo_id).iterdir():
            if path.name in allow_patterns:
                shutil.copyfile(path, folder / path.name)
        return str(folder)
