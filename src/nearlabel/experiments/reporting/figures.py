"""Figures of experiments: functions from plain data to a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nearlabel.experiments.reporting.drawing import (
    COLORS,
    INK,
    PAGE_WIDTH,
    add_legend,
    one_axes,
    report_module,
    styles,
)
from nearlabel.experiments.reporting.names import metric_title
from nearlabel.experiments.significance.mean_ranks import Nemenyi
from nearlabel.experiments.significance.pairs import LEVEL, Pair
from nearlabel.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tuning_curve(
    curves: Mapping[str, Sequence[tuple[float, float]]], metric: str, *, title: str | None = None
) -> Figure:
    """A metric against the number of neighbors: points (k, value) of each series.

    The best value of each is marked, of equal ones the one at the smaller k.
    """
    loss = METRICS[metric].loss
    with one_axes(title) as (figure, axes):
        for (name, points), style in zip(curves.items(), styles(), strict=False):
            k, value = min(points, key=lambda point: (point[1] if loss else -point[1], point[0]))
            axes.plot(k, value, "o", ms=8, mfc="none", mec=style["color"], zorder=4)
            label = f"{name} {value:.4f} ({k:.3g})"
            every = max(1, len(points) // 10)
            axes.plot(*zip(*points, strict=True), label=label, markevery=every, **style)
        axes.xaxis.set_major_locator(
            report_module("matplotlib.ticker").MaxNLocator(6, steps=[1, 2, 5, 10], integer=True)
        )
        axes.set_xlabel("neighbors k")
        axes.set_ylabel(f"{metric_title(metric)} ({'lower' if loss else 'higher'} is better)")
        add_legend(figure, "○ best value (at k)")
    return figure


def method_values(
    values: Mapping[str, tuple[float, float | None]],
    metric: str,
    *,
    own: Sequence[str] = (),
    title: str | None = None,
) -> Figure:
    """Values of methods with standard errors, the best on top; the `own` ones are filled."""
    loss = METRICS[metric].loss
    names = sorted(values, key=lambda name: values[name][0], reverse=not loss)
    side = "lower" if loss else "higher"
    marks = ", filled: nearlabel" if not set(own).isdisjoint(names) else ""
    marks = "" if set(own).issuperset(names) else marks  # there is nothing to tell apart
    errors = any(error is not None for _, error in values.values())
    spread = " ± standard error" if errors else ""
    label = f"{metric_title(metric)}{spread}\n({side} is better{marks})"
    return _error_bars({name: values[name] for name in names}, own, label, title)


def method_gaps(
    gaps: Mapping[str, Pair], best: str, *, over: str, title: str | None = None
) -> Figure:
    """How much worse methods are than the best, with standard errors of the paired differences.

    Those that are significantly worse are filled. `over` names what is paired, such as "parts"; the
    title should name the metric.
    """
    names = sorted(gaps, key=lambda name: gaps[name].gain)
    worse = [name for name in names if gaps[name].is_better()]
    label = f"worse than {best} by\n(± standard error over {over}; filled: p < {LEVEL:g})"
    bars = {name: (gaps[name].gain, gaps[name].error) for name in names}
    figure = _error_bars(bars, worse, label, title)
    figure.axes[0].axvline(0, color=INK, lw=0.8)
    return figure


def _error_bars(
    values: dict[str, tuple[float, float | None]],
    filled: Sequence[str],
    x_label: str,
    title: str | None,
) -> Figure:
    """Values with errors, the first on top; without any, the figure says so."""
    with one_axes(title, height=0.75 + 0.165 * max(len(values), 2)) as (figure, axes):
        if not values:
            axes.text(0.5, 0.5, "not defined", ha="center", transform=axes.transAxes)
        for place, (name, (value, error)) in enumerate(reversed(values.items())):
            color = COLORS[0] if name in filled else COLORS[1]
            face = color if name in filled else "white"
            axes.errorbar(value, place, xerr=error, fmt="o", color=color, mfc=face, lw=1, capsize=2)
        axes.set_yticks(range(len(values)), [*values][::-1])
        axes.set_ylim(-0.6, max(len(values), 1) - 0.4)
        axes.set_xlabel(x_label)
    return figure


def critical_difference(test: Nemenyi, *, title: str | None = None) -> Figure:
    """Mean ranks on a line; bars join algorithms that do not differ significantly (Demšar 2006)."""
    posthocs, pandas = report_module("scikit_posthocs"), report_module("pandas")
    names, k = list(test.algorithms), len(test.algorithms)
    levels = (k + 1) // 2 + len(test.groups)
    width = {} if k <= 10 else {"width": PAGE_WIDTH}
    with one_axes(title, height=1.15 + 0.17 * levels, grid=False, **width) as (figure, axes):
        drawn = posthocs.critical_difference_diagram(
            dict(zip(names, test.mean_ranks, strict=True)),
            pandas.DataFrame(test.p_values, names, names),
            alpha=test.level,
            ax=axes,
            label_fmt_left="{label}  {rank:.2f} ",
            label_fmt_right=" {rank:.2f}  {label}",
            label_props={"va": "center"},
            text_h_margin=(0.03 if k <= 10 else 0.01) * (k - 1),
            color_palette=dict.fromkeys(names, INK),
            elbow_props={"linewidth": 0.8, "clip_on": False},
            marker_props={"s": 12, "zorder": 3, "clip_on": False},
            crossbar_props={"color": COLORS[0], "linewidth": 3, "solid_capstyle": "round"},
        )
        for [bar] in drawn["crossbars"]:  # its points come in the order of a set
            bar.set_xdata(sorted(bar.get_xdata()))
        axes.set_xlim(1, k)
        axes.set_xticks(range(1, k + 1))
        axes.spines["top"].set_visible(True)
        bar = [1, 1 + test.critical_difference]
        axes.plot(bar, [1.6, 1.6], "|-", color=INK, lw=1, ms=6, clip_on=False)
        label = f"critical difference {test.critical_difference:.2f} (level {test.level:g})"
        axes.text(1, 2, label, ha="left", va="bottom")
        axes.set_ylim(top=3)
    return figure
