"""evaluate."""

from __future__ import annotations

from typing import Any

from nearlabel.cli.measurements import metric_cell, metric_heads, or_none, say_setting, summary
from nearlabel.cli.options import Counts, Data
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import Learning, own_title
from nearlabel.cli.options.measuring import Measuring
from nearlabel.cli.output import Steps, say, say_table

_LEARNING, _MEASURING = Learning(), Measuring()


def evaluate(
    data: Data,
    *,
    k: Counts = (10,),
    learning: Learning = _LEARNING,
    measuring: Measuring = _MEASURING,
) -> None:
    """Learn from one part of a data set, measure on the other.

    Parameters
    ----------
    k
        Neighbors that vote; several are tried on one search.

    Examples
    --------
    nearlabel evaluate emotions --k 8 --scale minmax --convention mulan
    nearlabel evaluate songs.csv --split cv10 --k 5 10 20
    nearlabel evaluate yeast --metric ranking_loss average_precision --json
    nearlabel evaluate yeast --algorithm PositivekNN --k 40 --scale minmax
    """
    items = measuring.load(data)
    from nearlabel.experiments import evaluate_splits

    models = [learning.model(count, measuring.parameters()) for count in k]
    split, parts = measuring.parts(items, "cv10")
    with Steps("evaluating") as progress, naming(scale="--scale"):
        results = evaluate_splits(items, models, parts, progress=progress, **measuring.how())
    found = [[one.metrics for one in of_model] for of_model in results]
    wanted = list(measuring.metric or found[0][0])
    told = measuring.told(data, items, split, parts, learning.told(models[0]))
    summaries = [
        {"k": count, **summary(metrics, wanted)} for count, metrics in zip(k, found, strict=True)
    ]
    records = (
        {"k": count, "part": place, **{name: or_none(metrics[name]) for name in wanted}}
        for count, of_model in zip(k, found, strict=True)
        for place, metrics in enumerate(of_model, 1)
    )
    if not measuring.deliver(told, records, {"results": summaries}):
        return
    how = f"{learning.distance}{measuring.searching.title()}"
    spread = "; mean ± standard deviation" if len(parts) > 1 else ""
    say_setting(told, f"{learning.title()}{own_title(models[0])}, {how}", spread)
    _say(summaries, wanted)
    if measuring.output is not None:
        say(f"wrote {measuring.output}")


def _say(results: list[dict[str, Any]], wanted: list[str]) -> None:
    at_once = 5 if results[0]["std"] is None else 3  # values of k that fit into 80 columns
    for start in range(0, len(results), at_once):
        some = results[start : start + at_once]
        rows = [
            (
                head,
                *(metric_cell(one["metrics"][name], (one["std"] or {}).get(name)) for one in some),
            )
            for name, head in zip(wanted, metric_heads(wanted), strict=True)
        ]
        say_table(("", *(f"k = {one['k']}" for one in some)), rows)


def _shown(result: dict[str, Any], name: str) -> str:
    return metric_cell(result["metrics"][name], (result["std"] or {}).get(name))
