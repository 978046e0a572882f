"""The generated parts of docs/scale.md, from three result files."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
METRICS = ("one_error", "ranking_loss", "average_precision", "coverage_share")


def needs(rows: list[Row]) -> str:
    """Time and memory of fits, and time of predictions."""
    fits = [row for row in rows if row["measured"] == "MLkNN.fit"]
    lines = [
        "`MLkNN.fit` with two threads, about 8 labels per item (`benchmarks/scale.py`); memory is "
        "the peak of the whole process without the mapped vectors:",
        "",
        "| data | items | features | labels | k | recall | core-seconds | seconds | GiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in fits:
        sizes = " | ".join(f"{row[name]:,}" for name in ("n", "d", "q", "k"))
        found = [row[name] for name in ("recall", "core_seconds", "wall_seconds", "peak_gib")]
        lines.append(f"| {row['data']} | {sizes} | {' | '.join(map(str, found))} |")
    growth = next(row for row in rows if row["measured"].startswith("growth"))
    rank = next(row for row in rows if row["measured"].startswith("MLkNN.rank"))
    exact = [row for row in rows if row["measured"] == "exact graph"]
    at = ", ".join(f"{row['core_seconds']} for {row['n']:,} items" for row in exact)
    hard = "".join(
        f" Among the {row['data']}: half within {row['single_ms_half_within']} ms, 99 % within "
        f"{row['single_ms_99_percent_within']} ms; {row['batch_items_a_second']:,} items per "
        "second in a batch."
        for row in fits
        if "single_ms_half_within" in row
    )
    return "\n".join(
        [
            *lines,
            "",
            "![Core-seconds of a fit by the number of items](images/scale.png)",
            "",
            f"From {growth['from_n']:,} to {growth['to_n']:,} items the core-seconds of a fit grow "
            f"as n to the power of {growth['exponent']}. The exact search alone takes {at}, and "
            "grows as n².",
            "",
            f"The ten best of {rank['q']:,} labels for a new item among {rank['n']:,}, by `rank`: "
            f"half of 1,000 single items within {rank['single_ms_half_within']} ms, 99 % within "
            f"{rank['single_ms_99_percent_within']} ms, with one thread; "
            f"{rank['batch_items_a_second']:,} items per second in a batch of 10,000, with two."
            f"{hard}",
        ]
    )


def short(rows: list[Row]) -> str:
    """The numbers in the README."""
    fit, rank = _largest(rows)
    return (
        f"ML-kNN fits {fit['n']:,} vectors with {fit['q']:,} labels in {fit['wall_seconds']:.0f} "
        f"seconds on two cores, finds {100 * fit['recall']:.2f} % of the neighbors, and ranks the "
        f"labels of a new item in {rank['single_ms_half_within']} ms"
    )


def sentence(rows: list[Row]) -> str:
    """The numbers on the page of results."""
    fit, rank = _largest(rows)
    return (
        f"Many items, too: `MLkNN.fit` of {fit['n']:,} mapped vectors of {fit['d']} features, "
        f"{fit['q']:,} labels, k = {fit['k']}, two threads: {fit['core_seconds']} core-seconds, "
        f"{fit['wall_seconds']} seconds, {fit['peak_gib']} GiB without the vectors, with "
        f"{100 * fit['recall']:.2f} % of the neighbors; then the ten best labels of a new item in "
        f"{rank['single_ms_half_within']} ms ([scale.md](scale.md))."
    )


def _largest(rows: list[Row]) -> tuple[Row, Row]:
    """The fit to most items, and the ranking after it."""
    fits = [row for row in rows if row["measured"] == "MLkNN.fit" and row["data"] == "clusters"]
    rank = next(row for row in rows if row["measured"].startswith("MLkNN.rank"))
    return max(fits, key=lambda row: row["n"]), rank


def against_faiss(rows: list[Row]) -> str:
    """Core-seconds of graphs of overlapping clusters at one recall."""
    return _against(
        rows,
        "in overlapping clusters, 100 neighbors, one thread (`benchmarks/approximate_search.py`). "
        "For faiss, the number of probes or of candidates is the smallest of those tried that "
        "reaches a recall of 0.98:",
    )


def against_others(rows: list[Row]) -> str:
    """Core-seconds of graphs of hard clusters at one recall."""
    return _against(
        [row for row in rows if row.get("core_seconds") is not None],
        "in hard clusters of about 700 rows, whose noise is as wide as the spread of their "
        "centers, 100 neighbors, one thread (`benchmarks/hard_clusters.py`). Each index of another "
        "library has the cheapest of the settings tried that reach a recall of 0.98; its time is "
        "extrapolated from 4,000 rows:",
    )


def _against(rows: list[Row], data: str) -> str:
    ours = rows[0]
    best = min(row["times_slower"] for row in rows if not row["search"].startswith("nearlabel"))
    lines = [
        f"{ours['n']:,} rows of 128 features {data}",
        "",
        "| search | setting | recall | core-seconds | times ours |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        setting = "" if row["setting"] is None else row["setting"]
        lines.append(
            f"| {row['search']} | {setting} | {row['recall']} | {row['core_seconds']} | "
            f"{row['times_slower']} |"
        )
    lines += ["", f"The fastest other index takes {best} times as long."]
    return "\n".join(lines)


def effect_of_recall(rows: list[Row]) -> str:
    """By how much metrics change."""
    lines = [
        "ML-kNN, k = 10, leave-one-out (`benchmarks/recall_effect.py`): the difference of each "
        "metric from that with exact neighbors, with the default seed / the largest of five seeds. "
        'These sets are so small that `search="approximate"` searches them exactly, without any '
        "difference; here the use of lists was forced:",
        "",
        "| data | requested recall | measured | one-error | ranking loss | average precision | "
        "coverage / q |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [" / ".join(f"{value:.4f}" for value in row[metric]) for metric in METRICS]
        lowest, highest = min(row["recall_measured"]), max(row["recall_measured"])
        lines.append(
            f"| {row['data']} | {row['recall_asked_for']} | {lowest:.4f} to {highest:.4f} | "
            f"{' | '.join(cells)} |"
        )
    return "\n".join(lines)
