"""How our figures look: one pair of axes, legible across a page and on a telephone.

They are read without color, too: every series has a mark and a kind of line of its own.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearlabel.common.arrays import Tree
from nearlabel.common.extras import extra_module
from nearlabel.common.files import replacing
from nearlabel.common.messages import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
INK, PALE = "#222222", "#dddddd"
# Okabe and Ito's colors, which people with any color vision tell apart; the darker ones first.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", INK)
PAGE_WIDTH = 7.0  # inches
_STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # names of data sets are no formulas
    "svg.hashsalt": "nearlabel",  # the same figure is the same file
}


def report_module(name: str) -> Any:
    """A module of the extra `report`; an ImportError says how to get it where it is missing."""
    package = name.partition(".")[0].replace("_", "-")
    return extra_module(name, f"figures and reports need {package}", "report")


@contextmanager
def one_axes(
    title: str | None, *, width: float = 4.6, height: float = 2.7, grid: bool = True
) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one pair of axes, in our style; no state of pyplot is touched."""
    mpl, module = report_module("matplotlib"), report_module("matplotlib.figure")
    with mpl.rc_context(_STYLE):
        figure = module.Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        if title:
            axes.set_title(one_line(title, 60), loc="left", pad=8)
        if grid:
            axes.grid(color=PALE, lw=0.6)
            axes.set_axisbelow(True)
        yield figure, axes


def styles() -> Iterator[Tree]:
    """Color, mark and line of one series after the other."""
    marks = ("o", "s", "^", "D", "v", "P", "X", "*")  # one more than colors: no pair comes twice
    lines = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)))
    for color, mark, line in zip(cycle(COLORS), cycle(marks), cycle(lines), strict=False):
        yield {"color": color, "marker": mark, "linestyle": line}


def add_legend(figure: Figure, title: str | None = None) -> None:
    """Below the axes, where it hides nothing; the figure grows by its lines."""
    [axes] = figure.axes
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= 23 else 1  # side by side
    lines = -(-len(labels) // columns) + (title is not None)
    figure.set_figheight(figure.get_figheight() + 0.15 * lines)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=columns,
        title=title,
        frameon=False,
        handlelength=2.4,
        columnspacing=1,
    )


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all."""
    with replacing(check_figure_path(path)) as file:
        file.write(encoded(figure, Path(path).suffix))


def check_figure_path(path: str | PathLike[str], what: str = "a figure") -> Path:
    """The path of a figure, or an error that names the endings it may have."""
    if Path(path).suffix not in FORMATS:
        raise ValueError(f"{what} must end in {', '.join(FORMATS)}; got {Path(path).name!r}")
    return Path(path)


def encoded(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a file, without the time at which it was made."""
    mpl = report_module("matplotlib")
    dated = {".svg": "Date", ".pdf": "CreationDate"}.get(suffix)
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        metadata = {dated: None} if dated else None
        figure.savefig(buffer, format=suffix[1:], dpi=240, metadata=metadata)
    return buffer.getvalue()
