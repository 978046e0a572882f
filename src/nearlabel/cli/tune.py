"""tune."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.baselines.algorithm_registry import title
from nearlabel.cli.measuring import Measuring, defined, metric_cell, metric_heads
from nearlabel.cli.options import (
    DataOrPictures,
    Distance,
    Methods,
    Neighbors,
    Part,
    Several,
    Texts,
)
from nearlabel.cli.options.learning import estimator, grid_of
from nearlabel.cli.options.preparation import naming_preparation
from nearlabel.cli.options.reading import part_of
from nearlabel.cli.output import check_target, counted, say, say_folded, say_table, steps

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

Curve = list[tuple[int, float]]  # k and the metric, by rising k


def tune(
    data: DataOrPictures,
    *,
    algorithm: Methods = ("MLkNN",),
    k: Neighbors = (),
    grid: Annotated[Texts, Parameter(metavar="NAME=VALUES...")] = (),
    distance: Annotated[tuple[Distance, ...], Several, Parameter(show_default=False)] = (),
    part: Part | None = None,
    figure: Annotated[str | None, Parameter(metavar="FILE")] = None,
    measuring: Measuring = Measuring(),
) -> None:
    """Find the best k and other parameters on one neighbor graph.

    Candidates are scored by leave-one-out, or as given by --split. They share one
    graph per distance.

    Parameters
    ----------
    algorithm
        The algorithms to tune.
    k
        Values to try, such as 5 10 20 or 1-50; by default 1-50, but at most a quarter of the items.
    grid
        Values of other parameters to try, such as smoothing=0.5,1,2 or n_clusters=2,5,10.
    distance
        Distances to try; by default euclidean, or cosine for network features of pictures.
    part
        Items to tune on; by default the training set of the data set, if it has one, so that the
        test set is not used.
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
        from nearlabel.experiments.reporting.drawing import (
            check_figure_path,
            report_module,
            save,
        )
        from nearlabel.experiments.reporting.figures import tuning_curve

        check_figure_path(figure, "--figure")
        report_module("matplotlib")
        check_target("--figure", figure, data)
    items = measuring.load(data, algorithm)
    if part is None:
        own = items.train is not None and measuring.split != "official"
        part = "train" if own else "all"
    items = part_of(items, part)
    from nearlabel.cli.picture_items import usual_distance
    from nearlabel.experiments.candidates import LEAST_ROWS_A_NEIGHBOR
    from nearlabel.metrics import METRICS

    names: list[str] = list(dict.fromkeys(algorithm))
    ks = k or range(1, max(2, min(51, len(items) // LEAST_ROWS_A_NEIGHBOR + 1)))
    usual = usual_distance(items)
    distance = distance or (usual,)
    candidates = list(_candidates(names, ks, grid, distance, measuring.parameters()))
    kind, parts = measuring.parts(items, "loo", own=False)
    wanted = list(measuring.metric or ("ranking_loss",))
    first, loss = wanted[0], METRICS[wanted[0]].loss
    records, scales = _tried(items, parts, candidates, wanted, measuring)
    # Best first; of equal ones that of fewer neighbors, then the first.
    ranked = sorted(records, key=lambda record: (_cost(record[first], loss), record["k"]))
    setting = measuring.setting(data, items, kind, parts, {"part": part}, scales, distance[0])
    if figure is not None:
        curves = _curves(ranked, names, first)
        save(tuning_curve(curves, first, title=f"{data}, {kind}"), figure)
    graphs = len(set(distance))
    searches = "one graph" if graphs == 1 else f"{graphs} graphs, one per distance"
    which = {"train": "the training items", "test": "the test items", "all": "all"}
    tried = f"{counted(len(candidates), 'candidate')}{measuring.searching.title()}, {searches}"
    best = ranked[0]
    options = {"--algorithm": best["algorithm"], "--k": best["k"], "--distance": best["distance"]}
    command = measuring.fit_command(data, {**options, "--part": part}, best["parameters"], usual)
    results = {"metric": first, "best": best, "fit_command": command, "results": records}
    if not measuring.deliver(setting, records, results, f"items: {which[part]}; {tried}"):
        return
    if kind == "official":
        say_folded("the test items choose here: do not report the best score as a result")
        say()
    rows = []
    for name in names:
        record = next(record for record in ranked if record["algorithm"] == name)
        settings = [f"k {record['k']}", *(f"{key} {v}" for key, v in record["parameters"].items())]
        settings += [record["distance"]] if graphs > 1 else []
        rows.append((title(name), ", ".join(settings), *(metric_cell(record[m]) for m in wanted)))
    say_table(("", "best", *metric_heads(wanted)), rows)
    for path in (measuring.output, figure):
        if path is not None:
            say(f"wrote {path}")
    say(f"to fit the best:\n{command}")


def _candidates(
    names: list[str],
    ks: Sequence[int],
    grid: Sequence[str],
    distances: Sequence[str],
    shared: Tree,
) -> Iterator[tuple[Tree, Any]]:
    """All combinations of values: a record of each, and its model."""
    for name, own in grid_of(grid, names).items():
        for distance, *values in product(dict.fromkeys(distances), *own.values()):
            settings = dict(zip(own, values, strict=True))
            options = {key: f"--grid {key}" for key in settings}
            for k in ks:
                model = estimator(name, k, {**shared, "metric": distance}, settings, options)
                record = {"algorithm": name, "distance": distance, "parameters": settings, "k": k}
                yield record, model


def _tried(
    items: Dataset,
    parts: list[Any],
    candidates: list[tuple[Tree, Any]],
    wanted: list[str],
    measuring: Measuring,
) -> tuple[list[Tree], list[str]]:
    """A record of each candidate with the means of its metrics, and the chosen scales."""
    from nearlabel.experiments.candidates import try_candidates
    from nearlabel.metrics import METRICS, scorer

    scorers = {
        name: scorer(name, convention=measuring.convention, at=measuring.at) for name in wanted
    }
    how: Tree = {"preparing": measuring.preparation.of(items)}
    with steps("tuning") as progress, naming_preparation():
        models = [model for _, model in candidates]
        trial = try_candidates(items.X, items.Y, parts, models, scorers, progress=progress, **how)
    signs = {name: -1 if METRICS[name].loss else 1 for name in wanted}
    means = {name: trial.defined(name).mean(axis=1) * signs[name] + 0.0 for name in wanted}
    records = [
        {**record, **defined({name: means[name][place] for name in wanted}, wanted)}
        for place, (record, _) in enumerate(candidates)
    ]
    return records, trial.scales


def _cost(value: float | None, loss: bool) -> float:
    return math.inf if value is None else value if loss else -value


def _curves(ranked: list[Tree], names: list[str], metric: str) -> dict[str, Curve]:
    """For each algorithm and k, the metric with the best of the other parameters."""
    curves: dict[str, dict[int, float]] = {title(name): {} for name in names}
    for record in ranked:
        if record[metric] is not None:
            curves[title(record["algorithm"])].setdefault(record["k"], record[metric])
    return {name: sorted(curve.items()) for name, curve in curves.items() if curve}
