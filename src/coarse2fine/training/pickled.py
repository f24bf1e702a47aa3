"""What is looked at in a checkpoint's pickle before torch reads it."""

from __future__ import annotations

import pickletools
import zipfile
from io import BytesIO
from pathlib import Path
from typing import IO

import torch
from torch.torch_version import TorchVersion

# Before it, reading tensors alone could run code: CVE-2025-32434 and CVE-2026-24747.
_SAFE_TORCH = TorchVersion("2.10")
# torch looks for a pattern in its own message about a name, and takes the square of its length.
_LONGEST_NAME = 500
# The magic number, the version, the system, the content and its keys, in files without a zip.
_PICKLES = 5


def check_pickles(path: Path) -> None:
    """Raise a ValueError for a file that torch would take too much time or memory to read.

    That is where it names what no module is called, or claims to hold more than there is, as
    torch.save compresses nothing. Versions of torch that it could be unsafe to read any file
    with are refused too.

    Args:
        path: The file.
    """
    if TorchVersion(torch.__version__) < _SAFE_TORCH:
        raise ValueError(
            f"torch {torch.__version__} has known holes through which such a file can run code; "
            f"update it to {_SAFE_TORCH} or later, or save the weights as safetensors"
        )
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            for _ in range(_PICKLES):
                _check_names(file)
        return
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > path.stat().st_size:
            raise ValueError("it claims to hold more than there is")
        for member in archive.infolist():
            if member.filename.endswith("data.pkl"):
                _check_names(BytesIO(archive.read(member)))


def _check_names(file: IO[bytes]) -> None:
    for code, argument, _ in pickletools.genops(file):
        if code.name in ("GLOBAL", "INST") and len(str(argument)) > _LONGEST_NAME:
            raise ValueError(f"it asks for {str(argument)[:40]}…")
