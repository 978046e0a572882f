"""compare."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.measurement_options import Measuring, or_none, say_setting, summary
from nearlabel.cli.method_options import TITLES, Algorithm, estimator
from nearlabel.cli.options import (
    Data,
    Distance,
    Json,
    LabeledReading,
    Neighbors,
    Output,
    Several,
    Switch,
)
from nearlabel.cli.output import Steps, check_results, say, say_json, say_table, write_results
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn
from nearlabel.cli.search_options import Searching

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset

_READING, _SEARCHING, _MEASURING = LabeledReading(), Searching(), Measuring()
_METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
_COLUMNS_AT_ONCE = 5  # of metrics, in 80 columns


def compare(
    data: Data,
    *,
    algorithm: Annotated[tuple[Algorithm, ...], Several, Parameter(show_default=False)] = (),
    k: Neighbors = (),
    thresholds: Switch = False,
    distance: Annotated[tuple[Distance, ...], Several, Parameter(show_default=False)] = (),
    tune: Switch = False,
    output: Output = None,
    json: Json = False,
    searching: Searching = _SEARCHING,
    measuring: Measuring = _MEASURING,
    reading: LabeledReading = _READING,
) -> None:
    """Compare all algorithms on one neighbor graph.

    The neighbors are searched once for all of them. With --tune each has its best k, distance and
    other parameters, found by leave-one-out on the items to learn from alone: one graph a distance.

    Parameters
    ----------
    data
        Name of a data set, a file, or - for standard input.
    algorithm
        Algorithms to compare; by default all.
    k
        Neighbors that vote, by default 10; with --tune those to try, such as 1-30.
    thresholds
        Learn one cut a label by leave-one-out F1, in each.
    distance
        Between items, by default euclidean; with --tune those to try, by default cosine, too.
    tune
        Choose the parameters of each by the first metric of --metric, by default ranking_loss.
    output
        Write a .csv, .tsv or .jsonl file, an algorithm and a part a row.
    json
        Print JSON.

    Examples
    --------
    nearlabel compare yeast --scale minmax
    nearlabel compare songs.csv --k 15 --thresholds --metric macro_f1 micro_f1
    nearlabel compare emotions --algorithm MLkNN PositivekNN --split cv10
    nearlabel compare emotions --tune --scale minmax
    """
    from nearlabel.metrics.conventions import has_metric

    check_results(output, data)
    if not tune and (len(k) > 1 or len(distance) > 1):
        raise ValueError("--k and --distance take one value each without --tune")
    if tune and thresholds:
        raise ValueError("--thresholds: not together with --tune")
    searching.check()
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
    shared = {"random_state": measuring.seed, **searching.shared()}
    kind, parts = measuring.parts(items, "holdout")
    with Steps("comparing") as progress:
        if tune:
            decisive = measuring.metric[0] if measuring.metric else "ranking_loss"
            how: dict[str, Any] = {"tuned": decisive}
            found = _tuned(items, names, k, distance, shared, parts, decisive, measuring, progress)
        else:
            how = {"k": k[0] if k else 10, "distance": distance[0] if distance else "euclidean"}
            shared["metric"] = how["distance"]
            models = [estimator(name, how["k"], shared, thresholds=thresholds) for name in names]
            each = evaluate_splits(
                items, models, parts, refusals=True, progress=progress, **measuring.how()
            )
            found = [[(one, None) for one in of_model] for of_model in each]
    told = measuring.told(
        data, items, kind, parts, {**how, "thresholds": thresholds, **searching.told()}
    )
    results = [_result(name, of_model, wanted) for name, of_model in zip(names, found, strict=True)]
    if output is not None:
        write_results(output, _records(told, names, found, wanted))
    if json:
        say_json({**told, "results": results})
        return
    if tune:
        title = f"{len(names)} algorithms, tuned by {decisive} on the items to learn from"
    else:
        cuts = ", a cut a label" if thresholds else ""
        title = f"{len(names)} algorithms, k = {how['k']}{cuts}, {how['distance']}"
    spread = f"; means of {len(parts)} parts" if len(parts) > 1 else ""
    say_setting(told, title + searching.title(), spread)
    searched = "a distance" if tune else "for all"
    _say(results, wanted, f"processor seconds without the searches, one {searched}")
    if tune:
        _say_choices(results, len(parts))
    if output is not None:
        say(f"wrote {output}")


def _tuned(
    items: Dataset,
    names: list[str],
    neighbors: tuple[int, ...],
    distances: tuple[str, ...],
    shared: dict[str, Any],
    parts: list[Any],
    decisive: str,
    measuring: Measuring,
    progress: Any,
) -> list[list[tuple[Any, dict[str, Any] | None]]]:
    """For each algorithm and part the result, and the parameters that were chosen there."""
    from nearlabel.experiments.selection import (
        select_and_evaluate,
        tried_parameters,
        usual_candidates,
    )
    from nearlabel.metrics import scorer

    metrics = distances or ("euclidean", "cosine")
    n = min(len(part.train) for part in parts)
    candidates = {
        name: usual_candidates(name, n, neighbors or None, metrics, **shared) for name in names
    }
    for model in (model for models in candidates.values() for model in models):
        model.check_parameters()
    scoring = scorer(decisive, convention=measuring.convention, at=measuring.at)
    found = select_and_evaluate(
        items, candidates, parts, scoring, progress=progress, **measuring.how()
    )
    return [
        [
            (one.result, None if one.model is None else tried_parameters(name, one.model))
            for one in found[name]
        ]
        for name in names
    ]


def _result(name: str, found: list[Any], wanted: list[str]) -> dict[str, Any]:
    results = [one for one, _ in found]
    refusal = next((one.refusal for one in results if one.refusal), None)
    told = (
        {"metrics": {}, "std": None}
        if refusal
        else summary([one.metrics for one in results], wanted)
    )
    seconds = None if refusal else round(sum(one.seconds for one in results), 3)
    chosen = [choice for _, choice in found if choice is not None]
    return {
        "algorithm": name,
        **told,
        "seconds": seconds,
        "refusal": refusal,
        **({"chosen": chosen} if chosen else {}),
    }


def _records(told: dict[str, Any], names: list[str], found: Any, wanted: list[str]) -> Any:
    for name, of_model in zip(names, found, strict=True):
        for place, (one, chosen) in enumerate(of_model, 1):
            values = {metric: or_none(one.metrics.get(metric, float("nan"))) for metric in wanted}
            more = {"seconds": one.seconds, "refusal": one.refusal}
            if "tuned" in told:
                more["chosen"] = "" if chosen is None else _shown(chosen)
            yield {**told, "algorithm": name, "part": place, **values, **more}


def _say_choices(results: list[dict[str, Any]], parts: int) -> None:
    """What was chosen for each algorithm, most often first where there are several parts."""
    say("chosen on the items to learn from" + (", in how many parts" if parts > 1 else "") + ":")
    for one in results:
        counted = Counter(_shown(choice) for choice in one.get("chosen", ()))
        shown = [
            f"{choice} ({times})" if parts > 1 else choice
            for choice, times in counted.most_common(3)
        ]
        if shown:
            more = ", …" if len(counted) > 3 else ""
            say(f"  {TITLES[one['algorithm']]}: {'; '.join(shown)}{more}")


def _shown(choice: dict[str, Any]) -> str:
    return ", ".join(
        f"{'k' if name in ('n_neighbors', 'per_class') else name} {value}"
        for name, value in choice.items()
    )


def _say(results: list[dict[str, Any]], wanted: list[str], seconds: str) -> None:
    from nearlabel.experiments.reporting.names import metric_head
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
        heads = [metric_head(name, short=True) for name in some]
        say_table(("", *heads, "s"), rows)
    say(f"* the best; s: {seconds}")
    for one in results:
        if one["refusal"]:
            say(f"{TITLES[one['algorithm']]} was left out: {one['refusal']}")


def _best(results: list[dict[str, Any]], name: str, loss: bool) -> str | None:
    """The best value as it is printed."""
    values = [one["metrics"][name] for one in results if one["metrics"][name] is not None]
    return f"{(min if loss else max)(values):.4f}" if values else None


def _cell(value: float | None, best: str | None) -> str:
    if value is None:
        return "not defined"
    shown = f"{value:.4f}"
    return f"*{shown}" if shown == best else shown
