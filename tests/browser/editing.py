"""The hierarchy editor's page: a small tree, and what a person does with it."""

from __future__ import annotations

TAXONOMY = {
    "animals": {"pets": ["cat", "dog"], "wild": ["fox", "bear", "wolf"]},
    "vehicles": {"road": ["car", "van"], "rail": ["train", "tram"]},
}
CLASSES = ["cat", "dog", "fox", "bear", "wolf", "car", "van", "train", "tram"]
TOP, LOW = [0, 0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 2, 2, 3, 3]


def opened(page, address):
    page.set_default_timeout(10_000)
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    return page


def row(page, name):
    """The row of a class or cluster."""
    found = page.locator("#tree .row", has=page.locator(".name").get_by_text(name, exact=True))
    assert found.count() == 1, name
    return found


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def drag(page, name, onto):
    source, target = row(page, name).bounding_box(), row(page, onto).bounding_box()
    page.mouse.move(source["x"] + 150, source["y"] + 10)
    page.mouse.down()
    page.mouse.move(target["x"] + 150, target["y"] + 16, steps=5)
    page.mouse.up()


def wait_until(page, part, text):
    from playwright.sync_api import expect

    expect(page.locator(part)).to_have_text(text)


def save(page):
    page.click("#save")
    wait_until(page, "#unsaved", "")


def status(page):
    return page.text_content("#status")


def message(page):
    return told(page, "#message")


def told(page, part):
    """What a part says, without the marks that keep each name's direction of writing to it."""
    return page.text_content(part).replace("\u2068", "").replace("\u2069", "")
