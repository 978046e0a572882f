"""Contact sheets."""

from __future__ import annotations

from base64 import b64encode
from html.parser import HTMLParser

import pytest

from nearlabel.collection.contact_sheets import AnsweredItem, TagRow, Tile, contact_sheet

VOID = ("meta", "img")


class Page(HTMLParser):
    """Tags, attributes and text of a page; checks that elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def sheet(name="a.jpg", tag="sea", text=""):
    tiles = [Tile(name, b"\xff\xd8jpeg", "0.21"), Tile("gone.jpg", None, "0.3", text)]
    answered = AnsweredItem(Tile(name, b"\xff\xd8", "tags: sea"), [TagRow(tag, 0.93, tiles, True)])
    return contact_sheet("photos", "one picture", [answered])


def test_everything_is_on_the_page():
    page = Page(sheet(text="some words"))
    pictures = [attributes for tag, attributes in page.elements if tag == "img"]
    assert [one["alt"] for one in pictures] == ["a.jpg", "a.jpg"]
    source = f"data:image/jpeg;base64,{b64encode(bytes.fromhex('ffd8') + b'jpeg').decode()}"
    assert pictures[1]["src"] == source
    for shown in ("photos", "one picture", "sea", "0.930", "✓", "0.21", "gone.jpg", "some words"):
        assert shown in page.text, shown


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</bdi></h2></article><iframe src=//x>",
    "a\x00b\x1b[31m\r\nc\udcff",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_with_markup_stay_names(name):
    text = sheet(name, name, name)
    assert [tag for tag, _ in Page(text).elements] == [tag for tag, _ in Page(sheet()).elements]
    assert text.encode()  # it can be written


def test_nothing_is_fetched_and_nothing_runs():
    elements = Page(sheet()).elements
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in elements}
    for tag, attributes in elements:
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("src", "data:").startswith("data:"), tag
    policies = [one["content"] for _, one in elements if "http-equiv" in one]
    assert policies[0].startswith("default-src 'none'")


def test_lines_of_a_text_are_one():
    page = contact_sheet("notes", "", [AnsweredItem(Tile("a", text="waves\n\tat sea"), [])])
    assert "waves at sea" in page
    assert "\ufffd" not in page


def test_an_item_without_suggestions():
    page = contact_sheet("photos", "", [AnsweredItem(Tile("a.jpg"), [])])
    assert "no tags suggested" in Page(page).text
