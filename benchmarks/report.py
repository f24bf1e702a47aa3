"""How large a report is, how long it takes to make, and how soon a browser shows it.

The runs are real ones: two seeds of a small network, on noisy pictures made for each class.
"""

from __future__ import annotations

import io
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Row, seconds
from PIL import Image
from plotly.offline import get_plotlyjs

from coarse2fine import Hierarchy, Result, fit, write_report

SIDE = 32
SAMPLES = {"train": 5, "test": 50}  # of each class
REPEATS = 5
MARKS = ("readable", "drawn")
STATES = ("can be read and explored", "is drawn whole")
MOST_BYTES, MOST_SECONDS = 15e6, 3.0
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def rows() -> list[Row]:
    result = bare_row()
    for classes in (10, 100, 1000):
        with tempfile.TemporaryDirectory() as folder:
            result += rows_of(classes, Path(folder))
    return result


def bare_row() -> list[Row]:
    """What the plotting library takes by itself: no page that has it can be faster."""
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        if browser is None:
            return []
        page = Path(folder, "bare.html")
        end = "performance.mark('drawn'); document.documentElement.dataset.drawn = 'yes'"
        page.write_text(f"<!doctype html><script>{get_plotlyjs()}</script><script>{end}</script>")
        times = [opened(browser, page, ("drawn",))[0] for _ in range(REPEATS)]
    detail = f"{min(times):.2f} to {max(times):.2f} s"
    return [Row.plain("an empty page with plotly.js", statistics.median(times), " s", detail)]


def rows_of(classes: int, folder: Path) -> list[Row]:
    result = trained(classes, folder)
    page = folder / "report.html"
    taken = seconds(lambda: write_report(result, page))
    size = page.stat().st_size
    samples = f"{classes:,} classes, {classes * SAMPLES['test']:,} test samples, two seeds"
    found = [
        Row.at_most(f"report of {samples}", size / 1e6, MOST_BYTES / 1e6, " MB"),
        Row.plain("to write it", taken, " s"),
    ]
    with chromium() as browser:
        if browser is not None:
            times = [opened(browser, page) for _ in range(REPEATS)]
            for what, taken in zip(STATES, zip(*times, strict=True), strict=True):
                detail = f"{min(taken):.2f} to {max(taken):.2f} s"
                middle = statistics.median(taken)
                what = f"until it {what} in Chromium"
                found.append(Row.at_most(what, middle, MOST_SECONDS, " s", detail))
            found.append(zoom_row(browser, page))
    return found


def trained(classes: int, folder: Path) -> Result:
    """Return a comparison on pictures, with clusters of four and eight classes."""
    for number, (part, count) in enumerate(SAMPLES.items()):
        write_pictures(folder / f"{part}-00000-of-00001.parquet", classes, count, seed=number)
    levels = [np.arange(classes) // 8, np.arange(classes) // 4]
    return fit(
        str(folder),
        model="cnn",
        image_size=SIDE,
        hierarchy=Hierarchy.from_levels(levels),
        epochs=3,
        patience=0,
        curriculum_epochs=2,
        batch_size=256,
        val_share=0.2,
        seeds=(0, 1),
        out=folder / "run",
    )


def write_pictures(path: Path, classes: int, count: int, seed: int) -> None:
    """Write pictures that are alike where the classes are of one cluster."""
    fixed, rng = np.random.default_rng(99), np.random.default_rng(seed)
    coarse, own = (fixed.normal(0, 40, (classes, 4, 4, 3)) for _ in range(2))
    centres = 128 + coarse[np.arange(classes) // 4] + own / 2
    labels = np.repeat(np.arange(classes), count)
    encoded = [picture(centres[label], rng) for label in labels]
    images = pa.array([{"bytes": data, "path": None} for data in encoded])
    pq.write_table(pa.table({"image": images, "label": labels}), path)


def picture(centre: np.ndarray[Any, Any], rng: np.random.Generator) -> bytes:
    rough = np.clip(centre + rng.normal(0, 20, centre.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(rough).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(file, "PNG")
    return file.getvalue()


@contextmanager
def chromium() -> Iterator[Any]:
    """Headless Chromium, None where it is not installed."""
    path = shutil.which("chromium")
    if path is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


def zoom_row(browser: Any, page: Path) -> Row:
    """How long the confusion matrix takes to be drawn anew, as after a click or a drag."""
    zoom = """async () => {
        const place = document.querySelector("#confusion-plot");
        const [into, , all] = document.querySelectorAll("#confusion-zoom button");
        const pressed = async (button) => {
            const start = performance.now();
            const drawn = new Promise((done) => place.once("plotly_afterplot", done));
            button.click();
            await drawn;
            return (performance.now() - start) / 1000;
        };
        const taken = await pressed(into);
        await pressed(all);
        return taken;
    }"""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        tab = context.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-drawn]")
        times = [tab.evaluate(zoom) for _ in range(REPEATS)]
    detail = f"{min(times):.2f} to {max(times):.2f} s"
    return Row.plain("to zoom into its confusion matrix", statistics.median(times), " s", detail)


def opened(browser: Any, page: Path, marks: tuple[str, ...] = MARKS) -> tuple[float, ...]:
    """Return after how many seconds the page can be read, and every figure is drawn.

    Both are noted by the page itself, from when the browser begins to open it.
    """
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        tab = context.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-drawn]")
        noted = "name => performance.getEntriesByName(name)[0].startTime / 1000"
        return tuple(tab.evaluate(noted, mark) for mark in marks)
