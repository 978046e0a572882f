"""tune."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from nearlabel.cli.measurements import metric_cell, metric_heads, or_none, say_setting
from nearlabel.cli.options import (
    Algorithm,
    Data,
    Distance,
    Neighbors,
    Part,
    Several,
    Texts,
)
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import estimator, grid_of
from nearlabel.cli.options.measuring import Measuring
from nearlabel.cli.options.reading import part_of
from nearlabel.cli.output import Steps, say, say_table
from nearlabel.cli.result_files import check_target
from nearlabel.cli.terminal_curve import legend, text_plot

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset

Curve = list[tuple[int, float]]  # k and the metric, by rising k
_MEASURING = Measuring()


def tune(
    data: Data,
    *,
    algorithm: Annotated[tuple[Algorithm, ...], Several] = ("MLkNN",),
    k: Neighbors = (),
    grid: Texts = (),
    distance: Annotated[tuple[Distance, ...], Several] = ("euclidean",),
    part: Part | None = None,
    figure: str | None = None,
    measuring: Measuring = _MEASURING,
) -> None:
    """Find the best k, and other parameters, on one neighbor graph.

    Each item is tried as if it were new, from its neighbors without itself. All values of all
    parameters read one graph; each distance has its own.

    Parameters
    ----------
    algorithm
        The methods to tune.
    k
        Neighbors to try, such as 5 10 20 or 1-50; by default 1-50, a quarter of the items at most.
    grid
        Values of other parameters, such as smoothing=0.5,1,2 or n_clusters=2,5,10.
    distance
        Between items; several are tried.
    part
        Items to tune on; by default those of the data set's own part to learn from, where it has
        one, so that the others stay unseen.
    figure
        Write the curve to a .png, .svg or .pdf file.

    Examples
    --------
    nearlabel tune emotions --scale minmax
    nearlabel tune songs.csv --k 1-30 --metric one_error --figure curve.png
    nearlabel tune yeast --algorithm MLkNN LAMLkNN --grid n_clusters=2,5
    nearlabel tune enron --distance euclidean cosine --split cv5
    """
    if figure is not None:
        from nearlabel.experiments.reporting.drawing import check_figure_path

        check_figure_path(figure)
        check_target("--figure", figure, data)
    items = measuring.load(data)
    if part is None:
        own = items.train is not None and measuring.split != "official"
        part = "train" if own else "all"
    items = part_of(items, part)
    from nearlabel.experiments.candidates import LEAST_ROWS_A_NEIGHBOR

    names: list[str] = list(dict.fromkeys(algorithm))
    ks = k or range(1, max(2, min(51, len(items) // LEAST_ROWS_A_NEIGHBOR + 1)))
    candidates = list(_candidates(names, ks, grid, distance, measuring.parameters()))
    kind, parts = measuring.parts(items, "loo", own=False)
    found = _Tried(items, parts, candidates, measuring)
    told = measuring.told(data, items, kind, parts, {"part": part})
    if figure is not None:
        _draw(found.curves(), found.wanted[0], f"{data}, {kind}", figure)
    results = {"metric": found.wanted[0], "best": found.best(names), "results": found.records}
    if not measuring.deliver(told, found.records, results):
        return
    graphs = len(set(distance))
    one = "one graph" if graphs == 1 else f"{graphs} graphs, one per distance"
    rows = {"train": "those to learn from", "test": "those to be tried on", "all": "all"}
    title = f"items: {rows[part]}; {len(candidates)} candidates{measuring.searching.title()}, {one}"
    say_setting(told, title, "")
    _say(found, names, official=kind == "official", distances=graphs > 1)
    for path in (measuring.output, figure):
        if path is not None:
            say(f"wrote {path}")


def _candidates(
    names: list[str],
    ks: Sequence[int],
    grid: Sequence[str],
    distances: Sequence[str],
    shared: dict[str, Any],
) -> Iterator[tuple[dict[str, Any], Any]]:
    """What is told of each candidate, and its model."""
    for name, own in grid_of(grid, names).items():
        for distance, *values in product(dict.fromkeys(distances), *own.values()):
            settings = dict(zip(own, values, strict=True))
            options = {key: f"--grid {key}" for key in settings}
            for k in ks:
                model = estimator(name, k, {**shared, "metric": distance}, settings, options)
                told = {"algorithm": name, "distance": distance, "parameters": settings, "k": k}
                yield told, model


class _Tried:
    """What is told of each candidate, with its metrics; the best of them, and curves over k."""

    def __init__(
        self,
        items: Dataset,
        parts: list[Any],
        candidates: list[tuple[dict[str, Any], Any]],
        measuring: Measuring,
    ) -> None:
        from nearlabel.experiments.candidates import try_candidates
        from nearlabel.metrics import METRICS, scorer

        self.wanted = list(measuring.metric or ("ranking_loss",))
        self.loss = METRICS[self.wanted[0]].loss
        options: dict[str, Any] = {"convention": measuring.convention, "at": measuring.at}
        scorers = {name: scorer(name, **options) for name in self.wanted}
        self._models = [model for _, model in candidates]
        how: dict[str, Any] = {"scale": measuring.scale}
        with Steps("tuning") as progress, naming(scale="--scale"):
            trial = try_candidates(
                items.X, items.Y, parts, self._models, scorers, progress=progress, **how
            )
        means = {name: trial.defined(name).mean(axis=1) for name in self.wanted}
        signs = {name: -1 if METRICS[name].loss else 1 for name in self.wanted}
        self._scores = means[self.wanted[0]]
        self.records = [
            {**told, **{name: or_none(means[name][at] * signs[name] + 0.0) for name in self.wanted}}
            for at, (told, _) in enumerate(candidates)
        ]

    def best(self, names: Sequence[str]) -> dict[str, Any]:
        """The best candidate of some algorithms."""
        from nearlabel.experiments.candidates import best_place

        places = [at for at, one in enumerate(self.records) if one["algorithm"] in names]
        models = [self._models[place] for place in places]
        return self.records[places[best_place(self._scores[places], models)]]

    def curves(self) -> dict[str, Curve]:
        """For each algorithm and k the first metric, by the best of the other parameters."""
        from nearlabel.methods.registry import title

        values: dict[str, dict[int, list[float]]] = {}
        for one in self.records:
            if one[self.wanted[0]] is not None:
                of_method = values.setdefault(title(one["algorithm"]), {})
                of_method.setdefault(one["k"], []).append(one[self.wanted[0]])
        best = min if self.loss else max
        return {
            name: sorted((k, best(of_k)) for k, of_k in by_k.items())
            for name, by_k in values.items()
        }


def _draw(curves: dict[str, Curve], metric: str, title: str, path: str) -> None:
    from nearlabel.experiments.reporting.drawing import save
    from nearlabel.experiments.reporting.figures import tuning_curve

    columns = {
        name: ([k for k, _ in points], [value for _, value in points])
        for name, points in curves.items()
    }
    save(tuning_curve(columns, metric, title=title), path)


def _say(found: _Tried, names: list[str], *, official: bool, distances: bool) -> None:
    from nearlabel.methods.registry import title

    if official:
        say("the items to be tried on choose: do not report the best as a result\n")
    curves = found.curves()
    if curves:
        say(f"{found.wanted[0]} against k, * the best")
        for line in text_plot(curves, found.loss):
            say(line)
        if len(curves) > 1:
            say(" " * 11 + "   ".join(legend(list(curves))))
        say()
    rows = []
    for name in names:
        best = found.best([name])
        settings = [f"k {best['k']}", *(f"{key} {v}" for key, v in best["parameters"].items())]
        settings += [best["distance"]] if distances else []
        cells = (metric_cell(best[metric]) for metric in found.wanted)
        rows.append((title(name), ", ".join(settings), *cells))
    say_table(("", "best", *metric_heads(found.wanted)), rows)
