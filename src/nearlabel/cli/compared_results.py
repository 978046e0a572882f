"""The results of a comparison as records, as a table, as a figure, and as a report."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.measuring import (
    defined,
    metric_cell,
    preparation_text,
    sizes,
    split_text,
    summary,
)
from nearlabel.cli.options.others import learner_title
from nearlabel.cli.output import printable, say, say_folded, say_table
from nearlabel.cli.process import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import SplitResult
    from nearlabel.experiments.significance.standings import Standing

    Found = Mapping[str, Sequence[SplitResult]]
    Standings = Mapping[str, Mapping[str, Standing]]  # by metric and algorithm

_BEST, _ALIKE = "*", "≈"


def standings_of(results: Found, wanted: Sequence[str]) -> Standings:
    """Where algorithms stand by each metric."""
    from nearlabel.experiments.significance.standings import standings
    from nearlabel.metrics import METRICS

    return {name: standings(results, name, loss=METRICS[name].loss) for name in wanted}


def results_of(results_by_name: Found, standing: Standings) -> list[Tree]:
    """The results of each algorithm: means, standard errors, and p-values against the best."""
    wanted, results = list(standing), []
    for algorithm, parts in results_by_name.items():
        refusal = next((part.refusal for part in parts if part.refusal), None)
        result: Tree = {"algorithm": algorithm, "metrics": {}, "std": None}
        result |= {"seconds": None, "standard_error": {}, "p_value": {}}
        if refusal is None:
            result |= summary([part.metrics for part in parts], wanted)
            result["seconds"] = round(sum(part.seconds for part in parts), 3)
            for metric in wanted:
                place = standing[metric].get(algorithm)
                result["standard_error"][metric] = None if place is None else _number(place.error)
                result["p_value"][metric] = None if place is None else _number(place.p_value)
        result["refusal"] = refusal
        if any(part.parameters for part in parts):
            result["chosen"] = [part.parameters for part in parts if part.parameters]
        results.append(result)
    return results


def records_of(results: Found, wanted: Sequence[str], tuned: bool) -> list[Tree]:
    """The results of each algorithm on each part."""
    records = []
    for algorithm, parts in results.items():
        for place, result in enumerate(parts, 1):
            metrics = defined(result.metrics, wanted)
            further: Tree = {"seconds": result.seconds, "refusal": result.refusal}
            if tuned:
                further["chosen"] = _shown(result.parameters)
            records.append({"algorithm": algorithm, "part": place, **metrics, **further})
    return records


def best_of(results: list[Tree], metric: str, names: Sequence[str]) -> Tree | None:
    """The best by a metric of the algorithms with these names; None if it is not defined."""
    from nearlabel.metrics import METRICS

    known = [
        result
        for result in results
        if result["algorithm"] in names and result["metrics"].get(metric) is not None
    ]
    best = min if METRICS[metric].loss else max
    return best(known, key=lambda result: result["metrics"][metric]) if known else None


def most_frequent(chosen: Sequence[Tree]) -> Tree:
    """The parameters chosen in most parts, the first of equally frequent ones; empty if none."""
    return max(chosen, key=lambda parameters: list(chosen).count(parameters), default={})


def marked_cells(results: list[Tree], metric: str) -> list[tuple[str, str]]:
    """Values of a metric, and marks of the best printed one and of those not worse."""
    from nearlabel.experiments.significance.pairs import LEVEL
    from nearlabel.metrics import METRICS

    values = [result["metrics"][metric] for result in results]
    known = [value for value in values if value is not None]
    best = metric_cell((min if METRICS[metric].loss else max)(known)) if known else ""
    marked = []
    for result, cell in zip(results, map(metric_cell, values), strict=True):
        p_value = result["p_value"].get(metric)
        alike = _ALIKE if p_value is not None and p_value >= LEVEL else ""
        marked.append((_BEST if cell == best else alike, cell))
    return marked


def legend(parts: int) -> list[str]:
    """What the marks and the last column of a table mean."""
    from nearlabel.experiments.significance.pairs import LEVEL
    from nearlabel.experiments.significance.standings import paired_over

    test = f"paired t-test over {paired_over(parts)}, level {LEVEL:g}"
    return [
        f"{_BEST} the best; {_ALIKE} not significantly worse: {test}",
        "s: processor seconds; our algorithms without the searches, which they share",
    ]


def say_results(results: list[Tree], wanted: Sequence[str], *, errors: bool) -> None:
    """Print a table; the best printed value of each metric and those not worse are marked."""
    from nearlabel.experiments.reporting.names import metric_head

    run = [result for result in results if not result["refusal"]]
    columns = []
    for name in wanted:
        column = []
        for result, (mark, cell) in zip(run, marked_cells(run, name), strict=True):
            error = result["standard_error"].get(name)
            spread = f" ±{error:.3f}" if errors and error is not None else ""
            column.append(f"{mark}{cell}{spread}")
        columns.append(column)
    heads = [metric_head(name, short=True) for name in wanted]
    titles = [learner_title(result["algorithm"]) for result in run]
    times = [_seconds(result) for result in run]
    say_table(("", *heads, "s"), zip(titles, *columns, times, strict=True))


def say_refusals(results: list[Tree]) -> None:
    """Print which algorithms were left out, and why."""
    for result in results:
        if result["refusal"]:
            say(f"{learner_title(result['algorithm'])} was left out: {result['refusal']}")


def say_choices(results: list[Tree], parts: int) -> None:
    """Print the chosen parameters of each algorithm, the most frequent first."""
    if not any(result.get("chosen") for result in results):
        return
    say("chosen on the training items" + (", in how many parts" if parts > 1 else "") + ":")
    for result in results:
        shown = _choices(result, parts)
        if shown:
            rest = ", …" if len(shown) > 3 else ""
            say_folded(f"  {learner_title(result['algorithm'])}: {'; '.join(shown[:3])}{rest}")


def draw_results(
    results: list[Tree], metric: str, ours: Sequence[str], path: str, title: str
) -> None:
    """Draw a metric of all, with standard errors."""
    from nearlabel.experiments.reporting.drawing import save
    from nearlabel.experiments.reporting.figures import method_values

    values = {
        learner_title(result["algorithm"]): (
            result["metrics"][metric],
            result["standard_error"].get(metric),
        )
        for result in results
        if result["metrics"].get(metric) is not None
    }
    own = [learner_title(name) for name in ours]
    save(method_values(values, metric, own=own, title=title), path)


def write_comparison(
    path: str,
    setting: Tree,
    items: Dataset,
    what: str,
    parts: Found,
    results: list[Tree],
    standing: Standings,
    ours: Sequence[str],
) -> None:
    """Write the report of a comparison; `what` says which algorithms were compared, and how."""
    from nearlabel.experiments.reporting import comparison_report as report
    from nearlabel.experiments.significance.standings import paired_over
    from nearlabel.metrics.label_results import mean_results

    run = [result for result in results if not result["refusal"]]
    cells: dict[str, dict[str, tuple[str, str]]] = {result["algorithm"]: {} for result in results}
    for metric in standing:
        for result, (mark, cell) in zip(run, marked_cells(run, metric), strict=True):
            error = result["standard_error"].get(metric)
            spread = "" if error is None else f" ± {error:.4f}"
            cells[result["algorithm"]][metric] = mark, f"{cell}{spread}"
    methods = []
    for result in results:
        name = result["algorithm"]
        labels = [part.labels for part in parts[name] if part.labels is not None]
        methods.append(
            report.ComparedMethod(
                learner_title(name),
                name in ours,
                cells[name],
                "" if result["refusal"] else _seconds(result),
                result["refusal"],
                _choices(result, setting["parts"]),
                mean_results(labels) if labels else None,
            )
        )
    titled = {
        metric: {learner_title(name): values for name, values in each.items()}
        for metric, each in standing.items()
    }
    source = Path(setting["dataset"])
    dataset = (
        "standard input" if setting["dataset"] == "-" else source.name or source.absolute().name
    )
    spread = "± standard error over " + paired_over(setting["parts"])
    report.write_comparison(
        path,
        printable(dataset),
        setup=_setup(setting, items, what, list(standing)),
        command=shlex.join(["nearlabel", *map(printable, typed.get())]),
        methods=methods,
        standings=titled,
        parts=setting["parts"],
        legend=[*legend(setting["parts"]), f"{spread}; ↓ lower is better, ↑ higher"],
    )


def _setup(setting: Tree, items: Dataset, what: str, metrics: Sequence[str]) -> dict[str, str]:
    """What was compared, and how."""
    from nearlabel.datasets import describe

    top = any(name in ("success_rate", "precision_at") for name in metrics)
    return {
        "data set": printable(setting["dataset"]),
        "size": sizes(setting),
        "label cardinality": f"{describe(items).cardinality:.3f} labels per item",
        "compared": what,
        "preprocessing": preparation_text(setting, setting["chosen_scales"]).removeprefix(", "),
        "split": split_text(setting),
        "metric convention": f"{setting['convention']}, for ties and rows without labels",
        **({"top labels": f"{setting['at']}, in success rate and precision"} if top else {}),
        "random seed": str(setting["seed"]),
    }


def _seconds(result: Tree) -> str:
    return f"{result['seconds']:.3g}"


def _choices(result: Tree, parts: int) -> list[str]:
    """The chosen parameters of an algorithm, the most frequent first, with numbers of parts."""
    counted = Counter(map(_shown, result.get("chosen", ()))).most_common()
    return [f"{choice} ({times})" if parts > 1 else choice for choice, times in counted]


def _shown(choice: Mapping[str, object]) -> str:
    """Parameters by the names of the options that set them."""
    names = {"n_neighbors": "k", "per_class": "k", "metric": "distance"}
    return ", ".join(f"{names.get(name, name)} {value}" for name, value in choice.items())


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
