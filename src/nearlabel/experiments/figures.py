"""Figures of experiments: functions from plain data to a matplotlib figure.

Each is as wide as one column of a page, or a telephone, and is read without color, too: every
series has a mark and a kind of line of its own.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearlabel.experiments.extras import report_module
from nearlabel.experiments.significance import Nemenyi
from nearlabel.metrics import METRICS
from nearlabel.persistence import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
_WIDTH, _HEIGHT = 3.35, 2.3  # inches: 85 mm, one column
_LINE = 0.15  # inches of a line of a legend
_MANY, _SHARE_OF_MANY = 30, 0.9  # points of a curve, and how many of them are looked at
_LONG_LABEL = 23  # characters: two such labels do not stand side by side
_DPI = 240
_INK, _GRAY, _PALE = "#222222", "#767676", "#dddddd"
# Okabe and Ito's colors, which people with any color vision tell apart; the darker ones first.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", _INK)
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)))
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
    "axes.edgecolor": _INK,
    "text.color": _INK,
    "svg.hashsalt": "nearlabel",  # the same figure is the same file
}

Points = Sequence[Sequence[Any]]  # all x, then all y
Curves = Mapping[str, Points]


def tuning_curve(
    curves: Curves,
    metric: str,
    *,
    x_label: str = "neighbors k",
    title: str | None = None,
    log: bool = False,
    lines: Mapping[str, float] | None = None,
    spread: Mapping[str, Sequence[Sequence[float]]] | None = None,
    shaded: tuple[float, float] | None = None,
    share: float = 1.0,
) -> Figure:
    """A metric against a parameter, the best value of each series marked and told.

    Parameters
    ----------
    curves : mapping of str to (x, y)
        The points of each series; y is None or NaN where there is none. Of equal values the one
        at the smaller x is the best.
    metric : str
        A name of `nearlabel.metrics.METRICS`; it says whether less is better.
    x_label : str, default="neighbors k"
        What x is; its last word is the short name.
    title : str, optional
    log : bool, default=False
        Whether x has a logarithmic scale.
    lines : mapping of str to float, optional
        Values of methods that do not have the parameter.
    spread : mapping of str to (least, greatest), optional
        Of the series that have it, the span of their values at each x.
    shaded : (float, float), optional
        The part of x that a paper shows.
    share : float, default=1.0
        Of the points of each series, the best that must be in the picture: less than all where
        a few bad ones would make it too small.

    Returns
    -------
    matplotlib.figure.Figure
    """
    with _axes(title) as (figure, axes):
        if shaded is not None:
            axes.axvspan(*shaded, color="#f0e442", alpha=0.25, lw=0, label="range in the paper")
        for (name, value), line in zip((lines or {}).items(), cycle(("--", ":")), strict=False):
            axes.axhline(value, color=_GRAY, ls=line, lw=1.1, label=f"{name} {value:.4f}")
        for (name, points), style in zip(curves.items(), _styles(), strict=False):
            x, y = _finite(points)
            told = name
            if spread and name in spread:
                low, high = spread[name]
                axes.fill_between(points[0], low, high, color=style["color"], alpha=0.2, lw=0)
            if x:
                best = min(range(len(x)), key=lambda place: (_cost(y[place], metric), x[place]))
                axes.plot(x[best], y[best], "o", ms=8, mfc="none", mec=style["color"], zorder=4)
                told = f"{name} {y[best]:.4f} ({x[best]:.3g})"
            axes.plot(x, y, label=told, markevery=max(1, len(x) // 10), **style)
        if log:
            _logarithmic(axes, "x")
        else:
            axes.xaxis.set_major_locator(
                report_module("matplotlib.ticker").MaxNLocator("auto", integer=True)
            )
        axes.set_xlabel(x_label)
        axes.set_ylabel(_metric_label(metric))
        if share < 1:
            _look_at_the_best(
                axes, [_finite(points)[1] for points in curves.values()], metric, share
            )
        _legend(figure, f"○ best value (at {x_label.split()[-1]})")
    return figure


def run_times(curves: Curves, *, title: str | None = None) -> Figure:
    """Seconds against the number of rows, both logarithmic: the slope is the exponent of growth.

    Parameters
    ----------
    curves : mapping of str to (rows, seconds)
    title : str, optional
    """
    with _axes(title) as (figure, axes):
        for (name, points), style in zip(curves.items(), _styles(), strict=False):
            axes.plot(*_finite(points), label=name, **style)
        _logarithmic(axes, "x")
        _logarithmic(axes, "y")
        axes.set_xlabel("items n")
        axes.set_ylabel("seconds of processor time")
        _legend(figure)
    return figure


def critical_difference(found: Nemenyi, *, title: str | None = None) -> Figure:
    """Mean ranks on a line; bars join algorithms that do not differ significantly (Demšar 2006).

    Parameters
    ----------
    found : Nemenyi
    title : str, optional
    """
    posthocs, pandas = report_module("scikit_posthocs"), report_module("pandas")
    names, k = list(found.algorithms), len(found.algorithms)
    levels = (k + 1) // 2 + len(found.groups)
    with _axes(title, height=1.15 + 0.17 * levels, grid=False) as (figure, axes):
        posthocs.critical_difference_diagram(
            dict(zip(names, found.mean_ranks, strict=True)),
            pandas.DataFrame(found.p_values, names, names),
            alpha=found.level,
            ax=axes,
            label_fmt_left="{label}  {rank:.2f} ",
            label_fmt_right=" {rank:.2f}  {label}",
            label_props={"va": "center"},
            text_h_margin=0.03 * (k - 1),
            color_palette=dict.fromkeys(names, _INK),
            elbow_props={"linewidth": 0.8, "clip_on": False},
            marker_props={"s": 12, "zorder": 3, "clip_on": False},
            crossbar_props={"color": _COLORS[0], "linewidth": 3, "solid_capstyle": "round"},
        )
        axes.set_xlim(1, k)
        axes.set_xticks(range(1, k + 1))
        axes.spines["top"].set_visible(True)
        bar = [1, 1 + found.critical_difference]
        axes.plot(bar, [1.6, 1.6], "|-", color=_INK, lw=1, ms=6, clip_on=False)
        told = f"critical difference {found.critical_difference:.2f} (level {found.level:g})"
        axes.text(1, 2, told, ha="left", va="bottom")
        axes.set_ylim(top=3)
    return figure


def of_series(record: Mapping[str, Any]) -> dict[str, Figure]:
    """The figures of a measured series (see `Series.measure`), by the metric that each shows.

    Parameters
    ----------
    record : mapping
        A series without points has no figures.
    """
    found = {}
    for panel in record["panels"]:
        curves = {name: (record["x"], values) for name, values in panel["curves"].items()}
        if panel["metric"] == "seconds":
            found["seconds"] = run_times(curves, title=record["label"])
            continue
        found[panel["metric"]] = tuning_curve(
            curves,
            panel["metric"],
            x_label=record["x_label"],
            title=record["label"],
            log=record["log_x"],
            lines=panel["lines"],
            spread=panel["spread"],
            shaded=record["shaded"],
            share=1 if len(record["x"]) < _MANY or record["log_x"] else _SHARE_OF_MANY,
        )
    return found


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all."""
    with replacing(check_figure_path(path)) as file:
        file.write(encoded(figure, Path(path).suffix))


