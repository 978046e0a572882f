"""Contact sheets: items, their most probable tags, and the items that have these tags.

A page is one file without scripts or external resources: pictures are embedded, and the browser is
told to fetch nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from unicodedata import category


@dataclass(frozen=True)
class Tile:
    """An item on a page.

    Attributes
    ----------
    name : str
    picture : bytes or None
        A JPEG file; None if there is none: `text` is shown instead, if any.
    note : str
        Shown below the name.
    text : str
    """

    name: str
    picture: bytes | None = None
    note: str = ""
    text: str = ""


@dataclass(frozen=True)
class TagRow:
    """A tag of an item, and items that have it.

    Attributes
    ----------
    tag : str
    probability : float
    tiles : sequence of Tile
    is_carried : bool
        Whether the item is known to have the tag.
    """

    tag: str
    probability: float
    tiles: Sequence[Tile]
    is_carried: bool = False


@dataclass(frozen=True)
class AnsweredItem:
    """An item with its most probable tags, best first."""

    item: Tile
    tags: Sequence[TagRow]


def contact_sheet(title: str, about: str, items: Iterable[AnsweredItem]) -> str:
    """An HTML page, with a sentence about it below its title."""
    style = Path(__file__).with_name("contact_sheet.css").read_text(encoding="utf-8")
    shown = "\n".join(map(_item, items))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_plain(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_name(title)}</h1>
<p class="soft">{_name(about)}</p>
</header>
<main>
{shown}
</main>
</body>
</html>
"""


def _item(answered: AnsweredItem) -> str:
    item = answered.item
    note = f'<p class="soft">{_name(item.note)}</p>' if item.note else ""
    rows = "\n".join(map(_row, answered.tags)) or '<p class="soft">no tags suggested</p>'
    return (
        f'<article class="item">\n<div class="asked">{_picture(item)}<h2>{_name(item.name)}</h2>'
        f"{note}</div>\n<div>\n{rows}\n</div>\n</article>"
    )


def _row(row: TagRow) -> str:
    carried = '<span class="yes">✓ has this tag</span>' if row.is_carried else ""
    percent = f"{100 * row.probability:.1f}"
    bar = f'<span class="bar" aria-hidden="true"><i style="width:{percent}%"></i></span>'
    tiles = "".join(map(_tile, row.tiles))
    return (
        f'<section class="tag"><h3>{_name(row.tag)}{bar}'
        f'<span class="number">{row.probability:.3f}</span>{carried}</h3>\n'
        f'<div class="tiles">{tiles}</div></section>'
    )


def _tile(tile: Tile) -> str:
    return (
        f'<figure title="{_plain(tile.name)}">{_picture(tile)}'
        f"<figcaption>{_name(tile.name)}{_plain(tile.note)}</figcaption></figure>"
    )


def _picture(tile: Tile) -> str:
    """The picture of an item, or its first words, or a grey box."""
    if tile.picture is None:
        words = " ".join(tile.text.split())[:200]
        return f'<div class="picture words">{_name(words)}</div>'
    content = base64.b64encode(tile.picture).decode()
    return f'<img class="picture" alt="{_plain(tile.name)}" src="data:image/jpeg;base64,{content}">'


def _name(text: str) -> str:
    """A text in an element that isolates its writing direction."""
    return f"<bdi>{_plain(text)}</bdi>"


def _plain(text: str) -> str:
    """Untrusted text escaped for HTML, without control characters."""
    return escape(
        "".join("\ufffd" if category(letter) in ("Cc", "Cs") else letter for letter in text)
    )
