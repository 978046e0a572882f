"""What a report shows, as plain data; the templates only say where it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from nearlabel.experiments import published
from nearlabel.experiments.comparisons import Comparison, Source
from nearlabel.experiments.figures import metric_title
from nearlabel.experiments.orders import PartialOrder, partial_order, total_order
from nearlabel.experiments.plans import Experiment
from nearlabel.experiments.significance import LEVEL, Pair
from nearlabel.experiments.verdicts import VERDICTS
from nearlabel.metrics import METRICS

Record = Mapping[str, Any]
MARKS = {"digits": "=", "within std": "~", "off": "!", "not run": "·"}
MEANINGS = {
    "digits": "equal to the printed digit",
    "within std": "within one published standard deviation, or 0.005 where none is printed "
    "(coverage: 0.05 labels)",
    "off": "further away",
    "not run": "the reason is below the table",
}
_PARAMETERS = {"n_neighbors": "k", "n_clusters": "m", "smoothing": "s", "rate": "z"}
_NO_NUMBER = "—"


def verdict_counts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """How many cells of each paper have which verdict, and of all."""
    counts = Counter((record["paper"], record["verdict"]) for record in records)
    rows = [
        {
            "title": paper_title(paper),
            "counts": [counts[paper, verdict] for verdict in VERDICTS],
        }
        for paper in dict.fromkeys(record["paper"] for record in records)
    ]
    if len(rows) > 1:
        sums = [sum(column) for column in zip(*(row["counts"] for row in rows), strict=True)]
        rows.append({"title": "all", "counts": sums})
    return rows


def paper_title(paper: str) -> str:
    """A paper by its method and year."""
    told = published.papers()[paper]
    return f"{told.method} ({told.year})"


def table_blocks(
    records: Sequence[Record], experiments: Iterable[Experiment]
) -> list[dict[str, Any]]:
    """The tables in the order of the papers; those with the same rows as one."""
    told = {(one.paper, table): one.told for one in experiments for table in one.tables}
    rows = [list(row) for _, row in groupby(records, key=_row_key)]
    return [
        {
            "paper": paper,
            "heading": f"{'Tables' if len(tables) > 1 else 'Table'} {', '.join(tables)}",
            "setting": told.get((paper, tables[0]), ""),
            **_block(list(some)),
        }
        for (paper, tables), some in groupby(rows, key=_tables_of)
    ]


def _row_key(record: Record) -> tuple[str, ...]:
    # Tables 10 to 14 of the 2007 paper have one metric each: their rows go on from table to table.
    return record["paper"], record["dataset"], record["algorithm"], str(record.get("parameters"))


def _tables_of(row: list[Record]) -> tuple[str, tuple[str, ...]]:
    return row[0]["paper"], tuple(dict.fromkeys(record["table"] for record in row))


def _block(rows: list[list[Record]]) -> dict[str, Any]:
    metrics = list(dict.fromkeys(record["metric"] for row in rows for record in row))
    return {
        "metrics": [metric_head(metric) for metric in metrics],
        "rows": [_row(row, metrics) for row in rows],
        "reasons": [
            reason
            for verdict in ("off", "not run")
            for reason in _reasons(verdict, [record for row in rows for record in row])
        ],
    }


def metric_head(metric: str) -> str:
    """A metric's name, with an arrow to the better side if there is one."""
    arrow = "" if metric not in METRICS else " ↓" if METRICS[metric].loss else " ↑"
    return f"{metric_title(metric)}{arrow}"


def _row(row: list[Record], metrics: list[str]) -> dict[str, Any]:
    cells = {record["metric"]: _cell(record) for record in row}
    parameters = row[0].get("parameters") or {}
    told = [
        f"{_PARAMETERS.get(key, key)} = {value:.4g}"
        if isinstance(value, float)
        else f"{_PARAMETERS.get(key, key)} = {value}"
        for key, value in parameters.items()
        if key != "random_state"
    ]
    return {
        "dataset": row[0]["dataset"],
        "algorithm": row[0]["algorithm"],
        "parameters": ", ".join(told),
        "cells": [cells.get(metric) for metric in metrics],
    }


def _cell(record: Record) -> dict[str, Any]:
    """Published and ours with the digits that were printed, and the mark of the verdict."""
    printed = record.get("printed")
    if printed is None and record["published"] is not None:
        printed = str(record["published"])
    decimals = len((printed or "0.0000").partition(".")[2])

    def number(value: float | None, std: float | None) -> str:
        if value is None:
            return _NO_NUMBER
        return f"{value:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")

    return {
        "published": number(record["published"], record["std"]),
        "ours": number(record["ours"], record.get("ours_std")),
        "verdict": record["verdict"],
        "kind": record["verdict"].replace(" ", "-"),
        "mark": MARKS[record["verdict"]],
        "reason": record["reason"] or "",
    }


def _reasons(verdict: str, records: list[Record]) -> list[dict[str, Any]]:
    """Why cells have a verdict: those with the same reason together."""
    found = [record for record in records if record["verdict"] == verdict]
    listed = []
    for reason in dict.fromkeys(record["reason"] for record in found):
        cells = [record for record in found if record["reason"] == reason]
        listed.append(
            {
                "verdict": verdict,
                "mark": MARKS[verdict],
                "cells": _cells_in_words(cells),
                "reason": reason or "no reason is known",
            }
        )
    return listed


