"""Contact sheets: items, their most probable tags, and the items that have these tags.

A page is one file without scripts or external resources: pictures are embedded, and the browser is
told to fetch nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import category

_STYLE = """
:root { color-scheme: light dark; --text: #1c1c1e; --soft: #65656b; --page: #f6f6f4;
  --card: #ffffff; --line: #dcdcd8; --bar: #3a7bd5; --yes: #1f7a3d; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ececee; --soft: #a2a2a9; --page: #17181a; --card: #222326; --line: #3a3b3f;
    --bar: #6ea4ee; --yes: #6fce8f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 24px; color: var(--text);
  background: var(--page); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2, h3, p, figure { margin: 0; }
.soft, figcaption { color: var(--soft); font-size: 13px; }
.item { display: grid; grid-template-columns: 240px minmax(0, 1fr); gap: 28px; margin: 20px 0;
  padding: 20px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.asked { position: sticky; top: 20px; align-self: start; }
.asked .picture { width: 100%; max-height: 240px; }
.asked h2 { font-size: 15px; margin: 8px 0 2px; overflow-wrap: anywhere; }
.tag + .tag { margin-top: 16px; padding-top: 14px; border-top: 1px solid var(--line); }
.tag h3 { display: flex; align-items: center; gap: 10px; font-size: 15px; margin-bottom: 8px; }
.tag h3 bdi { min-width: 96px; overflow-wrap: anywhere; }
.bar { flex: none; width: 110px; height: 6px; border-radius: 3px; background: var(--line); }
.bar i { display: block; height: 100%; border-radius: 3px; background: var(--bar); }
.number { font-weight: 400; color: var(--soft); font-variant-numeric: tabular-nums; }
.yes { color: var(--yes); font-weight: 400; font-size: 13px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(92px, 1fr)); gap: 10px; }
.tiles figure { min-width: 0; }
.tiles .picture { width: 100%; aspect-ratio: 4 / 3; }
.picture { display: block; object-fit: cover; border-radius: 5px; background: var(--line); }
.words { overflow: hidden; padding: 6px; font-size: 11px; line-height: 1.3; }
figcaption { margin-top: 2px; font-size: 12px; line-height: 1.3; }
figcaption bdi { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
@media (max-width: 720px) { body { padding: 12px; }
  .item { grid-template-columns: 1fr; gap: 16px; padding: 14px; } .asked { position: static; } }
@media print { body { background: none; } .item { break-inside: avoid; } }
"""


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
    shown = "\n".join(map(_item, items))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_plain(title)}</title>
<style>{_STYLE}</style>
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
