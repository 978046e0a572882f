"""evaluate."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.measurement_options import Measuring, or_none, say_setting, summary
from nearlabel.cli.method_options import Learning
from nearlabel.cli.options import Data, Json, LabeledReading, Output, Several, whole_numbers
from nearlabel.cli.output import Steps, check_results, say, say_json, say_table, write_results
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn
from nearlabel.cli.search_options import Searching

_READING, _LEARNING = LabeledReading(), Learning()
_SEARCHING, _MEASURING = Searching(), Measuring()


def evaluate(
    data: Data,
    *,
    k: Annotated[tuple[int, ...], Several, Parameter(converter=whole_numbers)] = (10,),
    output: Output = None,
    json: Json = False,
    learning: Learning = _LEARNING,
    searching: Searching = _SEARCHING,
    measuring: Measuring = _MEASURING,
    reading: LabeledReading = _READING,
) -> None:
    """Learn from one part of a data set, measure on the other.

    Parameters
    ----------
    data
        Name of a data set, a file, or - for standard input.
    k
        Neighbors that vote; several are tried on one search.
    output
        Write a .csv, .tsv or .jsonl file, a part a row.
    json
        Print JSON.

    Examples
    --------
    nearlabel evaluate emotions --k 8 --scale minmax --convention mulan
    nearlabel evaluate songs.csv --split cv10 --k 5 10 20
    nearlabel evaluate yeast --metric ranking_loss average_precision --json
    nearlabel evaluate yeast --algorithm PositivekNN --k 40 --scale minmax
    """
    check_results(output, data)
    searching.check()
    measuring.check()
    items = reading.load(data)
    if not items.Y.shape[1]:
        raise ValueError(f"{data} has no labels")

    import_scikit_learn(*SCALING if measuring.scale != "none" else ())
    from nearlabel.experiments import evaluate_splits

    models = [learning.model(count, measuring.seed, searching) for count in k]
    split, parts = measuring.parts(items, "cv10")
    with Steps("evaluating") as progress:
        results = evaluate_splits(items, models, parts, progress=progress, **measuring.how())
    found = [[one.metrics for one in of_model] for of_model in results]
    wanted = list(measuring.metric or found[0][0])
    how = {**learning.told(models[0]), **searching.told()}
    told = measuring.told(data, items, split, parts, how)
    if output is not None:
        write_results(output, _records(told, k, found, wanted))
    summaries = [
        {"k": count, **summary(metrics, wanted)} for count, metrics in zip(k, found, strict=True)
    ]
    if json:
        say_json({**told, "results": summaries})
        return
    spread = "; mean ± standard deviation" if len(parts) > 1 else ""
    say_setting(told, learning.title(models[0]) + searching.title(), spread)
    _say(summaries, wanted)
    if output is not None:
        say(f"wrote {output}")


def _records(told: dict[str, Any], k: tuple[int, ...], found: Any, wanted: list[str]) -> Any:
    for count, splits in zip(k, found, strict=True):
        for place, metrics in enumerate(splits, 1):
            values = {name: or_none(metrics[name]) for name in wanted}
            yield {**told, "k": count, "part": place, **values}


def _say(results: list[dict[str, Any]], wanted: list[str]) -> None:
    from nearlabel.metrics import METRICS

    several = results[0]["std"] is not None
    at_once = 3 if several else 5  # values of k that fit into 80 columns
    for start in range(0, len(results), at_once):
        some = results[start : start + at_once]
        rows = [
            (f"{name} {'↓' if METRICS[name].loss else '↑'}", *(_shown(one, name) for one in some))
            for name in wanted
        ]
        say_table(("", *(f"k = {one['k']}" for one in some)), rows)


def _shown(result: dict[str, Any], name: str) -> str:
    mean, std = result["metrics"][name], (result["std"] or {}).get(name)
    if mean is None:
        return "not defined"
    return f"{mean:.4f}" if std is None else f"{mean:.4f} ±{std:.4f}"
