"""Pages of reports: templates, pictures within a page, and files that are replaced at once."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from nearlabel.common.files import replacing
from nearlabel.common.versions import versions
from nearlabel.experiments.reporting.drawing import report_module


class Picture(NamedTuple):
    """A picture of a page."""

    name: str
    caption: str
    svg: bytes


class _Raw(str):
    """A text that is Markdown already."""


def html_page(template: str, view: Mapping[str, object]) -> bytes:
    """A page that needs nothing beside it; all values are escaped."""

    def source_of(picture: Picture) -> str:  # an image of its own: its ids cannot meet others
        return f"data:image/svg+xml;base64,{base64.b64encode(picture.svg).decode()}"

    return _page(template, view, autoescape=True, source_of=source_of)


def markdown_page(template: str, view: Mapping[str, object], folder: str) -> bytes:
    """A page whose pictures are in a folder beside it; no value is taken for a mark."""

    def source_of(picture: Picture) -> str:
        return _Raw(f"{folder}/{picture.name}.svg")

    def as_markdown(value: object) -> object:
        if isinstance(value, str) and not isinstance(value, _Raw):
            return re.sub(r"([\\`*_\[\]<>#|~&$])", r"\\\1", re.sub(r"\s+", " ", value))
        return value

    return _page(template, view, autoescape=False, source_of=source_of, finalize=as_markdown)


def _page(template: str, view: Mapping[str, object], source_of: object, **options: object) -> bytes:
    """Render a view; names that it does not have are errors."""
    jinja2 = report_module("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nearlabel.experiments.reporting", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.globals["source_of"] = source_of  # also for macros
    origin = {"date": datetime.now(UTC).date().isoformat(), "versions": versions()}
    return bytes(environment.get_template(template).render(view, **origin), "utf-8")


def write_page(path: Path, content: bytes) -> Path:
    """Write a file, whole or not at all."""
    with replacing(path) as file:
        file.write(content)
    return path