def _cells_in_words(cells: list[Record]) -> str:
    """Algorithms, data sets and metrics of some cells; what is many is counted."""
    parts = []
    for key, many in (("algorithm", "algorithms"), ("dataset", "data sets"), ("metric", "metrics")):
        names = list(dict.fromkeys(str(record[key]) for record in cells))
        names = [metric_title(name) for name in names] if key == "metric" else names
        parts.append(", ".join(names) if len(names) <= 4 else f"{len(names)} {many}")
    several = "" if len(cells) == 1 else f" ({len(cells)} cells)"
    return " · ".join(parts) + several


def order_views() -> list[dict[str, Any]]:
    """The relations and total orders that the 2007 paper prints, and what its cells give."""
    return [_order_view(table) for table in published.relations()]


def _order_view(table: published.Relations) -> dict[str, Any]:
    names = tuple(sorted(table.score, key=list(table.score).index))
    from_cells = _orders_of_cells(table, names)
    return {
        "heading": f"Table {table.table} ({table.dataset})",
        "total": str(total_order(table.relations, names)),
        "total_of_cells": str(
            total_order({m: order.relations for m, order in from_cells.items()}, names)
        )
        if from_cells
        else "",
        "rows": [
            {
                "metric": metric_head(metric),
                "printed": ", ".join(f"{a} > {b}" for a, b in pairs) or "none",
                "of_cells": str(from_cells[metric]) if from_cells else "",
            }
            for metric, pairs in table.relations.items()
        ],
    }


def _orders_of_cells(table: published.Relations, names: Sequence[str]) -> dict[str, PartialOrder]:
    """Relations from printed cells: only where data sets are the rows, since folds are not told."""
    cells = {
        (cell.metric, cell.dataset, cell.algorithm): cell.published
        for cell in published.cells()
        if cell.paper == "000" and cell.table in table.cells
    }
    datasets = [
        name
        for name in dict.fromkeys(dataset for _, dataset, _ in cells)
        if not name.endswith("_average")
    ]
    if len(datasets) < 2:
        return {}
    return {
        metric: partial_order(
            [[_float(cells[metric, dataset, name]) for name in names] for dataset in datasets],
            names,
            metric,
        )
        for metric in table.relations
    }


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def comparison_views(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Comparisons by experiment: the method of the paper against each other one, and all ranks."""
    return [
        _comparison_view(title, list(some))
        for title, some in groupby(found, key=lambda one: one.title)
    ]


def _comparison_view(title: str, found: list[Comparison]) -> dict[str, Any]:
    first, paper = found[0], title[:3]
    own = next(
        (name for name in first.algorithms if name == published.papers()[paper].method),
        first.algorithms[0],
    )
    sources = list(dict.fromkeys(one.source for one in found))
    by_metric = {(one.metric, one.source): one for one in found}
    metrics = list(dict.fromkeys(one.metric for one in found))
    pairs = []
    for other in (name for name in first.algorithms if name != own):
        tests = {
            key: _seen_from(own, other, one)
            for key, one in by_metric.items()
            if {own, other} <= set(one.algorithms)
        }
        pairs.append(
            {
                "heading": f"{own} against {other}",
                "claims": [_claim(own, other, source, tests) for source in sources],
                "rows": [
                    {
                        "metric": metric_head(metric),
                        "tests": [_test(tests.get((metric, source))) for source in sources],
                    }
                    for metric in metrics
                ],
            }
        )
    return {
        "heading": f"{paper_title(paper)}: {title[4:]}",
        "datasets": ", ".join(first.datasets),
        "sources": sources,
        "pairs": pairs,
        "ranks": [
            {
                "metric": metric_head(one.metric),
                "source": one.source,
                "p_value": p_text(one.friedman.f_p_value),
                "ranks": ", ".join(
                    f"{name} {rank:.2f}"
                    for rank, name in sorted(
                        zip(one.friedman.mean_ranks, one.algorithms, strict=True)
                    )
                ),
            }
            for one in found
            if one.friedman is not None
        ],
    }


def _seen_from(own: str, other: str, one: Comparison) -> Pair:
    """The test of a pair, the first one's gain positive."""
    if (own, other) in one.pairs:
        return one.pairs[own, other]
    pair = one.pairs[other, own]
    return Pair(pair.statistic, pair.p_value, -pair.gain, pair.losses, pair.ties, pair.wins)


def _test(pair: Pair | None) -> dict[str, str]:
    if pair is None:
        return {"outcome": _NO_NUMBER, "gain": _NO_NUMBER, "p_value": _NO_NUMBER, "side": ""}
    found = pair.p_value is not None and pair.p_value < LEVEL
    better = pair.wins > pair.losses
    return {
        "outcome": f"{pair.wins} / {pair.ties} / {pair.losses}",
        "gain": f"{pair.gain:+.4f}",
        "p_value": p_text(pair.p_value),
        "side": ("better" if better else "worse") if found else "",
    }


def _claim(own: str, other: str, source: Source, tests: Mapping[tuple[str, Source], Pair]) -> str:
    """In how many metrics the paper's method is significantly better, in words."""
    some = [_test(pair)["side"] for (_, of), pair in tests.items() if of == source]
    numbers = "the published numbers" if source == "published" else "our numbers"
    return (
        f"By {numbers}, {own} is significantly better than {other} in {some.count('better')} of "
        f"{len(some)} metrics, and significantly worse in {some.count('worse')}."
    )


def p_text(p_value: float | None) -> str:
    """A p-value with three decimals; small ones as such."""
    if p_value is None:
        return _NO_NUMBER
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def setting_in_words(setting: Mapping[str, Any]) -> str:
    """The setting of a series on one line; a long list by its ends."""

    def told(value: Any) -> str:
        if isinstance(value, list) and len(value) > 3:
            return f"{value[0]} … {value[-1]}"
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return "; ".join(f"{key} {told(value)}" for key, value in setting.items())
