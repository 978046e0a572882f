"""The papers' figures: how each is measured, and the points that are stored once measured.

The texts of the papers have lost the values of their figures, so shapes are what can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nearlabel.common.validation import UnsuitableDataError
from nearlabel.experiments.papers.experiment_runs import PreparedData
from nearlabel.experiments.papers.figure_points import PLOTS, Plot
from nearlabel.experiments.papers.measured_works import Result, measured_works, paper_results
from nearlabel.experiments.papers.printed_tables import paper_id, papers, published_toml
from nearlabel.experiments.papers.table_setups import (
    DataSetup,
    Settings,
    Work,
    experiment,
    setup_of,
)
from nearlabel.experiments.papers.verdicts import Reason
from nearlabel.search import Progress


@dataclass(frozen=True, eq=False)
class PaperFigure(Work):
    """A figure that can be measured; see ``figures.toml``.

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
    kind: str
    settings: Settings

    @property
    def heading(self) -> str:
        """Its paper and number, where it has one, and its title."""
        if not self.paper:
            return self.title
        return f"{papers()[self.paper].title}, Fig. {self.number}: {self.title}"

    def all_settings(self) -> Settings:
        """All that decides its points beside the data and the code."""
        of_data = {key: value for key, value in asdict(self.data).items() if value}
        return {**self.settings, **of_data}


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
    return {figure.name: figure for entry in entries for figure in _figures(entry)}


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
        texts = {
            key: entry.get(key, "").format(dataset=dataset, k=settings.get("k"))
            for key in ("name", "paper", "number", "title", "label", "caption")
        }
        yield PaperFigure(dataset, data, **texts, kind=entry["plot"], settings=settings)


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
    figures = [
        figure for figure in paper_figures().values() if not chosen or figure.paper in chosen
    ]
    outcomes, _ = measured_works(
        figures, _points, paper_results(results), again=again, progress=progress
    )
    return [
        MeasuredFigure(figure, reason=outcome.text)
        if isinstance(outcome := outcomes[figure], Reason)
        else MeasuredFigure(figure, Plot.from_json(outcome))
        for figure in figures
    ]


def _points(figure: PaperFigure, ready: PreparedData, progress: Progress | None) -> Result:
    plot = PLOTS[figure.kind](ready, progress, **figure.settings)
    if not all(panel.has_points for panel in plot.panels):
        raise UnsuitableDataError("these data have too few rows, or no labels to measure by")
    return asdict(plot)
