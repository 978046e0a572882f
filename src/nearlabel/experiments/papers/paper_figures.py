"""The papers' figures: how each is measured, and the points that are stored once measured.

The texts of the papers have lost the values of their figures, so shapes are what can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nearlabel.experiments.papers import printed_tables
from nearlabel.experiments.papers.experiment_runs import PreparedData, UnusableDataError
from nearlabel.experiments.papers.figure_points import PLOTS, Plot, Settings
from nearlabel.experiments.papers.printed_tables import paper_id, published_toml
from nearlabel.experiments.papers.result_store import ResultStore, stored_or_measured
from nearlabel.experiments.papers.table_setups import DataSetup, experiment, setup_of
from nearlabel.experiments.papers.verdicts import Reason
from nearlabel.search import Progress


@dataclass(frozen=True, eq=False)
class PaperFigure:
    """A figure that can be measured, on one data set; see ``figures.toml``.

    `paper` and `number` are empty if it is not from a paper; `label` is short: it stands above a
    picture, and names the data set; `kind` is a name of `PLOTS`; `settings` are what else decides
    its points beside the data and the code, as JSON can hold it.
    """

    name: str
    paper: str
    number: str
    title: str
    label: str
    caption: str
    dataset: str
    data: DataSetup
    kind: str
    settings: Settings

    @property
    def heading(self) -> str:
        """Its paper and number, where it has one, and its title."""
        if not self.paper:
            return self.title
        return f"{printed_tables.papers()[self.paper].title}, Fig. {self.number}: {self.title}"

    def all_settings(self) -> dict[str, Any]:
        """All that decides its points beside the data and the code."""
        return {**self.settings, **{key: one for key, one in asdict(self.data).items() if one}}


@dataclass(frozen=True)
class MeasuredFigure:
    """A figure and its points, or the reason why there are none."""

    figure: PaperFigure
    plot: Plot | None = None
    reason: str = ""


@cache
def paper_figures() -> Mapping[str, PaperFigure]:
    """All figures by name."""
    entries = published_toml("figures.toml")["figures"]
    return {one.name: one for entry in entries for one in _figures(entry)}


def _figures(entry: Mapping[str, Any]) -> Iterator[PaperFigure]:
    """A figure for each data set of an entry."""
    for dataset in entry.get("k") or entry["datasets"]:
        settings = dict(entry["settings"])
        if "k" in entry:
            settings["k"] = entry["k"][dataset]
        if "as_in" in entry:
            setup = setup_of(entry["paper"], entry["as_in"]["table"])
            data = experiment(setup, dataset, entry["as_in"]["algorithm"]).data
            settings["convention"] = setup.convention
        else:
            data = DataSetup(scale=entry["scale"], split=entry.get("split"))
        words = {"dataset": dataset, "k": settings.get("k")}
        texts: dict[str, Any] = {
            key: entry.get(key, "").format(**words)
            for key in ("name", "paper", "number", "title", "label", "caption")
        }
        yield PaperFigure(
            **texts, dataset=dataset, data=data, kind=entry["plot"], settings=settings
        )


def measured_figures(
    papers: Collection[str] = (),
    *,
    results: str | Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> list[MeasuredFigure]:
    """Measure the figures of some papers that have no result yet, and read the others.

    By default those of all papers, and those of none. The options are those of `reproduce`.
    """
    chosen = set(map(paper_id, papers))
    wanted = [one for one in paper_figures().values() if not chosen or one.paper in chosen]
    outcomes, _ = stored_or_measured(
        wanted, _points, ResultStore(results), again=again, progress=progress
    )
    return [
        MeasuredFigure(figure, reason=found.text)
        if isinstance(found := outcomes[figure], Reason)
        else MeasuredFigure(figure, Plot.from_json(found))
        for figure in wanted
    ]


def _points(figure: PaperFigure, ready: PreparedData, tell: Progress | None) -> dict[str, Any]:
    plot = PLOTS[figure.kind](ready, figure.settings, tell)
    if not all(panel.has_points for panel in plot.panels):
        raise UnusableDataError("these data have too few rows, or no labels to measure by")
    return asdict(plot)
