"""tune."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.measurement_options import Measuring, or_none, say_setting
from nearlabel.cli.method_options import TITLES, Algorithm, estimator, grid_of
from nearlabel.cli.options import (
    Data,
    Distance,
    Json,
    LabeledReading,
    Neighbors,
    Output,
    Part,
    Several,
    part_of,
)
from nearlabel.cli.output import (
    Steps,
    check_results,
    check_target,
    say,
    say_json,
    say_table,
    write_results,
)
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn
from nearlabel.cli.search_options import Searching
from nearlabel.cli.terminal_curve import legend, text_plot

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset

_READING, _SEARCHING, _MEASURING = LabeledReading(), Searching(), Measuring()


def tune(
    data: Data,
    *,
    algorithm: Annotated[tuple[Algorithm, ...], Several] = ("MLkNN",),
    k: Neighbors = (),
    grid: Annotated[tuple[str, ...], Several, Parameter(show_default=False)] = (),
    distance: Annotated[tuple[Distance, ...], Several] = ("euclidean",),
    part: Part | None = None,
    figure: str | None = None,
    output: Output = None,
    json: Json = False,
    searching: Searching = _SEARCHING,
    measuring: Measuring = _MEASURING,
    reading: LabeledReading = _READING,
) -> None:
    """Find the best k, and other parameters, on one neighbor graph.

    Each item is tried as if it were new, from its neighbors without itself. All values of all
    parameters read one graph; each distance has its own.

    Parameters
    ----------
    data
        Name of a data set, a file, or - for standard input.
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
    output
        Write a .csv, .tsv or .jsonl file, a candidate a row.
    json
        Print JSON.

    Examples
    --------
    nearlabel tune emotions --scale minmax
    nearlabel tune songs.csv --k 1-30 --metric average_precision --figure curve.png
    nearlabel tune yeast --algorithm MLkNN BRkNN LAMLkNN --grid n_clusters=2,5 --scale minmax
    nearlabel tune enron --distance euclidean cosine --split cv5
    """
    check_results(output, data)
    searching.check()
    measuring.check()
    if figure is not None:
        from nearlabel.experiments.reporting.figures import check_figure_path

        check_figure_path(figure)
        check_target("--figure", figure, data)
    items = reading.load(data)
    if not items.Y.shape[1]:
        raise ValueError(f"{data} has no labels")
    if part is None:
        own = items.train is not None and measuring.split != "official"
        part = "train" if own else "all"
    items = part_of(items, part)

    import_scikit_learn(*SCALING if measuring.scale != "none" else ())
    from nearlabel.experiments.candidates import LEAST_ROWS_A_NEIGHBOR
    from nearlabel.metrics import METRICS

    wanted = list(measuring.metric or ("ranking_loss",))
    decisive, loss = wanted[0], METRICS[wanted[0]].loss
    names: list[str] = list(dict.fromkeys(algorithm))
    ks = k or range(1, max(2, min(51, len(items) // LEAST_ROWS_A_NEIGHBOR + 1)))
    shared = {"random_state": measuring.seed, **searching.shared()}
    candidates = list(_candidates(names, ks, grid, distance, shared))
    kind, parts = measuring.parts(items, "loo", own=False)
    found, chosen = _tried(items, parts, candidates, wanted, measuring)
    told = measuring.told(data, items, kind, parts, {"part": part, **searching.told()})
    curves = {TITLES[name]: _curve(found, name, decisive, loss) for name in names}
    if output is not None:
        write_results(output, ({**told, **one} for one in found))
    if figure is not None:
        _draw(curves, decisive, f"{data}, {kind}", figure)
    if json:
        say_json({**told, "metric": decisive, "best": chosen(None), "results": found})
        return
    best = {name: chosen(name) for name in names}
    tried = f"{len(candidates)} candidates{searching.title()}"
    _say(told, tried, len(set(distance)), curves, best, wanted)
    for path in (output, figure):
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
    grids = grid_of(grid, names)
    for name in names:
        own = grids[name]
        for distance, *values in product(dict.fromkeys(distances), *own.values()):
            settings = dict(zip(own, values, strict=True))
            for k in ks:
                model = estimator(name, k, {**shared, "metric": distance}, settings)
                model.check_parameters()
                told = {"algorithm": name, "distance": distance, "parameters": settings, "k": k}
                yield told, model


def _tried(
    items: Dataset,
    parts: list[Any],
    candidates: list[tuple[dict[str, Any], Any]],
    wanted: list[str],
    measuring: Measuring,
) -> tuple[list[dict[str, Any]], Callable[[str | None], dict[str, Any]]]:
    """What is told of each candidate, with its metrics, and the best of an algorithm or of all."""
    from nearlabel.experiments.candidates import Candidate, best_place, try_candidates
    from nearlabel.metrics import METRICS, scorer

    options: dict[str, Any] = {"convention": measuring.convention, "at": measuring.at}
    scorers = {name: scorer(name, **options) for name in wanted}
    points = [Candidate(place, *one) for place, one in enumerate(candidates)]
    with Steps("tuning") as progress:
        trial = try_candidates(
            items.X, items.Y, parts, points, scorers, scale=measuring.scale, progress=progress
        )
    means = {name: trial.defined(name).mean(axis=1) for name in wanted}
    found = [
        {
            **told,
            **{
                name: or_none(means[name][place] * (-1 if METRICS[name].loss else 1) + 0.0)
                for name in wanted
            },
        }
        for place, (told, _) in enumerate(candidates)
    ]

    def best(name: str | None) -> dict[str, Any]:
        places = [i for i, one in enumerate(found) if name in (None, one["algorithm"])]
        models = [candidates[place][1] for place in places]
        return found[places[best_place(means[wanted[0]][places], models)]]

    return found, best


def _curve(
    found: list[dict[str, Any]], algorithm: str, metric: str, loss: bool
) -> list[tuple[int, float]]:
    """For each k the metric of an algorithm, by the best of its other parameters."""
    values: dict[int, list[float]] = {}
    for one in found:
        if one["algorithm"] == algorithm and one[metric] is not None:
            values.setdefault(one["k"], []).append(one[metric])
    return sorted((k, (min if loss else max)(of_k)) for k, of_k in values.items())


def _draw(curves: dict[str, list[tuple[int, float]]], metric: str, title: str, path: str) -> None:
    from nearlabel.experiments.reporting import figures

    columns = {
        name: ([k for k, _ in points], [value for _, value in points])
        for name, points in curves.items()
        if points
    }
    figures.save(figures.tuning_curve(columns, metric, title=title), path)


def _say(
    told: dict[str, Any],
    tried: str,
    graphs: int,
    curves: dict[str, list[tuple[int, float]]],
    best: dict[str, Any],
    wanted: list[str],
) -> None:
    from nearlabel.metrics import METRICS

    rows = {"train": "those to learn from", "test": "those to be tried on", "all": "all"}
    one = "one graph" if graphs == 1 else f"{graphs} graphs, one a distance"
    say_setting(told, f"items: {rows[told['part']]}; {tried}, {one}", "")
    if told["split"] == "official":
        say("the items to be tried on choose: do not report the best as a result\n")
    curves = {name: points for name, points in curves.items() if points}
    if curves:
        say(f"{wanted[0]} against k, * the best")
        for line in text_plot(curves, METRICS[wanted[0]].loss):
            say(line)
        if len(curves) > 1:
            say(" " * 11 + "   ".join(legend(list(curves))))
        say()
    heads = [f"{name} {'↓' if METRICS[name].loss else '↑'}" for name in wanted]
    table = [
        (
            TITLES[name],
            ", ".join(
                [f"k {one['k']}", *(f"{key} {v}" for key, v in one["parameters"].items())]
                + ([one["distance"]] if graphs > 1 else [])
            ),
            *("not defined" if one[metric] is None else f"{one[metric]:.4f}" for metric in wanted),
        )
        for name, one in best.items()
    ]
    say_table(("", "best", *heads), table)
