"""Figures of experiments: functions from plain data to a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from nearlabel.experiments.papers.figure_points import Plot
from nearlabel.experiments.reporting.drawing import (
    COLORS,
    GRAY,
    INK,
    YELLOW,
    add_legend,
    check_figure_path,
    encoded,
    make_logarithmic,
    one_axes,
    save,
    styles,
)
from nearlabel.experiments.reporting.extras import report_module
from nearlabel.experiments.reporting.names import metric_title
from nearlabel.experiments.significance.mean_ranks import Nemenyi
from nearlabel.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "check_figure_path",
    "critical_difference",
    "encoded",
    "plot_figures",
    "run_times",
    "save",
    "tuning_curve",
]

Points = Sequence[Sequence[Any]]  # all x, then all y
Curves = Mapping[str, Points]
_MANY, _SHARE_OF_MANY = 30, 0.9  # points of a curve, and how many of them are looked at


def tuning_curve(
    curves: Curves,
    metric: str,
    *,
    x_label: str = "neighbors k",
    title: str | None = None,
    log: bool = False,
    lines: Mapping[str, Any] | None = None,
    spread: Mapping[str, Points] | None = None,
    shaded: Sequence[float] | None = None,
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
    with one_axes(title) as (figure, axes):
        if shaded is not None:
            axes.axvspan(*shaded, color=YELLOW, alpha=0.25, lw=0, label="range in the paper")
        for (name, value), line in zip((lines or {}).items(), cycle(("--", ":")), strict=False):
            axes.axhline(value, color=GRAY, ls=line, lw=1.1, label=f"{name} {value:.4f}")
        for (name, points), style in zip(curves.items(), styles(), strict=False):
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
            make_logarithmic(axes, "x")
        else:
            axes.xaxis.set_major_locator(
                report_module("matplotlib.ticker").MaxNLocator(6, steps=[1, 2, 5, 10], integer=True)
            )
        axes.set_xlabel(x_label)
        axes.set_ylabel(_metric_label(metric))
        if share < 1:
            _look_at_the_best(
                axes, [_finite(points)[1] for points in curves.values()], metric, share
            )
        add_legend(figure, f"○ best value (at {x_label.split()[-1]})")
    return figure


def run_times(curves: Curves, *, title: str | None = None) -> Figure:
    """Seconds against the number of rows, both logarithmic: the slope is the exponent of growth.

    Parameters
    ----------
    curves : mapping of str to (rows, seconds)
    title : str, optional
    """
    with one_axes(title) as (figure, axes):
        for (name, points), style in zip(curves.items(), styles(), strict=False):
            axes.plot(*_finite(points), label=name, **style)
        make_logarithmic(axes, "x")
        make_logarithmic(axes, "y")
        axes.set_xlabel("items n")
        axes.set_ylabel("seconds of processor time")
        add_legend(figure)
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
    with one_axes(title, height=1.15 + 0.17 * levels, grid=False) as (figure, axes):
        posthocs.critical_difference_diagram(
            dict(zip(names, found.mean_ranks, strict=True)),
            pandas.DataFrame(found.p_values, names, names),
            alpha=found.level,
            ax=axes,
            label_fmt_left="{label}  {rank:.2f} ",
            label_fmt_right=" {rank:.2f}  {label}",
            label_props={"va": "center"},
            text_h_margin=0.03 * (k - 1),
            color_palette=dict.fromkeys(names, INK),
            elbow_props={"linewidth": 0.8, "clip_on": False},
            marker_props={"s": 12, "zorder": 3, "clip_on": False},
            crossbar_props={"color": COLORS[0], "linewidth": 3, "solid_capstyle": "round"},
        )
        axes.set_xlim(1, k)
        axes.set_xticks(range(1, k + 1))
        axes.spines["top"].set_visible(True)
        bar = [1, 1 + found.critical_difference]
        axes.plot(bar, [1.6, 1.6], "|-", color=INK, lw=1, ms=6, clip_on=False)
        told = f"critical difference {found.critical_difference:.2f} (level {found.level:g})"
        axes.text(1, 2, told, ha="left", va="bottom")
        axes.set_ylim(top=3)
    return figure


def plot_figures(plot: Plot, title: str) -> dict[str, Figure]:
    """The figures of a measured plot, by the metric that each shows."""
    found = {}
    for panel in plot.panels:
        curves = {name: (plot.x, values) for name, values in panel.curves.items()}
        if panel.metric == "seconds":
            found["seconds"] = run_times(curves, title=title)
            continue
        found[panel.metric] = tuning_curve(
            curves,
            panel.metric,
            x_label=plot.x_label,
            title=title,
            log=plot.log_x,
            lines=panel.lines,
            spread=panel.spread,
            shaded=plot.shaded,
            share=1 if len(plot.x) < _MANY or plot.log_x else _SHARE_OF_MANY,
        )
    return found


def _finite(points: Points) -> tuple[list[float], list[float]]:
    """The points that have a value."""
    pairs = [(x, y) for x, y in zip(*points, strict=True) if y is not None and y == y]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _look_at_the_best(axes: Axes, columns: list[list[float]], metric: str, share: float) -> None:
    """Cut off the side of bad values, so that so many of each series are seen."""
    if not any(columns):
        return
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


def _metric_label(metric: str) -> str:
    side = "less" if METRICS[metric].loss else "more"
    return f"{metric_title(metric)} ({side} is better)"
