"""Pages of reports: what is in them, and that they load nothing."""

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """The tags, texts and attributes of a page; each tag must be closed where it was opened."""

    EMPTY = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes, self.tags = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def check_needs_nothing(text):
    """All that a page refers to is within it."""
    assert not re.search(r"(src|href)=\"(?!data:image/svg\+xml;base64,|#)", text)
    assert "url(" not in text
    assert "@import" not in text