def check_figure_path(path: str | PathLike[str]) -> Path:
    """The path of a figure, or an error that names the endings it may have."""
    if Path(path).suffix not in FORMATS:
        raise ValueError(f"a figure must end in {', '.join(FORMATS)}; got {Path(path).name!r}")
    return Path(path)


def encoded(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a file, without the time at which it was made."""
    mpl = report_module("matplotlib")
    dated = {".svg": "Date", ".pdf": "CreationDate"}.get(suffix)
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(
            buffer, format=suffix[1:], dpi=_DPI, metadata={dated: None} if dated else None
        )
    return buffer.getvalue()


@contextmanager
def _axes(
    title: str | None, *, height: float = _HEIGHT, grid: bool = True
) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one pair of axes, in our style; no state of pyplot is touched."""
    mpl, module = report_module("matplotlib"), report_module("matplotlib.figure")
    with mpl.rc_context(_STYLE):
        figure = module.Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        if title:
            axes.set_title(title, loc="left", pad=8)
        if grid:
            axes.grid(color=_PALE, lw=0.6)
            axes.set_axisbelow(True)
        yield figure, axes


def _styles() -> Iterator[dict[str, Any]]:
    """Color, mark and line of one series after the other."""
    for color, mark, line in zip(cycle(_COLORS), cycle(_MARKS), cycle(_LINES), strict=False):
        yield {"color": color, "marker": mark, "linestyle": line}


def _finite(points: Points) -> tuple[list[float], list[float]]:
    """The points that have a value."""
    pairs = [(x, y) for x, y in zip(*points, strict=True) if y is not None and y == y]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _look_at_the_best(axes: Axes, columns: list[list[float]], metric: str, share: float) -> None:
    """Cut off the side of bad values, so that so many of each series are seen."""
    worst = max(
        (sorted(_cost(value, metric) for value in column)[int(share * (len(column) - 1))])
        for column in columns
        if column
    )
    best = min(_cost(value, metric) for column in columns for value in column)
    room = 0.05 * (worst - best)
    if room > 0:
        ends = sorted(_cost(end, metric) for end in (best - room, worst + room))
        axes.set_ylim(ends[0], ends[1])


def _cost(value: float, metric: str) -> float:
    return value if METRICS[metric].loss else -value


def metric_title(metric: str) -> str:
    """A metric's name for people."""
    return {"one_error": "one-error"}.get(metric, metric.replace("_", " "))


def _metric_label(metric: str) -> str:
    side = "less" if METRICS[metric].loss else "more"
    return f"{metric_title(metric)} ({side} is better)"


def _logarithmic(axes: Axes, side: str) -> None:
    """A logarithmic scale with plain numbers at its ticks."""
    ticker = report_module("matplotlib.ticker")
    getattr(axes, f"set_{side}scale")("log")
    axis = getattr(axes, f"{side}axis")
    low, high = axis.get_data_interval()
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def _legend(figure: Figure, title: str | None = None) -> None:
    """Below the axes, where it hides nothing; the figure grows by its lines."""
    [axes] = figure.axes
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= _LONG_LABEL else 1
    lines = -(-len(labels) // columns) + (title is not None)
    figure.set_figheight(figure.get_figheight() + _LINE * lines)
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
