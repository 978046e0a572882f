"""compare."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.measuring import Measuring, defined, metric_cell, summary
from nearlabel.cli.options import Algorithms, DataOrPictures, Distance, Neighbors, Several, Switch
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import estimator
from nearlabel.cli.output import counted, say, say_folded, say_table, steps
from nearlabel.methods.registry import METHODS, title

if TYPE_CHECKING:
    from nearlabel.experiments import SplitResult

_METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")


def compare(
    data: DataOrPictures,
    *,
    algorithm: Annotated[Algorithms, Parameter(show_default=False)] = (),
    k: Neighbors = (),
    thresholds: Switch = False,
    distance: Annotated[tuple[Distance, ...], Several, Parameter(show_default=False)] = (),
    tune: Switch = False,
    measuring: Measuring = Measuring(),
) -> None:
    """Compare all algorithms on one neighbor graph.

    The neighbors are searched once for all. With --tune, the k, distance and
    other parameters of each are chosen by leave-one-out on the training set
    alone, with one graph per distance.

    Parameters
    ----------
    algorithm
        Algorithms to compare; by default all.
    k
        Number of neighbors, by default 10; with --tune those to try, such as 1-30.
    thresholds
        Learn one threshold per label by leave-one-out F1, for each.
    distance
        Distance between items, by default euclidean, for pictures by a network cosine; with
        --tune those to try, by default both.
    tune
        Tune the parameters of each by the first metric of --metric, by default ranking_loss.

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

    import nearlabel as nl
    from nearlabel.cli.picture_items import usual_distance
    from nearlabel.experiments import evaluate_splits
    from nearlabel.experiments.candidates import tried_parameters, usual_candidates
    from nearlabel.experiments.evaluation import select_and_evaluate
    from nearlabel.metrics.conventions import has_metric

    first = distance[0] if distance else usual_distance(items)
    names: list[str] = list(dict.fromkeys(algorithm)) or list(METHODS)
    usual = [name for name in _METRICS if has_metric(measuring.convention, name)]
    wanted = list(measuring.metric or usual)
    kind, parts = measuring.parts(items, "holdout")
    shared = measuring.parameters()
    choices: dict[str, list[dict[str, Any]]] = {}  # with --tune, in each part
    with steps("comparing") as progress, naming(scale="--scale", text="--text"):
        work = {"progress": progress, **measuring.how(items)}
        if tune:
            how: dict[str, Any] = {"tuned": (measuring.metric or ("ranking_loss",))[0]}
            what = f"tuned by {how['tuned']} on the training items"
            n = min(len(part.train) for part in parts)
            tried = k or None, distance or ("euclidean", "cosine")
            candidates = {name: usual_candidates(name, n, *tried, **shared) for name in names}
            scoring = nl.metrics.scorer(
                how["tuned"], convention=measuring.convention, at=measuring.at
            )
            found = select_and_evaluate(items, candidates, parts, scoring, **work)
            choices = {
                name: [tried_parameters(name, one.chosen) if one.chosen else {} for one in each]
                for name, each in found.items()
            }
        else:
            how = {"k": k[0] if k else 10, "distance": first}
            cuts = ", one threshold per label" if thresholds else ""
            what = f"k = {how['k']}{cuts}, {how['distance']}"
            shared["metric"] = how["distance"]
            models = [estimator(name, how["k"], shared, {}, {}) for name in names]
            if thresholds:
                models = [nl.LabelThresholds(model) for model in models]
            each = evaluate_splits(items, models, parts, refusals=True, **work)
            found = dict(zip(names, each, strict=True))
    scales = [one.scale for each in found.values() for one in each if not one.refusal]
    how["thresholds"] = thresholds
    told = measuring.told(data, items, kind, parts, how, scales, first)
    both = [_told(name, found[name], choices.get(name, []), wanted) for name in names]
    results, records = [result for result, _ in both], chain(*(each for _, each in both))
    what = f"{counted(len(names), 'algorithm')}, {what}{measuring.searching.title()}"
    spread = f"; means of {len(parts)} parts" if len(parts) > 1 else ""
    if not measuring.deliver(told, records, {"results": results}, what, spread):
        return
    _say_table(results, wanted)
    searches = "a distance" if tune else "for all"
    say(f"* the best; s: processor seconds without the searches, one {searches}")
    for one in results:
        if one["refusal"]:
            say(f"{title(one['algorithm'])} was left out: {one['refusal']}")
    if tune:
        _say_choices(results, len(parts))
    if measuring.output is not None:
        say(f"wrote {measuring.output}")


def _told(
    name: str, found: list[SplitResult], choices: list[dict[str, Any]], wanted: list[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is told of an algorithm, and of each part."""
    refusal = next((one.refusal for one in found if one.refusal), None)
    result: dict[str, Any] = {"algorithm": name, "metrics": {}, "std": None, "seconds": None}
    if refusal is None:
        result |= summary([one.metrics for one in found], wanted)
        result["seconds"] = round(sum(one.seconds for one in found), 3)
    result["refusal"] = refusal
    records = []
    for part, one in enumerate(found, 1):
        metrics = defined(one.metrics, wanted)
        more = {"seconds": one.seconds, "refusal": one.refusal}
        records.append({"algorithm": name, "part": part, **metrics, **more})
    for record, choice in zip(records, choices, strict=False):
        record["chosen"] = _shown(choice)
    if any(choices):
        result["chosen"] = [choice for choice in choices if choice]
    return result, records


def _say_table(results: list[dict[str, Any]], wanted: list[str]) -> None:
    """Print what was measured, the best of each metric marked as it is printed."""
    from nearlabel.experiments.reporting.names import metric_head
    from nearlabel.metrics import METRICS

    run = [one for one in results if not one["refusal"]]
    columns = []
    for name in wanted:
        values = [one["metrics"][name] for one in run]
        known = [value for value in values if value is not None]
        best = metric_cell((min if METRICS[name].loss else max)(known)) if known else ""
        columns.append([f"*{cell}" if cell == best else cell for cell in map(metric_cell, values)])
    heads = [metric_head(name, short=True) for name in wanted]
    titles = [title(one["algorithm"]) for one in run]
    times = [f"{one['seconds']:.3g}" for one in run]
    say_table(("", *heads, "s"), zip(titles, *columns, times, strict=True))


def _say_choices(results: list[dict[str, Any]], parts: int) -> None:
    """What was chosen for each algorithm, most often first where there are several parts."""
    say("chosen on the training items" + (", in how many parts" if parts > 1 else "") + ":")
    for one in results:
        counted = Counter(map(_shown, one.get("chosen", ())))
        shown = [
            f"{choice} ({times})" if parts > 1 else choice
            for choice, times in counted.most_common(3)
        ]
        if shown:
            more = ", …" if len(counted) > 3 else ""
            say_folded(f"  {title(one['algorithm'])}: {'; '.join(shown)}{more}")


def _shown(choice: dict[str, Any]) -> str:
    """Parameters by the names of the options that set them."""
    names = {"n_neighbors": "k", "per_class": "k", "metric": "distance"}
    return ", ".join(f"{names.get(name, name)} {value}" for name, value in choice.items())
