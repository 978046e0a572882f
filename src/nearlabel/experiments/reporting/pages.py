"""Pages of reports: templates, pictures within a page, and files that are replaced at once."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nearlabel.common.files import replacing
from nearlabel.common.versions import versions
from nearlabel.experiments.reporting.drawing import report_module


@dataclass(frozen=True)
class Picture:
    """A picture of a page."""

    name: str
    caption: str
    svg: bytes


def environment(**options: Any) -> Any:
    """A Jinja environment of our templates; names that a page does not have are errors."""
    jinja2 = report_module("jinja2")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("nearlabel.experiments.reporting", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )


def html_page(template: str, view: Mapping[str, Any]) -> bytes:
    """A page that needs nothing beside it; all values are escaped."""
    of_html = environment(autoescape=True)
    of_html.globals["source_of"] = _data_uri
    return bytes(of_html.get_template(template).render(view), "utf-8")


def origin() -> dict[str, Any]:
    """When and with which versions a page is written."""
    return {"date": datetime.now(UTC).date().isoformat(), "versions": versions()}


def write_page(path: Path, content: bytes) -> Path:
    """Write a file, whole or not at all."""
    with replacing(path) as file:
        file.write(content)
    return path


def _data_uri(picture: Picture) -> str:
    """A picture within a page; as an image of its own its ids cannot meet those of others."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.svg).decode()}"
