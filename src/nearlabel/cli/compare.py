"""compare."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.measurements import metric_cell, or_none, say_setting, summary
from nearlabel.cli.options import Algorithm, Data, Distance, Neighbors, Several, Switch
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import estimator, with_thresholds
from nearlabel.cli.options.measuring import Measuring
from nearlabel.cli.output import Steps, say, say_table
from nearlabel.methods.registry import METHODS

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import SplitResult

_MEASURING = Measuring()
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
    measuring: Measuring = _MEASURING,
) -> None:
    """Compare all algorithms on one neighbor graph.

    The neighbors are searched once for all of them. With --tune each has its best k, distance and
    other parameters, found by leave-one-out on the items to learn from alone: one graph a distance.

    Parameters
    ----------
    algorithm
        Algorithms to compare; by default all.
    k
        Neighbors that vote, by default 10; with --tune those to try, such as 1-30.
    thresholds
        Learn one threshold per label by leave-one-out F1, in each.
    distance
        Between items, by default euclidean; with --tune those to try, by default cosine, too.
    tune
        Choose the parameters of each by the first metric of --metric, by default ranking_loss.

    Examples
    --------
    nearlabel compare yeast --scale minmax
    nearlabel compare songs.csv --k 15 --thresholds --metric macro_f1 micro_f1
    nearlabel compare emotions --algorithm MLkNN PositivekNN --split cv10
    nearlabel compare emotions --tune --scale minmax
    """
    if not tune and (len(k) > 1 or len(distance) > 1):
        raise ValueError("--k and --distance take one value each without --tune")
    if tune and thresholds:
        raise ValueError("--thresholds: not together with --tune")
    items = measuring.load(data)
    import sklearn.cluster  # noqa: F401  of LAML-kNN: so that no method pays for its import

    from nearlabel.metrics.conventions import has_metric

    names: list[str] = list(dict.fromkeys(algorithm)) or list(METHODS)
    usual = [name for name in _METRICS if has_metric(measuring.convention, name)]
    wanted = list(measuring.metric or usual)
    kind, parts = measuring.parts(items, "holdout")
    with Steps("comparing") as progress, naming(scale="--scale"):
        if tune:
            decisive = measuring.metric[0] if measuring.metric else "ranking_loss"
            how: dict[str, Any] = {"tuned": decisive}
            title = f"tuned by {decisive} on the items to learn from"
            found = _tuned(items, names, k, distance, parts, decisive, measuring, progress)
        else:
            from nearlabel.experiments import evaluate_splits

            how = {"k": k[0] if k else 10, "distance": distance[0] if distance else "euclidean"}
            cuts = ", one threshold per label" if thresholds else ""
            title = f"k = {how['k']}{cuts}, {how['distance']}"
            shared = {**measuring.parameters(), "metric": how["distance"]}
            models = [estimator(name, how["k"], shared) for name in names]
            if thresholds:
                models = [with_thresholds(model) for model in models]
            each = evaluate_splits(
                items, models, parts, refusals=True, progress=progress, **measuring.how()
            )
            found = dict(zip(names, each, strict=True))
    told = measuring.told(data, items, kind, parts, {**how, "thresholds": thresholds})
    results = [_result(name, found[name], wanted) for name in names]
    records = _records(found, wanted, tuned=tune)
    if not measuring.deliver(told, records, {"results": results}):
        return
    spread = f"; means of {len(parts)} parts" if len(parts) > 1 else ""
    say_setting(told, f"{len(names)} algorithms, {title}{measuring.searching.title()}", spread)
    searches = "a distance" if tune else "for all"
    _say(results, wanted, f"processor seconds without the searches, one {searches}")
    if tune:
        _say_choices(results, len(parts))
    if measuring.output is not None:
        say(f"wrote {measuring.output}")


def _tuned(
    items: Dataset,
    names: list[str],
    neighbors: tuple[int, ...],
    distances: tuple[str, ...],
    parts: list[Any],
    decisive: str,
    measuring: Measuring,
    progress: Any,
) -> dict[str, list[SplitResult]]:
    """For each algorithm and part the model that was chosen there, and its result."""
    from nearlabel.experiments.candidates import usual_candidates
    from nearlabel.experiments.evaluation import select_and_evaluate
    from nearlabel.metrics import scorer

    metrics = distances or ("euclidean", "cosine")
    n = min(len(part.train) for part in parts)
    shared = measuring.parameters()
    candidates = {
        name: usual_candidates(name, n, neighbors or None, metrics, **shared) for name in names
    }
    scoring = scorer(decisive, convention=measuring.convention, at=measuring.at)
    return select_and_evaluate(
        items, candidates, parts, scoring, progress=progress, **measuring.how()
    )


def _chosen(name: str, one: SplitResult) -> dict[str, Any]:
    """The parameters that were chosen in a part; none without --tune."""
    from nearlabel.experiments.candidates import tried_parameters

    return {} if one.chosen is None else tried_parameters(name, one.chosen)


def _result(name: str, found: list[SplitResult], wanted: list[str]) -> dict[str, Any]:
    refusal = next((one.refusal for one in found if one.refusal), None)
    told: dict[str, Any] = {"metrics": {}, "std": None, "seconds": None}
    if refusal is None:
        told = summary([one.metrics for one in found], wanted)
        told["seconds"] = round(sum(one.seconds for one in found), 3)
    chosen = [choice for one in found if (choice := _chosen(name, one))]
    more = {"chosen": chosen} if chosen else {}
    return {"algorithm": name, **told, "refusal": refusal, **more}


def _records(
    found: dict[str, list[SplitResult]], wanted: list[str], *, tuned: bool
) -> Iterator[dict[str, Any]]:
    for name, of_model in found.items():
        for place, one in enumerate(of_model, 1):
            metrics = one.metrics
            values = {metric: or_none(metrics.get(metric, math.nan)) for metric in wanted}
            more = {"seconds": one.seconds, "refusal": one.refusal}
            if tuned:
                more["chosen"] = _shown(_chosen(name, one))
            yield {"algorithm": name, "part": place, **values, **more}


def _say(results: list[dict[str, Any]], wanted: list[str], seconds: str) -> None:
    from nearlabel.experiments.reporting.names import metric_head
    from nearlabel.methods.registry import title
    from nearlabel.metrics import METRICS

    run = [one for one in results if not one["refusal"]]
    for start in range(0, len(wanted), _COLUMNS_AT_ONCE):
        some = wanted[start : start + _COLUMNS_AT_ONCE]
        columns = [_column(run, name, METRICS[name].loss) for name in some]
        names = [title(one["algorithm"]) for one in run]
        times = [f"{one['seconds']:.3g}" for one in run]
        heads = [metric_head(name, short=True) for name in some]
        say_table(("", *heads, "s"), zip(names, *columns, times, strict=True))
    say(f"* the best; s: {seconds}")
    for one in results:
        if one["refusal"]:
            say(f"{title(one['algorithm'])} was left out: {one['refusal']}")


def _column(results: list[dict[str, Any]], metric: str, loss: bool) -> list[str]:
    """A metric of all algorithms, the best of them marked as it is printed."""
    values = [one["metrics"][metric] for one in results]
    defined = [value for value in values if value is not None]
    best = metric_cell((min if loss else max)(defined)) if defined else ""
    return [f"*{cell}" if cell == best else cell for cell in map(metric_cell, values)]


def _say_choices(results: list[dict[str, Any]], parts: int) -> None:
    """What was chosen for each algorithm, most often first where there are several parts."""
    from nearlabel.methods.registry import title

    say("chosen on the items to learn from" + (", in how many parts" if parts > 1 else "") + ":")
    for one in results:
        counted = Counter(map(_shown, one.get("chosen", ())))
        shown = [
            f"{choice} ({times})" if parts > 1 else choice
            for choice, times in counted.most_common(3)
        ]
        if shown:
            more = ", …" if len(counted) > 3 else ""
            say(f"  {title(one['algorithm'])}: {'; '.join(shown)}{more}")


def _shown(choice: dict[str, Any]) -> str:
    return ", ".join(
        f"{'k' if name in ('n_neighbors', 'per_class') else name} {value}"
        for name, value in choice.items()
    )
