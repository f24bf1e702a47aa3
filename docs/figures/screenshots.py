"""Photograph the report and the hierarchy editor for the documentation, in headless Chromium.

    c2f demo --out runs/demo
    python docs/figures/screenshots.py runs/demo

The report is made anew from the run, and its hierarchy is shown in the editor. `make browser`
installs Chromium.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from coarse2fine import write_report
from coarse2fine.editor import EditorServer, Session

FOLDER = Path(__file__).parent
SIZE = {"width": 1200, "height": 860}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
COLOURS = 256  # enough for flat colours, and a small file


def photograph(page: Any, name: str, **options: Any) -> None:
    path = FOLDER / name
    page.screenshot(path=path, **options)
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(f"wrote {name}")


def open_page(browser: Any, address: str, ready: str) -> Any:
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(address)
    page.wait_for_selector(ready)
    return page


def report_pictures(browser: Any, run: Path, folder: Path) -> None:
    write_report(run, folder / "report.html")
    page = open_page(browser, (folder / "report.html").as_uri(), "html[data-drawn]")
    photograph(page, "report.png")
    page.locator("#tree .row").first.click()
    for section, height in (("hierarchy", 1300), ("confusion", 860)):
        page.set_viewport_size({**SIZE, "height": height})
        page.locator(f"#{section}").evaluate("it => it.scrollIntoView()")
        page.wait_for_timeout(1000)  # plotly zooms in little by little
        photograph(page, f"report-{section}.png")


def editor_picture(browser: Any, run: Path, folder: Path) -> None:
    source = next(run.glob("seed-*/*/hierarchy.json"))
    server = EditorServer(Session(shutil.copy(source, folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    page = open_page(browser, server.address, "body[data-ready]")
    page.locator("[role=treeitem]").nth(2).click()
    page.keyboard.press("ArrowRight")
    photograph(page, "editor.png")
    page.close()
    server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a comparison")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        report_pictures(browser, arguments.run, Path(folder))
        editor_picture(browser, arguments.run, Path(folder))


if __name__ == "__main__":
    main()
