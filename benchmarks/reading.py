"""Reading CIFAR-100 from parquet into memory against decoding the same bytes by Pillow alone."""

from __future__ import annotations

import multiprocessing
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from measure import Row, compare
from PIL import Image

from coarse2fine._util.parallel import cores
from coarse2fine.data.sources.parquet import read_parquet_images

CHUNK = 1_000


def decoded(chunk: list[bytes]) -> np.ndarray:
    return np.stack([np.asarray(Image.open(BytesIO(data)).convert("RGB")) for data in chunk])


def rows() -> list[Row]:
    folder = os.environ.get("COARSE2FINE_DATA")
    files = sorted(Path(folder, "cifar100").glob("train-*.parquet")) if folder else []
    if not files:
        return []
    encoded = pq.read_table(files, columns=["img"])["img"].to_pylist()
    chunks = [
        [cell["bytes"] for cell in encoded[start : start + CHUNK]]
        for start in range(0, len(encoded), CHUNK)
    ]

    def ours() -> None:
        read_parquet_images(files, "img", "fine_label")

    def pillow() -> None:
        with multiprocessing.get_context("fork").Pool(cores()) as pool:
            np.concatenate(pool.map(decoded, chunks))

    found = compare(ours, pillow, repeats=5)
    detail = f"{found.ours:.3g} s against {found.peer:.3g} s"
    what = (
        f"{len(encoded):,} images of CIFAR-100 from parquet into memory, against Pillow alone on "
        f"their bytes, {cores()} processes each"
    )
    return [Row.at_most(what, found.ratio, 1.3, "×", detail)]
