"""The results of a comparison as records, as a table, and as a figure."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from nearlabel.cli.measuring import defined, metric_cell, summary
from nearlabel.cli.options.others import learner_title
from nearlabel.cli.output import say, say_folded, say_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nearlabel.experiments import SplitResult

    Found = Mapping[str, Sequence[SplitResult]]

_BEST, _ALIKE = "*", "≈"


def results_of(found: Found, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """The results of each algorithm: means, standard errors, and p-values against the best."""
    from nearlabel.experiments.significance.standings import standings
    from nearlabel.metrics import METRICS

    standing = {name: standings(found, name, loss=METRICS[name].loss) for name in wanted}
    results = []
    for algorithm, parts in found.items():
        refusal = next((one.refusal for one in parts if one.refusal), None)
        result: dict[str, Any] = {"algorithm": algorithm, "metrics": {}, "std": None}
        result |= {"seconds": None, "standard_error": {}, "p_value": {}}
        if refusal is None:
            result |= summary([one.metrics for one in parts], wanted)
            result["seconds"] = round(sum(one.seconds for one in parts), 3)
            for metric in wanted:
                one = standing[metric].get(algorithm)
                result["standard_error"][metric] = None if one is None else _number(one.error)
                result["p_value"][metric] = None if one is None else _number(one.p_value)
        result["refusal"] = refusal
        if any(one.parameters for one in parts):
            result["chosen"] = [one.parameters for one in parts if one.parameters]
        results.append(result)
    return results


def records_of(found: Found, wanted: Sequence[str], tuned: bool) -> list[dict[str, Any]]:
    """The results of each algorithm on each part."""
    records = []
    for algorithm, parts in found.items():
        for place, one in enumerate(parts, 1):
            metrics = defined(one.metrics, wanted)
            more: dict[str, Any] = {"seconds": one.seconds, "refusal": one.refusal}
            if tuned:
                more["chosen"] = _shown(one.parameters)
            records.append({"algorithm": algorithm, "part": place, **metrics, **more})
    return records


def say_results(results: list[dict[str, Any]], wanted: Sequence[str], *, errors: bool) -> None:
    """Print a table; the best printed value of each metric and those not worse are marked."""
    from nearlabel.experiments.reporting.names import metric_head
    from nearlabel.experiments.significance.pairs import LEVEL
    from nearlabel.metrics import METRICS

    run = [one for one in results if not one["refusal"]]
    columns = []
    for name in wanted:
        values = [one["metrics"][name] for one in run]
        known = [value for value in values if value is not None]
        best = metric_cell((min if METRICS[name].loss else max)(known)) if known else ""
        column = []
        for one, cell in zip(run, map(metric_cell, values), strict=True):
            p_value, error = one["p_value"].get(name), one["standard_error"].get(name)
            alike = _ALIKE if p_value is not None and p_value >= LEVEL else ""
            mark = _BEST if cell == best else alike
            spread = f" ±{error:.3f}" if errors and error is not None else ""
            column.append(f"{mark}{cell}{spread}")
        columns.append(column)
    heads = [metric_head(name, short=True) for name in wanted]
    titles = [learner_title(one["algorithm"]) for one in run]
    times = [f"{one['seconds']:.3g}" for one in run]
    say_table(("", *heads, "s"), zip(titles, *columns, times, strict=True))


def say_refusals(results: list[dict[str, Any]]) -> None:
    """Print which algorithms were left out, and why."""
    for one in results:
        if one["refusal"]:
            say(f"{learner_title(one['algorithm'])} was left out: {one['refusal']}")


def say_choices(results: list[dict[str, Any]], parts: int) -> None:
    """Print the chosen parameters of each algorithm, the most frequent first."""
    if not any(one.get("chosen") for one in results):
        return
    say("chosen on the training items" + (", in how many parts" if parts > 1 else "") + ":")
    for one in results:
        counted = Counter(map(_shown, one.get("chosen", ())))
        shown = [
            f"{choice} ({times})" if parts > 1 else choice
            for choice, times in counted.most_common(3)
        ]
        if shown:
            more = ", …" if len(counted) > 3 else ""
            say_folded(f"  {learner_title(one['algorithm'])}: {'; '.join(shown)}{more}")


def draw_results(
    results: list[dict[str, Any]], metric: str, ours: Sequence[str], path: str, title: str
) -> None:
    """Draw a metric of all, with standard errors."""
    from nearlabel.experiments.reporting.drawing import save
    from nearlabel.experiments.reporting.figures import method_values

    values = {
        learner_title(one["algorithm"]): (
            one["metrics"][metric],
            one["standard_error"].get(metric),
        )
        for one in results
        if one["metrics"].get(metric) is not None
    }
    own = [learner_title(name) for name in ours]
    save(method_values(values, metric, own=own, title=title), path)


def _shown(choice: Mapping[str, Any]) -> str:
    """Parameters by the names of the options that set them."""
    names = {"n_neighbors": "k", "per_class": "k", "metric": "distance"}
    return ", ".join(f"{names.get(name, name)} {value}" for name, value in choice.items())


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
