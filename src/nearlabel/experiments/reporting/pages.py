"""Pages of reports: templates, with the pictures within the page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

from nearlabel.common.files import replacing
from nearlabel.common.versions import versions
from nearlabel.experiments.reporting.drawing import encoded, report_module

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A picture of a page."""

    caption: str
    figure: Figure

    @property
    def source(self) -> str:
        """An image of its own, so that its ids cannot meet those of others."""
        svg = encoded(self.figure, ".svg")
        return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def write_page(path: str | PathLike[str], template: str, view: Mapping[str, object]) -> None:
    """Write a page that needs nothing beside it, whole or not at all; all values are escaped."""
    jinja2 = report_module("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nearlabel.experiments.reporting", "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    origin = {"date": datetime.now(UTC).date().isoformat(), "versions": versions()}
    content = environment.get_template(template).render(view, **origin)
    with replacing(path) as file:
        file.write(content.encode())
