"""The generated parts of docs/quality.md, from the result file of quality.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quality import FURTHER, LEARNERS, OTHERS, SETS

from nearlabel.baselines.algorithm_registry import title
from nearlabel.experiments.others.other_results import BEST
from nearlabel.experiments.significance import Friedman, Nemenyi, friedman, nemenyi, wilcoxon
from nearlabel.methods.registry import METHODS

Rows = Sequence[dict[str, Any]]
_TITLES = {"average_precision": "Average precision", "ranking_loss": "Ranking loss"}
_LOSSES = ("ranking_loss",)


def parts(rows: Rows) -> dict[str, str]:
    """The parts of the page by mark."""
    made = {
        "verdict": "\n\n".join(_verdict(rows, metric) for metric in _TITLES),
        "left out": _left_out(rows),
        "tests": "\n\n".join(_tests(rows, metric) for metric in _TITLES),
        "times": _times(rows),
    }
    for metric in (*_TITLES, "micro_f1"):
        made[f"{metric} here"] = _table(rows, metric, SETS)
        made[f"{metric} beyond"] = _table(rows, metric, FURTHER)
    return made


def learner_name(method: str) -> str:
    """The name of a method on the page."""
    if method in OTHERS:
        return OTHERS[method].title
    return "**blend**" if method == BEST else title(method)


def complete(rows: Rows, metric: str) -> tuple[list[str], list[list[float]]]:
    """The methods that finished on all sets, and their values, one row per set."""
    values, names = _values(rows, metric), measured(rows, SETS)
    methods = [
        method for method in _methods(rows) if all((name, method) in values for name in names)
    ]
    return methods, [[values[name, method] for method in methods] for name in names]


def measured(rows: Rows, names: Iterable[str]) -> list[str]:
    """The sets on which the blend and every other learner were measured."""
    there: dict[str, set[str]] = {}
    for row in rows:
        there.setdefault(row["data"], set()).add(row["method"])
    return [name for name in names if there.get(name, set()) >= {BEST, *OTHERS}]


def mean_ranks(rows: Rows, metric: str) -> tuple[Friedman, Nemenyi]:
    """The tests over the sets, for the methods that finished on all of them."""
    methods, table = complete(rows, metric)
    names = [learner_name(method).strip("*") for method in methods]
    loss = metric in _LOSSES
    return friedman(table, names, loss=loss), nemenyi(table, names, loss=loss)


def _methods(rows: Rows) -> list[str]:
    there = {row["method"] for row in rows}
    return [name for name in (BEST, *METHODS, *OTHERS) if name in there]


def _values(rows: Rows, metric: str) -> dict[tuple[str, str], float]:
    return {(row["data"], row["method"]): row[metric] for row in rows if metric in row}


def _best(names: Iterable[str], values: dict[str, float], metric: str) -> str:
    return (min if metric in _LOSSES else max)(
        (name for name in names if name in values), key=values.__getitem__
    )


def _verdict(rows: Rows, metric: str) -> str:
    """On how many sets the blend is ahead of the best other learner, chosen in either way."""
    values, lines = _values(rows, metric), []
    chosen = _chosen_others(rows)
    sign = -1 if metric in _LOSSES else 1
    for what, names in (("sets", SETS), ("further sets", FURTHER)):
        there = measured(rows, names)
        best = {
            name: max(sign * values[name, other] for other in OTHERS if (name, other) in values)
            for name in there
        }
        ahead = [name for name in there if sign * values[name, BEST] > best[name]]
        by_training = [
            name for name in there if sign * values[name, BEST] > sign * values[name, chosen[name]]
        ]
        behind = ", ".join(name for name in there if name not in ahead)
        lines.append(
            f"| {len(there)} {what} | {len(ahead)} | {behind or 'none'} | {len(by_training)} |"
        )
    return "\n".join(
        [
            f"| {_TITLES[metric].lower()} | ahead of all others | not on "
            "| ahead of the best other on training rows |",
            "|---|---|---|---|",
            *lines,
        ]
    )


def _chosen_others(rows: Rows) -> dict[str, str]:
    """For each set, the other learner that is best on held-out training rows."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["method"] in OTHERS and row.get("held_out") is not None:
            found.setdefault(row["data"], {})[row["method"]] = row["held_out"]
    return {name: max(each, key=each.__getitem__) for name, each in found.items()}


def _table(rows: Rows, metric: str, names: Sequence[str]) -> str:
    """One line per method, one column per set; the best of each set in bold."""
    values, methods = _values(rows, metric), _methods(rows)
    there = measured(rows, names)
    lines = ["| | " + " | ".join(there) + " |", "|---|" + "---|" * len(there)]
    best = {
        name: _best(methods, {m: values[name, m] for m in methods if (name, m) in values}, metric)
        for name in there
    }
    for method in methods:
        cells = []
        for name in there:
            value = values.get((name, method))
            cell = "" if value is None else f"{value:.3f}".removeprefix("0")
            is_best = value is not None and value == values[name, best[name]]
            cells.append(f"**{cell}**" if is_best else cell)
        lines.append(f"| {learner_name(method)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _left_out(rows: Rows) -> str:
    """The methods that did not finish, where and why."""
    gone: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["refusal"]:
            gone.setdefault((row["method"], row["refusal"]), []).append(row["data"])
    known = {(row["data"], row["method"]) for row in rows}
    for method in LEARNERS:
        for name in measured(rows, SETS):
            if (name, method) not in known:
                gone.setdefault((method, "not measured yet"), []).append(name)
    if not gone:
        return "No learner was left out."
    return "\n".join(
        f"- {learner_name(method)} on {', '.join(names)}: {why}."
        for (method, why), names in gone.items()
    )


def _tests(rows: Rows, metric: str) -> str:
    """Friedman's test, mean ranks, and Wilcoxon's test of the blend and each method."""
    test, pairs = mean_ranks(rows, metric)
    methods, table = complete(rows, metric)
    columns = {method: [line[place] for line in table] for place, method in enumerate(methods)}
    p_value = "below .001" if test.f_p_value < 0.001 else f"{test.f_p_value:.3f}"
    lines = [
        f"{_TITLES[metric]}: Friedman's test over {test.rows} sets and {len(methods)} methods, "
        f"with the correction of Iman and Davenport, p {p_value}; Nemenyi's critical difference "
        f"{pairs.critical_difference:.2f}. Wilcoxon's test compares the blend with each method.",
        "",
        "| | mean rank | blend better, equal, worse | p (Wilcoxon) |",
        "|---|---|---|---|",
    ]
    for rank, method in sorted(zip(test.mean_ranks, methods, strict=True)):
        if method == BEST:
            lines.append(f"| {learner_name(method)} | {rank:.2f} | | |")
            continue
        pair = wilcoxon(columns[BEST], columns[method], loss=metric in _LOSSES)
        p = 1.0 if pair.p_value is None else pair.p_value
        told = "< .001" if p < 0.001 else f"{p:.3f}"
        outcome = f"{pair.wins}, {pair.ties}, {pair.losses}"
        lines.append(f"| {learner_name(method)} | {rank:.2f} | {outcome} | {told} |")
    return "\n".join(lines)


def _times(rows: Rows) -> str:
    """Core-seconds, including tuning."""
    seconds = {(row["data"], row["method"]): row["core_seconds"] for row in rows}
    names = measured(rows, SETS)
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for method in _methods(rows):
        cells = [
            f"{seconds[name, method]:.3g}" if (name, method) in seconds else "" for name in names
        ]
        lines.append(f"| {learner_name(method)} | {' | '.join(cells)} |")
    return "\n".join(lines)
