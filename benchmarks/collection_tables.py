"""The generated parts of docs/made_collection.md, from the result of collection.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
SUCCESS = ("success_at_5", "success_at_10", "success_at_100")
BANDS = ("1-2", "3-10", "11-100", "over 100")
# The paper's name of its method, of which there are three readings here.
PRINTED = {
    "BRkNN": "BRkNN",
    "BRkNN-w": "BRkNN-w",
    "ML-kNN": "ML-kNN",
    "positive, z = 10 as rate": "positive-sample",
    "positive, z = 10 as width": "positive-sample",
}


def parts(rows: list[Row]) -> dict[str, str]:
    """Each part by its name."""
    return {
        "sizes": sizes(rows),
        "ranks": ranks(rows),
        "success": success(rows),
        "bands": bands(rows),
        "factors": factors(rows),
        "reach": reach(rows),
        "posteriors": posteriors(rows),
        "public": public(rows),
    }


def having(rows: list[Row], column: str, **values: Any) -> list[Row]:
    """The rows that have a column, and have these values."""
    return [row for row in rows if column in row and values.items() <= row.items()]


def overlaps(rows: list[Row]) -> list[float]:
    return list(dict.fromkeys(row["overlap"] for row in rows if "overlap" in row))


def method_names(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["method"] for row in having(rows, "lists")))


def sizes(rows: list[Row]) -> str:
    everything, rare = having(rows, "median_distance", overlap=overlaps(rows)[0])
    rates = ", ".join(
        f"{row['fitted_relative_rate']:.2f} (overlap {row['overlap']}, {row['vocabulary']})"
        for row in having(rows, "fitted_relative_rate")
    )
    graph = everything["recall_of_the_graph"]
    searched = "exact" if graph == "exact" else f"with recall {graph}"
    return (
        f"{everything['items']:,} items and {everything['new_items']:,} new ones; "
        f"{everything['labels']:,} labels, {everything['labels_a_list']:.1f} on a list, of "
        f"{everything['true_labels_an_item']:.1f} that are true for an item. "
        f"{everything['share_of_labels_seen']:.0%} of the labels occur on a list, "
        f"{everything['share_of_labels_of_at_most_10_items']:.0%} on at most ten. The rare "
        f"vocabulary has {rare['labels']:,} labels and {rare['labels_a_list']:.1f} on a list. "
        f"The search was {searched}; the median distance of a neighbor is "
        f"{everything['median_distance']:.3f}. Fitted rates, times that distance: {rates}."
    )


def ranks(rows: list[Row]) -> str:
    """Mean inverse ranks, with the standard error of the difference from BRkNN."""
    first, *others = overlaps(rows)
    ways = [(first, "all", "shown"), (first, "all", "complete"), (first, "rare", "shown")]
    ways += [(overlap, vocabulary, "shown") for overlap in others for vocabulary in ("all", "rare")]
    printed = {row["published"]: row["MIR"] for row in having(rows, "published")}

    def line(method: str) -> list[str]:
        found = [
            having(rows, "lists", method=method, overlap=overlap, vocabulary=which, lists=lists)[0]
            for overlap, which, lists in ways
        ]
        cells = [rank(row) for row in found]
        ties = [f"{found[i]['mean_inverse_rank_with_ties_by_column']:.4f}" for i in (0, 2)]
        return [
            method,
            str(printed.get(PRINTED.get(method, ""), "")),
            *cells[:3],
            *ties,
            *cells[3:],
        ]

    heads = [
        *("", "paper", "all", "all, complete lists", "rare"),
        *("all, ties by column", "rare, ties by column"),
        *(f"{which}, overlap {overlap:g}" for overlap, which, _ in ways[3:]),
    ]
    return table(heads, map(line, method_names(rows)))


def success(rows: list[Row]) -> str:
    printed = {row["published"]: row for row in having(rows, "published")}

    def line(method: str) -> list[str]:
        paper = printed.get(PRINTED.get(method, ""), {})
        cells = [str(paper.get(f"SR@{at}", "")) for at in (5, 10, 100)]
        for vocabulary in ("all", "rare"):
            named = {"vocabulary": vocabulary, "method": method, "lists": "shown"}
            found = having(rows, "success_at_5", overlap=overlaps(rows)[0], **named)[0]
            cells += [f"{found[metric]:.3f}" for metric in SUCCESS]
        return [method, *cells]

    heads = [f"{who}, {at}" for who in ("paper", "all", "rare") for at in (5, 10, 100)]
    return table(["", *heads], map(line, method_names(rows)))


def bands(rows: list[Row]) -> str:
    columns = [("all", band) for band in BANDS] + [("rare", band) for band in BANDS[:3]]

    def line(method: str) -> list[str]:
        here = having(rows, "mean_inverse_rank_1-2", method=method, overlap=overlaps(rows)[0])
        found = {row["vocabulary"]: row for row in here}
        return [method, *(told(found[name][f"mean_inverse_rank_{band}"]) for name, band in columns)]

    heads = [f"{vocabulary}, {band}" for vocabulary, band in columns]
    return table(["", *heads], map(line, method_names(rows)))


def factors(rows: list[Row]) -> str:
    near = {row["carriers"]: row for row in having(rows, "share_with_all_carriers_near")}
    lines = [
        [
            row["carriers"],
            told(row["mean_factor_s_1"], ".3f"),
            told(row["mean_factor_small_s"], ".3f"),
            told(row["nobody_in_the_cell"], ".2%"),
            told(row["no_carrier_in_the_cell"], ".0%"),
            told(near[row["carriers"]]["share_with_all_carriers_near"], ".0%"),
        ]
        for row in having(rows, "nobody_in_the_cell")
    ]
    heads = [
        *("n_l", "factor, s = 1", "factor, s = 1/(k+1)", "cells with no training row"),
        *("cells with no carrier", "true labels with all carriers among the neighbors"),
    ]
    return table(heads, lines)


def reach(rows: list[Row]) -> str:
    def line(method: str) -> list[str]:
        cells = []
        for which in ("not all near", "all near"):
            found = having(rows, "mean_inverse_rank_1-2", method=method, carriers=which)[0]
            cells += [told(found[f"mean_inverse_rank_{band}"]) for band in BANDS[:3]]
        return [method, *cells]

    heads = [f"{which}, {band}" for which in ("some missing", "all near") for band in BANDS[:3]]
    return table(["", *heads], map(line, method_names(rows)))


def posteriors(rows: list[Row]) -> str:
    names = [name for name in method_names(rows) if name in having(rows, "on_the_list")[0]]
    lines = [
        [
            str(row["items_with_the_label"]),
            str(row["votes"]),
            f"{row['on_the_list']:.4f}",
            *(f"{row[name]:.4f}" for name in names),
        ]
        for row in having(rows, "on_the_list")
        if row["votes"] in (1, row["items_with_the_label"] - 1, row["items_with_the_label"])
    ]
    return table(["n_l", "votes", "new items that list it", *names], lines)


def public(rows: list[Row]) -> str:
    found = having(rows, "data")
    if not found:
        return "Not measured: the public sets were not in the data folder."
    sets = dict.fromkeys(row["data"] for row in found)
    ranks_of = {(row["data"], row["method"]): rank(row) for row in found}
    lines = ([method, *(ranks_of[data, method] for data in sets)] for method in method_names(rows))
    return table(["", *sets], lines)


def rank(row: Row) -> str:
    """A mean inverse rank and the standard error of its difference from that of BRkNN."""
    mean = f"{row['mean_inverse_rank']:.4f}"
    return mean if row["method"] == "BRkNN" else f"{mean} ± {row['its_standard_error']:.4f}"


def told(value: float | None, form: str = ".4f") -> str:
    """A number, or an empty string if there is none."""
    return "" if value is None else format(value, form)


def table(heads: list[str], lines: Iterable[list[str]]) -> str:
    """A Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
