"""tune."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.baselines.algorithm_registry import title
from nearlabel.cli.measuring import Measuring, metric_cell, metric_heads, wrote
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
from nearlabel.cli.options.preparation import usual_distance
from nearlabel.cli.options.reading import part_of
from nearlabel.cli.output import Block, Paragraph, Table, check_target, counted, steps

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset


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
    check_figure(figure, data)
    items = measuring.load(data, algorithm)
    if part is None:
        own = items.train is not None and measuring.split != "official"
        part = "train" if own else "all"
    items = part_of(items, part)
    from nearlabel.experiments.candidates import LEAST_ROWS_A_NEIGHBOR
    from nearlabel.metrics import METRICS

    names: list[str] = list(dict.fromkeys(algorithm))
    ks = k or range(1, max(2, min(51, len(items) // LEAST_ROWS_A_NEIGHBOR + 1)))
    usual = usual_distance(items)
    distances = list(dict.fromkeys(distance or (usual,)))
    shared = measuring.parameters()
    candidates = [
        {"algorithm": name, "distance": metric, "parameters": dict(zip(own, values, strict=True))}
        | {"k": count}
        for name, own in grid_of(grid, names).items()
        for metric, *values in product(distances, *own.values())
        for count in ks
    ]
    models = [
        estimator(
            each["algorithm"],
            each["k"],
            {**shared, "metric": each["distance"]},
            each["parameters"],
            "--grid",
        )
        for each in candidates
    ]
    kind, parts = measuring.parts(items, "loo", own=False)
    wanted = list(measuring.metric or ("ranking_loss",))
    means, scales = _tried(items, parts, models, wanted, measuring)
    records = [{**each, **of_each} for each, of_each in zip(candidates, means, strict=True)]
    first = wanted[0]
    sign = 1 if METRICS[first].loss else -1
    # Best first; of equal ones that of fewer neighbors, then the first.
    ranked = sorted(
        records, key=lambda each: (math.isnan(each[first]), sign * each[first], each["k"])
    )
    best = ranked[0]
    setting = measuring.setting(data, items, kind, parts, {"part": part}, scales, distances[0])
    if figure is not None:
        from nearlabel.experiments.reporting.drawing import save
        from nearlabel.experiments.reporting.figures import tuning_curve

        save(tuning_curve(_curves(ranked, first), first, title=f"{data}, {kind}"), figure)
    options = {
        "--algorithm": best["algorithm"],
        "--k": best["k"],
        "--distance": None if best["distance"] == usual else best["distance"],
        "--part": None if part == "all" else part,
    }
    command = measuring.fit_command(data, options, best["parameters"])

    def text() -> Iterator[Block]:
        if kind == "official":
            yield Paragraph(
                "the test items choose here: do not report the best score as a result\n"
            )
        rows = []
        for name in names:
            each = next(record for record in ranked if record["algorithm"] == name)
            chosen = [("k", each["k"]), *each["parameters"].items()]
            settings = [f"{name} {value}" for name, value in chosen]
            settings += [each["distance"]] if len(distances) > 1 else []
            rows.append((title(name), ", ".join(settings), *(metric_cell(each[m]) for m in wanted)))
        yield Table(("", "best", *metric_heads(wanted)), rows)
        yield from wrote(measuring.output, figure)
        yield f"to fit the best:\n{command}"

    which = {"train": "the training items", "test": "the test items", "all": "all"}[part]
    graphs = "one graph" if len(distances) == 1 else f"{len(distances)} graphs, one per distance"
    tried = f"{counted(len(candidates), 'candidate')}{measuring.searching.title()}, {graphs}"
    results = {"metric": first, "best": best, "fit_command": command, "results": records}
    measuring.report(setting, records, results, f"items: {which}; {tried}", text())


def _tried(
    items: Dataset, parts: list[Any], models: list[Any], wanted: list[str], measuring: Measuring
) -> tuple[list[dict[str, float]], list[str]]:
    """The means of the metrics of each candidate, and the chosen scales."""
    from nearlabel.experiments.candidates import try_candidates
    from nearlabel.metrics import METRICS, scorer

    how = {"convention": measuring.convention, "at": measuring.at}
    scorers = {name: scorer(name, **how) for name in wanted}
    with steps("tuning") as progress:
        preparing = measuring.preparation.of(items)
        trial = try_candidates(
            items.X, items.Y, parts, models, scorers, preparing=preparing, progress=progress
        )
    signs = {name: -1 if METRICS[name].loss else 1 for name in wanted}
    means = {name: trial.defined(name).mean(axis=1) * signs[name] + 0.0 for name in wanted}
    by_model = zip(*(means[name].tolist() for name in wanted), strict=True)
    return [dict(zip(wanted, values, strict=True)) for values in by_model], trial.scales


def _curves(ranked: list[Tree], metric: str) -> dict[str, list[tuple[int, float]]]:
    """For each algorithm the metric by rising k, with the best of the other parameters."""
    curves: dict[str, dict[int, float]] = {}
    for record in ranked:
        if not math.isnan(record[metric]):
            curve = curves.setdefault(title(record["algorithm"]), {})
            curve.setdefault(record["k"], record[metric])
    return {name: sorted(curve.items()) for name, curve in curves.items()}


def check_figure(path: str | None, data: str) -> None:
    """Refuse a figure that could not be written, before the work is done."""
    if path is None:
        return
    from nearlabel.experiments.reporting.drawing import check_figure_path, report_module

    check_target("--figure", str(check_figure_path(path, "--figure")), data)
    report_module("matplotlib")
