"""The files of tables in a folder: which are to train on, to test on and to validate on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..split import ROLES

_SHARD = r"-\d+-of-(?P<total>\d+)"  # as the hub divides large files
_HUB_FOLDERS = ("data", "default", "plain_text")


def is_table_file(path: Path) -> bool:
    """Return whether a file's name ends as that of a table."""
    return bool(re.search(r"\.((csv|tsv|json|jsonl|ndjson)(\.gz)?|parquet)$", path.name.lower()))


def table_files(path: Path) -> dict[str, list[Path]]:
    """Return the files of each role, train, test and val, that there are.

    Args:
        path: A folder; or a file, beside which only files of its own kind count.
    """
    if path.is_dir():
        files = {role: files_of(path, role) for role in ROLES}
        if not files["train"]:
            raise FileNotFoundError(f"{path} holds no train.csv, .tsv, .jsonl, .json or .parquet.")
    elif not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    else:
        files = {"train": [path]}
        if _role(path) == "train":
            files |= {role: files_of(path.parent, role, _kind(path)) for role in ("test", "val")}
    return {role: found for role, found in files.items() if found}


def find_parquet(folder: Path, test: str) -> tuple[list[Path], list[Path]] | None:
    """Return the parquet files of a named set to train on and those to test on, each in order.

    They are ``train-*.parquet``, ``train.parquet`` or ``train/*.parquet`` in the folder or in
    one of those that the hub puts them into; None where there are none.

    Args:
        folder: Where to look.
        test: What the split to test on is called.

    Raises:
        FileNotFoundError: Some of the files are missing.
    """
    for place in (folder, *(folder / name for name in _HUB_FOLDERS)):
        train_files, test_files = _parquet_files(place, "train"), _parquet_files(place, test)
        if train_files and test_files:
            return train_files, test_files
        if train_files:
            raise FileNotFoundError(
                f"{place} holds {train_files[0].name} but no parquet files of the split {test}; "
                f"download those too."
            )
    return None


def _parquet_files(folder: Path, split: str) -> list[Path]:
    patterns = (f"{split}-*.parquet", f"{split}.parquet", f"{split}/*.parquet")
    files = next(filter(None, (sorted(folder.glob(pattern)) for pattern in patterns)), [])
    _check_complete(folder, files)
    return files


def files_of(folder: Path, role: str, kind: str | None = None) -> list[Path]:
    """Return the files of a role in a folder, in order.

    Args:
        folder: Where to look.
        role: One of `ROLES`.
        kind: What their names end in, such as csv.gz. Defaults to None: any of a table's.
    """
    files = sorted(file for file in folder.iterdir() if _role(file) == role and is_table_file(file))
    files = [file for file in files if kind is None or _kind(file) == kind]
    totals = {_shards(file) for file in files}
    if len(totals) > 1 or (totals <= {None, 1} and len(files) > 1):
        raise ValueError(
            f"{folder} holds both {files[0].name} and {files[-1].name}; name the file to use, or "
            f"remove one."
        )
    _check_complete(folder, files)
    return files


def _check_complete(folder: Path, files: Sequence[Path]) -> None:
    """Raise an error where files that are numbered 00000-of-00005 and so on lack some."""
    total = _shards(files[0]) if files else None
    if total is not None and len(files) != total:
        raise FileNotFoundError(
            f"{folder} holds {len(files)} of the {total} files that {files[0].name} is one of; "
            f"download the others."
        )


def _shards(path: Path) -> int | None:
    """Return how many files a file is one of, None where its name does not say."""
    total = re.search(_SHARD, path.name.lower())
    return int(total["total"]) if total else None


def _role(path: Path) -> str | None:
    stem = re.sub(f"{_SHARD}$", "", path.name.partition(".")[0].lower())
    return next((role for role, names in ROLES.items() if stem in names), None)


def _kind(path: Path) -> str:
    return path.name.partition(".")[2].lower()
