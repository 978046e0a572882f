"""compare."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.learning import TITLES, Algorithm, estimator
from nearlabel.cli.measuring import Measuring, or_none, say_setting, summary
from nearlabel.cli.options import (
    Data,
    Distance,
    Json,
    LabeledReading,
    Output,
    Several,
    Switch,
    Whole,
)
from nearlabel.cli.output import Steps, check_results, say, say_json, say_table, write_results
from nearlabel.cli.startup import SCALING, import_scikit_learn

_READING, _MEASURING = LabeledReading(), Measuring()
_METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
_COLUMNS_AT_ONCE = 5  # of metrics, in 80 columns


def compare(
    data: Data,
    *,
    algorithm: Annotated[tuple[Algorithm, ...], Several, Parameter(show_default=False)] = (),
    k: Whole = 10,
    thresholds: Switch = False,
    distance: Distance = "euclidean",
    jobs: Whole = 1,
    output: Output = None,
    json: Json = False,
    measuring: Measuring = _MEASURING,
    reading: LabeledReading = _READING,
) -> None:
    """Compare all algorithms on one neighbor graph.

    The neighbors are searched once for all of them.

    Parameters
    ----------
    data
        Name of a data set, a file, or - for standard input.
    algorithm
        Algorithms to compare; by default all.
    k
        Neighbors that vote.
    thresholds
        Learn one cut a label by leave-one-out F1, in each.
    distance
        Between items.
    jobs
        Threads; -1 for all cores.
    output
        Write a .csv, .tsv or .jsonl file, an algorithm and a part a row.
    json
        Print JSON.

    Examples
    --------
    nearlabel compare yeast --scale minmax
    nearlabel compare songs.csv --k 15 --thresholds --metric macro_f1 micro_f1
    nearlabel compare emotions --algorithm MLkNN PositivekNN --split cv10
    """
    from nearlabel.metrics.conventions import has_metric

    check_results(output, data)
    measuring.check()
    usual = [name for name in _METRICS if has_metric(measuring.convention, name)]
    wanted = list(measuring.metric or usual)
    items = reading.load(data)
    if not items.Y.shape[1]:
        raise ValueError(f"{data} has no labels")

    import_scikit_learn(*SCALING if measuring.scale != "none" else ())
    import sklearn.cluster  # noqa: F401  of LAML-kNN: so that no method pays for its import

    from nearlabel.experiments import evaluate_splits

    names: list[str] = list(dict.fromkeys(algorithm)) or list(TITLES)
    shared = {"metric": distance, "n_jobs": jobs, "random_state": measuring.seed}
    models = [estimator(name, k, shared, thresholds=thresholds) for name in names]
    kind, parts = measuring.parts(items, "holdout")
    with Steps("comparing") as progress:
        found = evaluate_splits(
            items, models, parts, refusals=True, progress=progress, **measuring.how()
        )
    how: dict[str, Any] = {"k": k, "thresholds": thresholds, "distance": distance}
    told = measuring.told(data, items, kind, parts, how)
    results = [_result(name, of_model, wanted) for name, of_model in zip(names, found, strict=True)]
    if output is not None:
        write_results(output, _records(told, names, found, wanted))
    if json:
        say_json({**told, "results": results})
        return
    cuts = ", a cut a label" if thresholds else ""
    spread = f"; means of {len(parts)} parts" if len(parts) > 1 else ""
    say_setting(told, f"{len(names)} algorithms, k = {k}{cuts}, {distance}", spread)
    _say(results, wanted)
    if output is not None:
        say(f"wrote {output}")


def _result(name: str, found: list[Any], wanted: list[str]) -> dict[str, Any]:
    refusal = next((one.refusal for one in found if one.refusal), None)
    told = {"metrics": {}, "std": None} if refusal else summary([o.metrics for o in found], wanted)
    seconds = None if refusal else round(sum(one.seconds for one in found), 3)
    return {"algorithm": name, **told, "seconds": seconds, "refusal": refusal}


def _records(told: dict[str, Any], names: list[str], found: Any, wanted: list[str]) -> Any:
    for name, of_model in zip(names, found, strict=True):
        for place, one in enumerate(of_model, 1):
            values = {metric: or_none(one.metrics.get(metric, float("nan"))) for metric in wanted}
            more = {"seconds": one.seconds, "refusal": one.refusal}
            yield {**told, "algorithm": name, "part": place, **values, **more}


def _say(results: list[dict[str, Any]], wanted: list[str]) -> None:
    from nearlabel.metrics import METRICS

    run = [one for one in results if not one["refusal"]]
    for start in range(0, len(wanted), _COLUMNS_AT_ONCE):
        some = wanted[start : start + _COLUMNS_AT_ONCE]
        best = {name: _best(run, name, METRICS[name].loss) for name in some}
        rows = [
            (
                TITLES[one["algorithm"]],
                *(_cell(one["metrics"][name], best[name]) for name in some),
                f"{one['seconds']:.3g}",
            )
            for one in run
        ]
        heads = [f"{_short(name)} {'↓' if METRICS[name].loss else '↑'}" for name in some]
        say_table(("", *heads, "s"), rows)
    say("* the best; s: processor seconds without the search, which is one for all")
    for one in results:
        if one["refusal"]:
            say(f"{TITLES[one['algorithm']]} was left out: {one['refusal']}")


def _short(name: str) -> str:
    """A name for the head of a column of a few characters."""
    short = {
        "average_precision": "av prec",
        "hamming_loss": "hamming",
        "one_error": "one err",
        "ranking_loss": "ranking",
    }
    return short.get(name, name.replace("_", " "))


def _best(results: list[dict[str, Any]], name: str, loss: bool) -> str | None:
    """The best value as it is printed."""
    values = [one["metrics"][name] for one in results if one["metrics"][name] is not None]
    return f"{(min if loss else max)(values):.4f}" if values else None


def _cell(value: float | None, best: str | None) -> str:
    if value is None:
        return "not defined"
    shown = f"{value:.4f}"
    return f"*{shown}" if shown == best else shown
