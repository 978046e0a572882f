"""HTML tables for notebooks: no script, no style sheet, no external resources.

Colors are inherited from the page, so that a table is legible on light and dark ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

ROWS_SHOWN = 40
_LINE = "1px solid rgba(128,128,128,0.35)"
_TABLE = "border-collapse:collapse;border:none;margin:0.3em 0;color:inherit;background:none"
_CELL = "padding:0.2em 0.8em;border:none;vertical-align:top;background:none;color:inherit"


def table(
    head: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    caption: str,
    more: int = 0,
    things: str = "rows",
) -> str:
    """A table of cells made by `cell`; `more` is the number of things left out."""
    shown = "".join(f"<tr style='background:none'>{''.join(row)}</tr>" for row in rows)
    left_out = f"<div style='opacity:0.7'>{left_out_text(more, things)}</div>" if more else ""
    return (
        "<div style='overflow-x:auto'>"
        f"<div style='opacity:0.7'>{escape(caption)}</div><table style='{_TABLE}'>"
        f"<thead><tr style='background:none'>{''.join(head)}</tr></thead>"
        f"<tbody>{shown}</tbody></table>{left_out}</div>"
    )


def heading(content: object, *, number: bool = False) -> str:
    """A cell of the head, above numbers or above text."""
    return _cell("th", escape(str(content)), number, f"border-bottom:{_LINE};font-weight:bold")


def cell(content: object, *, number: bool = False, span: int = 1, first: bool = False) -> str:
    """A cell that spans some rows; `first` draws a line above it, at the start of a group."""
    style = f"border-top:{_LINE}" if first else ""
    text = escape(str(content)).replace("\n", "<br>")
    return _cell("td", text, number, style, f" rowspan='{span}'" * (span > 1))


def words_and_numbers(pairs: Iterable[tuple[object, str]], *, more: int = 0) -> str:
    """A cell of words, each followed by a number; lines break only between such pairs."""
    shown = [
        f"<span style='white-space:nowrap;margin-right:1em'>{escape(str(word))} "
        f"<span style='opacity:0.7'>{escape(number)}</span></span>"
        for word, number in pairs
    ]
    shown += [f"<span style='opacity:0.7'>… {more:,} more</span>"] * bool(more)
    return _cell("td", " ".join(shown), False, "")


def left_out_text(more: int, things: str = "rows") -> str:
    """The line shown in place of things that are left out."""
    return f"… {more:,} more {things.removesuffix('s') if more == 1 else things}"


def _cell(tag: str, content: str, number: bool, style: str, attributes: str = "") -> str:
    aligned = f"text-align:{'right' if number else 'left'};{style}"
    return f"<{tag}{attributes} style='{_CELL};{aligned}'>{content}</{tag}>"
