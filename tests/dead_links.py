"""Check a built site for dead links and for files loaded from other sites."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The anchors of a page, the targets of its links, and the files that it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Record the attributes of a tag."""
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif (tag, name) in LOADED or (tag, name) == ("link", "href"):
                self.loaded.append(value or "")
            elif name == "href":
                self.links.append(value or "")


def complaints(site: Path) -> list[str]:
    """All dead links and foreign files, with the pages that have them."""
    files = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path) for path in files}
    found = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    found.append(f"{path}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            place = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{path}: {link} leads to no file")
            elif place and target in pages and place not in pages[target].places:
                found.append(f"{path}: {link} leads to no place of its page")
    return found


if __name__ == "__main__":
    if found := complaints(Path(sys.argv[1])):
        sys.exit("\n".join(found))
