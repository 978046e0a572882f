"""Formulas as MathML, which browsers display without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html import HTMLTranslator


def inline(translator: HTMLTranslator, node: nodes.math) -> None:
    """Write an inline formula."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(translator: HTMLTranslator, node: nodes.math_block) -> None:
    """Write a displayed formula."""
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer for `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
