"""A real browser: headless Chromium, driven by Playwright.

`make browser` installs it. Where it cannot be had the tests are skipped, unless the environment
variable COARSE2FINE_BROWSER is "required": then they fail.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from serving import served

from coarse2fine import Hierarchy

from .editing import TAXONOMY, opened

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # which Chromium cannot set up as root, as in containers
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SERIOUS = {"serious", "critical"}
# What an own address would be asked for and need not exist.
HARMLESS = ("favicon.ico",)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a skipped test that says what is missing."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        _do_without("Chromium is not installed; `make browser` does so")
    if find_spec("playwright") is None:
        _do_without("Playwright is not installed; `make test-browser` does so")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield chromium
        chromium.close()


def _do_without(reason):
    if os.environ.get("COARSE2FINE_BROWSER") == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def new_page(browser):
    """A function that opens a fresh page; whatever goes wrong in it fails the test.

    Its arguments are those of a Playwright context, such as ``color_scheme="dark"``.
    """
    contexts, faults = [], []

    def new_page(**options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda message: _note(message, faults))
        page.on("dialog", lambda dialog: _refuse(dialog, faults))
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture
def page(new_page):
    """A page of a usual screen."""
    return new_page(viewport={"width": 1280, "height": 900})


@pytest.fixture
def axe():
    """A function that looks for serious accessibility faults in a page."""
    from axe_playwright_python.sync_playwright import Axe

    def check(page):
        found = Axe().run(page).response["violations"]
        serious = [fault for fault in found if fault["impact"] in SERIOUS]
        places = [
            f"{fault['id']}: {fault['help']} ({node['html'][:200]})"
            for fault in serious
            for node in fault["nodes"]
        ]
        assert not places, "\n".join(places)

    return check


# ------------------------------------------------------------------------------- the editor


@pytest.fixture
def serve():
    """A function that serves a file's editor and returns its address."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(served(path))[0].address


@pytest.fixture
def path(tmp_path):
    """A small hierarchy's file."""
    path = tmp_path / "animals.json"
    Hierarchy.from_taxonomy(TAXONOMY).save(path)
    return path


@pytest.fixture
def editor(page, serve, path):
    """The page that edits it."""
    return opened(page, serve(path))


def _note(message, faults):
    where = message.location.get("url", "") if message.location else ""
    if message.type == "error" and not where.endswith(HARMLESS):
        faults.append(f"console: {message.text}")


def _refuse(dialog, faults):
    """Note a dialog, which only a script that should not run would open."""
    if dialog.type != "beforeunload":
        faults.append(f"dialog: {dialog.message}")
    dialog.dismiss() if dialog.type != "beforeunload" else dialog.accept()
