"""The report of a comparison of methods on one data set: a page in HTML, with its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from nearlabel.common.messages import one_line
from nearlabel.experiments.reporting.figures import method_gaps, method_values
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title, p_text
from nearlabel.experiments.reporting.pages import Picture, write_page
from nearlabel.experiments.significance.standings import Standing, paired_over
from nearlabel.metrics import LabelResults


class ComparedMethod(NamedTuple):
    """A method of a comparison, `own` if it is one of nearlabel; with a `refusal` it was left out.

    `cells` has by metric the mark of the best, or of one that is not significantly worse, and the
    value; `choices` are the parameters that were chosen, where there was a choice.
    """

    title: str
    own: bool
    cells: Mapping[str, tuple[str, str]] = {}
    seconds: str = ""
    refusal: str | None = None
    choices: Sequence[str] = ()
    labels: LabelResults | None = None


def write_comparison(
    path: str | PathLike[str],
    dataset: str,
    *,
    setup: Mapping[str, str],
    command: str,
    methods: Sequence[ComparedMethod],
    standings: Mapping[str, Mapping[str, Standing]],
    parts: int,
    legend: Sequence[str],
) -> None:
    """Write a page that needs nothing beside it, whole or not at all.

    `setup` says by a word for each what was compared and how, `command` makes the report again,
    `standings` are by metric and the title of a method, values are means over `parts` of the data,
    and `legend` says what the marks and the seconds mean.
    """
    ran = [method for method in methods if method.refusal is None]
    own = [method.title for method in methods if method.own]
    with_labels = [(method.title, method.labels) for method in ran if method.labels is not None]
    over = paired_over(parts)
    sections = {
        "setup": ("Setup", setup),
        "results": ("Results", ran),
        "metrics": (
            "Metric by metric",
            [
                _by_metric(dataset, metric, standing, own, over)
                for metric, standing in standings.items()
                if standing
            ],
        ),
        "choices": ("Chosen parameters", [method for method in methods if method.choices]),
        "labels": ("Results per label", _label_rows([labels for _, labels in with_labels])),
    }
    view = {
        "title": f"Comparison of multi-label methods: {dataset}",
        "contents": {place: heading for place, (heading, content) in sections.items() if content},
        "command": command,
        "parts": parts,
        "over": over,
        "legend": legend,
        "sections": {place: content for place, (_, content) in sections.items()},
        "heads": {metric: metric_head(metric) for metric in standings},
        "refused": [method for method in methods if method.refusal is not None],
        "label_methods": [title for title, _ in with_labels],
        "all_labels": len(with_labels[0][1]) if with_labels else 0,
    }
    write_page(path, "comparison.html.j2", view)


def _by_metric(
    dataset: str, metric: str, standing: Mapping[str, Standing], own: Sequence[str], over: str
) -> dict[str, object]:
    """All methods by one metric: figures, and the differences from the best.

    The rows have by method, the best of them first: how much worse than the best; in how many parts
    or test items better, equal and worse; the p-value.
    """
    name = metric_title(metric)
    best = next(method for method, place in standing.items() if place.is_best)
    values = {
        method: (place.value, place.error if math.isfinite(place.error) else None)
        for method, place in standing.items()
    }
    drawn = method_values(values, metric, own=own, title=f"{name}, {dataset}")
    pictures = [Picture(f"{name} of {len(values)} methods on {dataset}", drawn)]
    pairs = {method: place.pair for method, place in standing.items() if place.pair is not None}
    if pairs:
        what = f"{name}: differences from {best}"
        drawn = method_gaps(pairs, best, over=over, title=f"{what}, {dataset}")
        pictures.append(Picture(f"{what}, paired over {over}", drawn))
    rows = {
        method: (
            f"{pair.gain:+.4f} ± {pair.error:.4f}",
            f"{pair.losses} / {pair.ties} / {pair.wins}",
            p_text(pair.p_value),
        )
        for method, pair in sorted(pairs.items(), key=lambda named: named[1].gain)
    }
    return {"head": metric_head(metric), "pictures": pictures, "best": best, "rows": rows}


def _label_rows(
    columns: Sequence[LabelResults],
) -> list[tuple[str, int, list[tuple[bool, str]]]]:
    """Of the most frequent labels: the name, how many items have it, and the F1 of each method.

    With each F1 stands whether it is the best one of the label.
    """
    rows = []
    for place in np.argsort(-columns[0].support, kind="stable")[:40] if columns else ():
        values = [math.nan if each.f1 is None else float(each.f1[place]) for each in columns]
        texts = [f"{value:.3f}" if math.isfinite(value) else NO_NUMBER for value in values]
        best = max((text for text in texts if text != NO_NUMBER), default="")
        label = one_line(str(columns[0].label[place]), 80)
        cells = [(text == best, text) for text in texts]
        rows.append((label, int(columns[0].support[place]), cells))
    return rows
