"""Reports: one page in HTML that needs nothing beside it, and one in Markdown with its figures."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from nearlabel.experiments.papers import published
from nearlabel.experiments.papers.comparisons import Comparison, comparisons
from nearlabel.experiments.papers.plans import Experiment
from nearlabel.experiments.reporting.extras import report_module
from nearlabel.experiments.reporting.figures import (
    critical_difference,
    encoded,
    metric_title,
    of_series,
)
from nearlabel.experiments.reporting.significance import comparison_views, order_views
from nearlabel.experiments.reporting.tables import (
    MARKS,
    MEANINGS,
    paper_title,
    setting_in_words,
    table_blocks,
    verdict_counts,
)
from nearlabel.persistence import replacing
from nearlabel.versions import package_versions

_FIGURES = "figures"  # the folder of the pictures of the page in Markdown
_TITLE = "Published tables of multi-label nearest neighbors, made anew"


def write_report(
    folder: str | PathLike[str],
    records: Sequence[Mapping[str, Any]],
    experiments: Sequence[Experiment],
    series: Sequence[Mapping[str, Any]] = (),
) -> list[Path]:
    """Write ``report.html``, ``report.md`` and the pictures of the latter in ``figures``.

    Parameters
    ----------
    folder : path
        Made where it is not there. Files of an earlier report are replaced, each at once.
    records : sequence of mapping
        The cells, as `nearlabel.experiments.papers.reproduction.reproduce` gives them.
    experiments : sequence of Experiment
        Those that the cells belong to; they tell how the numbers were made.
    series : sequence of mapping, optional
        Measured series, see `nearlabel.experiments.papers.series`.

    Returns
    -------
    list of Path
        The files, the two pages first.
    """
    jinja2 = report_module("jinja2")
    compared = comparisons(records, experiments)
    pictures = {**_rank_pictures(compared), **_series_pictures(series)}
    view = {
        "title": _TITLE,
        "versions": package_versions(),
        "verdicts": [
            {"name": name, "mark": MARKS[name], "kind": name.replace(" ", "-"), "told": told}
            for name, told in MEANINGS.items()
        ],
        "counts": verdict_counts(records),
        "papers": _papers(records, experiments),
        "orders": order_views() if any(record["paper"] == "000" for record in records) else [],
        "comparisons": comparison_views(compared),
        "rank_figures": [_figure(name, one) for name, one in _rank_captions(compared).items()],
        "series": _series_groups(series),
    }
    target = Path(folder)
    (target / _FIGURES).mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in pictures.items():
        written.append(_write(target / _FIGURES / f"{name}.svg", picture))
    loader = jinja2.PackageLoader("nearlabel.experiments.reporting", "templates")
    options = {"loader": loader, "undefined": jinja2.StrictUndefined, "trim_blocks": True}
    options |= {"lstrip_blocks": True, "keep_trailing_newline": True}
    html = jinja2.Environment(autoescape=True, **options)
    html.globals["source_of"] = lambda name: _data_uri(pictures[name])
    markdown = jinja2.Environment(autoescape=False, finalize=_as_markdown, **options)
    markdown.globals["source_of"] = lambda name: _Raw(f"{_FIGURES}/{name}.svg")
    pages = [
        _write(target / page, environment.get_template(f"{page}.j2").render(view).encode())
        for page, environment in (("report.html", html), ("report.md", markdown))
    ]
    return [*pages, *written]


def _write(path: Path, content: bytes) -> Path:
    with replacing(path) as file:
        file.write(content)
    return path


def _papers(
    records: Sequence[Mapping[str, Any]], experiments: Sequence[Experiment]
) -> list[dict[str, Any]]:
    blocks = table_blocks(records, experiments)
    return [
        {
            "key": paper,
            "title": paper_title(paper),
            "reference": published.papers()[paper].reference,
            "blocks": [block for block in blocks if block["paper"] == paper],
        }
        for paper in dict.fromkeys(block["paper"] for block in blocks)
    ]


def _rank_name(one: Comparison) -> str:
    return f"ranks_{one.title[:3]}_{one.metric}_{one.source}"


def _drawn(compared: Sequence[Comparison]) -> list[Comparison]:
    """Comparisons of three algorithms and more; ours where they are there."""
    ours = {one.title for one in compared if one.source == "ours"}
    return [
        one
        for one in compared
        if one.nemenyi is not None and (one.source == "ours" or one.title not in ours)
    ]


def _rank_pictures(compared: Sequence[Comparison]) -> dict[str, bytes]:
    pictures = {}
    for one in _drawn(compared):
        if one.nemenyi is not None:
            figure = critical_difference(one.nemenyi, title=metric_title(one.metric))
            pictures[_rank_name(one)] = encoded(figure, ".svg")
    return pictures


def _rank_captions(compared: Sequence[Comparison]) -> dict[str, str]:
    return {
        _rank_name(one): f"{paper_title(one.title[:3])}, {one.title[4:]}: mean ranks by "
        f"{metric_title(one.metric)} over {len(one.datasets)} data sets, "
        f"{'our' if one.source == 'ours' else 'published'} numbers"
        for one in _drawn(compared)
    }


def _series_pictures(series: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    return {
        f"{one['name']}_{metric}": encoded(figure, ".svg")
        for one in series
        for metric, figure in of_series(one).items()
    }


def _series_groups(series: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The series of one figure together: they differ in the data set."""
    groups: dict[str, dict[str, Any]] = {}
    for one in series:
        where = f"{paper_title(one['paper'])}, Fig. {one['figure']}: " if one["paper"] else ""
        heading = f"{where}{one['title']}"
        group = groups.setdefault(
            heading, {"heading": heading, "caption": one["caption"], "members": []}
        )
        group["members"].append(_series_view(one))
    return list(groups.values())


def _series_view(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "label": one["label"],
        "setting": setting_in_words(one["setting"]),
        "reason": one["reason"],
        "figures": [
            _figure(
                f"{one['name']}_{panel['metric']}",
                f"{_panel_title(panel['metric'])} against {one['x_label']}, {one['label']}",
            )
            for panel in one["panels"]
        ],
    }


def _panel_title(metric: str) -> str:
    return "seconds" if metric == "seconds" else metric_title(metric)


def _figure(name: str, caption: str) -> dict[str, str]:
    return {"name": name, "caption": caption}


def _data_uri(picture: bytes) -> str:
    """A picture within a page; as an image of its own its ids cannot meet those of others."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


class _Raw(str):
    """A text that is Markdown already."""


def _as_markdown(value: Any) -> Any:
    """Texts as they are read, without any mark that Markdown or HTML would take for its own."""
    if isinstance(value, str) and not isinstance(value, _Raw):
        return re.sub(r"([\\`*_\[\]<>#|~&$])", r"\\\1", re.sub(r"\s+", " ", value))
    return value
