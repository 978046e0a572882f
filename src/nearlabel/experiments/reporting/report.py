"""Reports: one page in HTML that needs nothing beside it, and one in Markdown with its figures."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from nearlabel.common.files import replacing
from nearlabel.common.versions import package_versions
from nearlabel.experiments.papers import published
from nearlabel.experiments.papers.comparisons import Comparison, Source, comparisons
from nearlabel.experiments.papers.plans import Experiment, tables_in_words
from nearlabel.experiments.papers.series import all_series
from nearlabel.experiments.reporting.extras import report_module
from nearlabel.experiments.reporting.figures import (
    critical_difference,
    encoded,
    of_series,
)
from nearlabel.experiments.reporting.names import metric_title, paper_title
from nearlabel.experiments.reporting.significance import comparison_views, order_views
from nearlabel.experiments.reporting.tables import (
    DOUBT,
    DOUBT_MEANING,
    MARKS,
    MEANINGS,
    setting_in_words,
    table_blocks,
    verdict_counts,
)
from nearlabel.experiments.significance.mean_ranks import Nemenyi
from nearlabel.metrics import METRICS

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
        Made where it is not there. Files of an earlier report are replaced, each at once; pictures
        of it that this one does not have are removed, and nothing else is.
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
        "doubt": {"mark": DOUBT, "told": DOUBT_MEANING},
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
    for old in _picture_names() - pictures.keys():
        (target / _FIGURES / f"{old}.svg").unlink(missing_ok=True)
    return [*pages, *written]


def _picture_names() -> set[str]:
    """The names of all pictures that a report may have."""
    sources: tuple[Source, ...] = ("published", "ours")
    ranks = (
        _rank_name(paper, metric, source)
        for paper in published.papers()
        for metric in METRICS
        for source in sources
    )
    series = (f"{name}_{metric}" for name in all_series() for metric in (*METRICS, "seconds"))
    return {*ranks, *series}


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


def _rank_name(paper: str, metric: str, source: Source) -> str:
    return f"ranks_{paper}_{metric}_{source}"


def _drawn(compared: Sequence[Comparison]) -> dict[str, tuple[Comparison, Nemenyi]]:
    """Comparisons in which algorithms differ, by the names of pictures: ours, if they are there."""
    ours = {(one.paper, one.tables) for one in compared if one.source == "ours"}
    return {
        _rank_name(one.paper, one.metric, one.source): (one, one.nemenyi)
        for one in compared
        if one.nemenyi is not None and (one.source == "ours" or (one.paper, one.tables) not in ours)
    }


def _rank_pictures(compared: Sequence[Comparison]) -> dict[str, bytes]:
    return {
        name: encoded(critical_difference(ranks, title=metric_title(one.metric)), ".svg")
        for name, (one, ranks) in _drawn(compared).items()
    }


def _rank_captions(compared: Sequence[Comparison]) -> dict[str, str]:
    return {
        name: f"{paper_title(one.paper)}, {tables_in_words(one.tables)}: mean ranks by "
        f"{metric_title(one.metric)} over {len(one.datasets)} data sets, "
        f"{'our' if one.source == 'ours' else 'published'} numbers"
        for name, (one, _) in _drawn(compared).items()
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
