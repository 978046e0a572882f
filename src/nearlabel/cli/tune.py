"""tune."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from nearlabel.cli.measurements import defined, metric_cell, metric_heads, say_setting
from nearlabel.cli.options import Algorithm, Data, Distance, Neighbors, Part, Several, Texts
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import estimator, grid_of
from nearlabel.cli.options.measuring import Measuring
from nearlabel.cli.options.reading import part_of
from nearlabel.cli.output import Steps, say, say_table
from nearlabel.cli.result_files import check_target
from nearlabel.cli.terminal_curve import legend, text_plot
from nearlabel.methods.registry import title

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset

Curve = list[tuple[int, float]]  # k and the metric, by rising k


def tune(
    data: Data,
    *,
    algorithm: Annotated[tuple[Algorithm, ...], Several] = ("MLkNN",),
    k: Neighbors = (),
    grid: Texts = (),
    distance: Annotated[tuple[Distance, ...], Several] = ("euclidean",),
    part: Part | None = None,
    figure: str | None = None,
    measuring: Measuring = Measuring(),
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
        from nearlabel.experiments.reporting import figures

        figures.check_figure_path(figure)
        check_target("--figure", figure, data)
    items = measuring.load(data)
    if part is None:
        own = items.train is not None and measuring.split != "official"
        part = "train" if own else "all"
    items = part_of(items, part)
    from nearlabel.experiments.candidates import LEAST_ROWS_A_NEIGHBOR
    from nearlabel.metrics import METRICS

    names: list[str] = list(dict.fromkeys(algorithm))
    ks = k or range(1, max(2, min(51, len(items) // LEAST_ROWS_A_NEIGHBOR + 1)))
    candidates = list(_candidates(names, ks, grid, distance, measuring.parameters()))
    kind, parts = measuring.parts(items, "loo", own=False)
    wanted = list(measuring.metric or ("ranking_loss",))
    first, loss = wanted[0], METRICS[wanted[0]].loss
    records = _tried(items, parts, candidates, wanted, measuring)
    best, curves = _best(records, first, loss=loss), _curves(records, first, loss=loss)
    told = measuring.told(data, items, kind, parts, {"part": part})
    if figure is not None:
        columns = {name: tuple(zip(*curve, strict=True)) for name, curve in curves.items()}
        figures.save(figures.tuning_curve(columns, first, title=f"{data}, {kind}"), figure)
    if not measuring.deliver(told, records, metric=first, best=best, results=records):
        return
    graphs = len(set(distance))
    searches = "one graph" if graphs == 1 else f"{graphs} graphs, one per distance"
    which = {"train": "those to learn from", "test": "those to be tried on", "all": "all"}
    tried = f"{len(candidates)} candidates{measuring.searching.title()}, {searches}"
    say_setting(told, f"items: {which[part]}; {tried}")
    if kind == "official":
        say("the items to be tried on choose: do not report the best as a result\n")
    if curves:
        say(f"{first} against k, * the best")
        for line in text_plot(curves, loss):
            say(line)
        if len(curves) > 1:
            say(" " * 11 + "   ".join(legend(list(curves))))
        say()
    rows = []
    for name in names:
        one = _best([one for one in records if one["algorithm"] == name], first, loss=loss)
        settings = [f"k {one['k']}", *(f"{key} {v}" for key, v in one["parameters"].items())]
        settings += [one["distance"]] if graphs > 1 else []
        rows.append((title(name), ", ".join(settings), *(metric_cell(one[m]) for m in wanted)))
    say_table(("", "best", *metric_heads(wanted)), rows)
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


def _tried(
    items: Dataset,
    parts: list[Any],
    candidates: list[tuple[dict[str, Any], Any]],
    wanted: list[str],
    measuring: Measuring,
) -> list[dict[str, Any]]:
    """What is told of each candidate, with the means of its metrics."""
    from nearlabel.experiments.candidates import Candidate, try_candidates
    from nearlabel.metrics import METRICS, scorer

    options: dict[str, Any] = {"convention": measuring.convention, "at": measuring.at}
    scorers = {name: scorer(name, **options) for name in wanted}
    points = [Candidate(place, *one) for place, one in enumerate(candidates)]
    with Steps("tuning") as progress, naming(scale="--scale"):
        trial = try_candidates(
            items.X, items.Y, parts, points, scorers, scale=measuring.scale, progress=progress
        )
    signs = {name: -1 if METRICS[name].loss else 1 for name in wanted}
    means = {name: trial.defined(name).mean(axis=1) * signs[name] + 0.0 for name in wanted}
    return [
        {**told, **defined({name: means[name][place] for name in wanted}, wanted)}
        for place, (told, _) in enumerate(candidates)
    ]


def _best(records: list[dict[str, Any]], metric: str, *, loss: bool) -> dict[str, Any]:
    """The best candidate; of equal ones that of fewer neighbors, then the first."""

    def cost(one: dict[str, Any]) -> tuple[float, int]:
        value = math.inf if one[metric] is None else one[metric] if loss else -one[metric]
        return value, one["k"]

    return min(records, key=cost)


def _curves(records: list[dict[str, Any]], metric: str, *, loss: bool) -> dict[str, Curve]:
    """For each algorithm and k the metric, by the best of the other parameters."""
    curves: dict[str, dict[int, float]] = {}
    for one in records:
        if one[metric] is not None:
            curve = curves.setdefault(title(one["algorithm"]), {})
            values = (one[metric], curve.get(one["k"], one[metric]))
            curve[one["k"]] = min(values) if loss else max(values)
    return {name: sorted(curve.items()) for name, curve in curves.items()}
