"""evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nearlabel.cli.options import Counts, Data, Json, Output
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import Learning, own_title
from nearlabel.cli.options.measuring import (
    Measuring,
    metric_cell,
    metric_heads,
    or_none,
    say_setting,
    summary,
)
from nearlabel.cli.options.reading import LabeledReading
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import Steps, say, say_json, say_table
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn
from nearlabel.cli.result_files import check_results, write_results

_READING, _LEARNING = LabeledReading(), Learning()
_SEARCHING, _MEASURING = Searching(), Measuring()


def evaluate(
    data: Data,
    *,
    k: Counts = (10,),
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
    k
        Neighbors that vote; several are tried on one search.
    output
        Write a .csv, .tsv or .jsonl file, a part a row.

    Examples
    --------
    nearlabel evaluate emotions --k 8 --scale minmax --convention mulan
    nearlabel evaluate songs.csv --split cv10 --k 5 10 20
    nearlabel evaluate yeast --metric ranking_loss average_precision --json
    nearlabel evaluate yeast --algorithm PositivekNN --k 40 --scale minmax
    """
    check_results(output, data)
    items = reading.load_labeled(data)
    import_scikit_learn(*SCALING if measuring.scale != "none" else ())
    from nearlabel.experiments import evaluate_splits

    models = [learning.model(count, measuring.seed, searching) for count in k]
    split, parts = measuring.parts(items, "cv10")
    with Steps("evaluating") as progress, naming(scale="--scale"):
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
    title = f"{learning.title()}{own_title(models[0])}, {learning.distance}{searching.title()}"
    say_setting(told, title, "; mean ± standard deviation" if len(parts) > 1 else "")
    _say(summaries, wanted)
    if output is not None:
        say(f"wrote {output}")


def _records(
    told: dict[str, Any], k: tuple[int, ...], found: Any, wanted: list[str]
) -> Iterator[dict[str, Any]]:
    for count, splits in zip(k, found, strict=True):
        for place, metrics in enumerate(splits, 1):
            values = {name: or_none(metrics[name]) for name in wanted}
            yield {**told, "k": count, "part": place, **values}


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
