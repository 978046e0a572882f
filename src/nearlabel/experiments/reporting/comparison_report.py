"""The report of a comparison of methods on one data set: a page in HTML, with its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from nearlabel.common.messages import one_line
from nearlabel.experiments.reporting.drawing import encoded
from nearlabel.experiments.reporting.figures import method_gaps, method_values
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title, p_text
from nearlabel.experiments.reporting.pages import Picture, html_page, origin, write_page
from nearlabel.experiments.significance.standings import Standing, paired_over
from nearlabel.metrics import LabelResults

_LABELS_SHOWN, _LONGEST_LABEL = 40, 80
_PARTS = {
    "setup": "Setup",
    "results": "Results",
    "metrics": "Metric by metric",
    "choices": "Chosen parameters",
    "labels": "Results per label",
}


@dataclass(frozen=True)
class ComparedMethod:
    """A method of a comparison.

    Attributes
    ----------
    title : str
    own : bool
        Whether it is a method of nearlabel.
    cells : dict
        By metric: the mark of the best, or of one that is not significantly worse, and the value.
    seconds : str
    refusal : str or None
        Why it was left out.
    choices : sequence of str
        The parameters that were chosen, where there was a choice.
    labels : LabelResults or None
    """

    title: str
    own: bool
    cells: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    seconds: str = ""
    refusal: str | None = None
    choices: Sequence[str] = ()
    labels: LabelResults | None = None


@dataclass(frozen=True)
class Comparison:
    """Methods compared on one data set.

    Attributes
    ----------
    dataset : str
    setup : dict of str
        What was compared and how, by a word for each.
    command : str
        The command that makes the report again.
    methods : sequence of ComparedMethod
    standings : dict
        By metric and the title of a method.
    parts : int
        Of how many parts of the data the values are means.
    legend : sequence of str
        What the marks and the seconds mean.
    """

    dataset: str
    setup: Mapping[str, str]
    command: str
    methods: Sequence[ComparedMethod]
    standings: Mapping[str, Mapping[str, Standing]]
    parts: int
    legend: Sequence[str]

    @property
    def over(self) -> str:
        """What is paired."""
        return paired_over(self.parts)


@dataclass(frozen=True)
class MetricView:
    """All methods by one metric: figures, and their differences from the best.

    Attributes
    ----------
    head : str
    pictures : list of Picture
    best : str
    rows : dict of tuple of str
        By method, the best of them first: how much worse than the best; in how many parts or test
        items better, equal and worse; the p-value.
    """

    head: str
    pictures: list[Picture]
    best: str
    rows: dict[str, tuple[str, str, str]]


def write_comparison(path: str | PathLike[str], compared: Comparison) -> None:
    """Write a page that needs nothing beside it, whole or not at all."""
    ran = [one for one in compared.methods if one.refusal is None]
    with_labels = [(one.title, one.labels) for one in ran if one.labels is not None]
    sections = {
        "setup": compared.setup,
        "results": ran,
        "metrics": [_by_metric(compared, one) for one, each in compared.standings.items() if each],
        "choices": [one for one in compared.methods if one.choices],
        "labels": _label_rows([labels for _, labels in with_labels]),
    }
    view = {
        "title": f"Comparison of multi-label methods: {compared.dataset}",
        **origin(),
        "contents": {place: heading for place, heading in _PARTS.items() if sections[place]},
        "compared": compared,
        "sections": sections,
        "heads": {metric: metric_head(metric) for metric in compared.standings},
        "refused": [one for one in compared.methods if one.refusal is not None],
        "label_methods": [title for title, _ in with_labels],
        "all_labels": len(with_labels[0][1]) if with_labels else 0,
    }
    write_page(Path(path), html_page("comparison.html.j2", view))


def _by_metric(compared: Comparison, metric: str) -> MetricView:
    standing, metric_name = compared.standings[metric], metric_title(metric)
    best = next(name for name, one in standing.items() if one.is_best)
    values = {
        name: (one.value, one.error if math.isfinite(one.error) else None)
        for name, one in standing.items()
    }
    own = [one.title for one in compared.methods if one.own]
    drawn = method_values(values, metric, own=own, title=f"{metric_name}, {compared.dataset}")
    caption = f"{metric_name} of {len(values)} methods on {compared.dataset}"
    pictures = [Picture(f"{metric}_values", caption, encoded(drawn, ".svg"))]
    pairs = {name: one.pair for name, one in standing.items() if one.pair is not None}
    if pairs:
        title = f"{metric_name}: differences from {best}, {compared.dataset}"
        drawn = method_gaps(pairs, best, over=compared.over, title=title)
        caption = f"{metric_name}: differences from {best}, paired over {compared.over}"
        pictures.append(Picture(f"{metric}_differences", caption, encoded(drawn, ".svg")))
    rows = {
        name: (
            f"{pair.gain:+.4f} ± {pair.error:.4f}",
            f"{pair.losses} / {pair.ties} / {pair.wins}",
            p_text(pair.p_value),
        )
        for name, pair in sorted(pairs.items(), key=lambda one: one[1].gain)
    }
    return MetricView(metric_head(metric), pictures, best, rows)


def _label_rows(
    columns: Sequence[LabelResults],
) -> list[tuple[str, int, list[tuple[bool, str]]]]:
    """Of the most frequent labels: the name, how many items have it, and the F1 of each method.

    With each F1 stands whether it is the best one of the label.
    """
    rows = []
    order = np.argsort(-columns[0].support, kind="stable")[:_LABELS_SHOWN] if columns else ()
    for place in order:
        values = [math.nan if one.f1 is None else float(one.f1[place]) for one in columns]
        texts = [f"{value:.3f}" if math.isfinite(value) else NO_NUMBER for value in values]
        best = max((text for text in texts if text != NO_NUMBER), default="")
        cells = [(text == best, text) for text in texts]
        label = one_line(str(columns[0].label[place]), _LONGEST_LABEL)
        rows.append((label, int(columns[0].support[place]), cells))
    return rows
