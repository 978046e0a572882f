"""The generated parts of docs/methods about the baselines, from their result files."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
ROUNDS = (10, 30, 50, 100, 200, 500)
METRICS = ("average_precision", "ranking_loss", "one_error", "hamming_loss")


def parts(rows: list[Row], of_methods: list[Row], beside_weka: Row) -> dict[str, dict[str, str]]:
    """The parts by page and by mark; `of_methods` are the rows of methods.json."""
    of = {
        name: [row for row in rows if row["baseline"] == name]
        for name in dict.fromkeys(row["baseline"] for row in rows)
    }
    neighbors = {
        row["data"]: row.get("average_precision")
        for row in of_methods
        if row["method"] == "MLkNN" and row["k"] == 10
    }
    return {
        "adaboostmh": {
            "boosting": boosting(of["AdaBoostMH"], neighbors),
            "rounds": rounds(of["AdaBoostMH"]),
        },
        "adtboostmh": {"trees": alternating_trees(of["ADTBoostMH"], of["AdaBoostMH"])},
        "ranksvm": {"ranking": ranking(of["RankSVM"]), "solver": solver(of["RankSVM"])},
        "c45tree": {"trees": decision_trees(of["C45Tree"]), "J48": j48(beside_weka)},
        "pmm": {"texts": texts(of["PMM"]), "words": words(of["PMM"])},
    }


def steps(rows: list[Row]) -> str:
    """Rank-SVM after some steps of its solver, next to the printed numbers."""
    names = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
    titles = ["Hamming loss", "one-error", "coverage", "ranking loss", "average precision"]
    found, last = [], ""
    for row in (one for one in rows if "steps" in one):
        where = f"{row['paper'][-4:]}, Table {row['tables']}: {row['data']}"
        values = [number(row[name], 3) for name in names]
        spread = "" if row["std"] is None else f" ± {row['std']:.3f}"
        found.append(["" if where == last else where, row["steps"], *values])
        found[-1][-1] += spread
        last = where
    changed = [
        [row["yeast_with"], *(number(row[name], 3) for name in names)]
        for row in rows
        if "yeast_with" in row
    ]
    return (
        table(["Zhang and Zhou", "steps", *titles], found)
        + "\n\nYeast with the official split, solved, with one parameter changed:\n\n"
        + table(["changed", *titles], changed)
    )


def table(heads: list[str], rows: list[list[Any]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def number(value: float | None, decimals: int = 4) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def boosting(rows: list[Row], neighbors: dict[str, float | None]) -> str:
    of = {(row["data"], row["smoothing"]): row for row in rows if "smoothing" in row}
    found = []
    for name in dict.fromkeys(data for data, _ in of):
        program, article = of[name, "program"], of[name, "article"]
        sizes = f"{program['rows']}, {program['features']}, {program['labels']}"
        each = (program["average_precision"], article["average_precision"], neighbors.get(name))
        losses = (program["hamming_loss"], article["hamming_loss"])
        cells = [number(value) for value in (*each, *losses)]
        found.append([name, sizes, *cells, number(program["core_seconds"], 2)])
    heads = ["data", "rows, features, labels", "average precision", 'with "article"', "MLkNN"]
    return table([*heads, "Hamming loss", 'with "article"', "seconds"], found)


def rounds(rows: list[Row]) -> str:
    return table(
        ["data", *map(str, ROUNDS)],
        [
            [row["data"], *(number(row[f"after_{done}"]) for done in ROUNDS)]
            for row in rows
            if "after_10" in row
        ],
    )


def alternating_trees(rows: list[Row], boosted: list[Row]) -> str:
    of = {row["data"]: row for row in boosted if row.get("smoothing") == "program"}
    found = []
    for row in rows:
        pairs = ((row[name], of[row["data"]][name]) for name in (METRICS[0], METRICS[3]))
        cells = [number(value) for pair in pairs for value in pair]
        below = row["conditions_below_the_root"]
        found.append([row["data"], *cells, below, number(row["core_seconds"], 2)])
    heads = ["data", "average precision", "AdaBoostMH", "Hamming loss", "AdaBoostMH"]
    return table([*heads, "conditions below another one", "seconds"], found)


def ranking(rows: list[Row]) -> str:
    found, last = [], ""
    for row in (one for one in rows if "parameters" in one):
        told = row["parameters"]
        if told != "MLkNN":
            kernel = f"degree {told['degree']}" if told["kernel"] == "poly" else told["kernel"]
            told = f"RankSVM, {kernel}" + (", C = 100" if told.get("C") == 100 else "")
        solved = ["", "", ""]
        if "gap" in row:
            solved = [f"{row['gap']:.1e}", row["iterations"], number(row["core_seconds"], 1)]
        data = "" if row["data"] == last else row["data"]
        found.append([data, told, *(number(row[name]) for name in METRICS), *solved])
        last = row["data"]
    heads = ["data", "method", "average precision", "ranking loss", "one-error", "Hamming loss"]
    return table([*heads, "gap", "iterations", "seconds"], found)


def solver(rows: list[Row]) -> str:
    [peak] = [row["peak_mib"] for row in rows if "peak_mib" in row]
    eight, three = (row for row in rows if "rows_of_enron" in row)
    return (
        f"Fitting yeast takes {peak} MiB at its peak, in addition to the data. Nearly all training "
        "rows are support vectors: each has many pairs of labels, and one of them is enough.\n\n"
        "With unscaled features, degree 8 can be out of reach. On 300 rows of enron, "
        f"whose features are words, the gap is {eight['gap']:.0e} after {eight['iterations']} "
        f"iterations with degree 8; with degree 3 it is {three['gap']:.0e} after "
        f"{three['iterations']}."
    )


def decision_trees(rows: list[Row]) -> str:
    of = {(row.get("data"), row["method"]): row for row in rows}
    found = []
    for name in dict.fromkeys(row["data"] for row in rows if "data" in row):
        tree, near = of[name, "C45Tree"], of[name, "MLkNN"]
        pairs = ((tree[metric], near[metric]) for metric in METRICS[:2])
        cells = [number(value) for pair in pairs for value in pair]
        sizes = [tree["labels"], tree["nodes_per_tree"]]
        found.append([name, *sizes, *cells, number(tree["core_seconds"], 1)])
    folds = {row["method"]: row for row in rows if "ten_folds_of" in row}
    told = [
        f"{metric.replace('_', ' ')} {number(folds['C45Tree'][metric])} "
        f"({number(folds['MLkNN'][metric])})"
        for metric in ("hamming_loss", "ranking_loss", "average_precision")
    ]
    heads = ["data", "labels", "nodes per tree", "average precision", "MLkNN, k = 10"]
    return (
        table([*heads, "ranking loss", "MLkNN, k = 10", "seconds"], found)
        + "\n\nEmotions by ten folds, with MLkNN in parentheses: "
        + ", ".join(told)
        + "."
    )


def j48(row: Row) -> str:
    texts = row["data_sets"] - row["equal_texts"]
    return (
        f"J48 of WEKA {row['weka']} and the tree learner were run on {row['data_sets']:,} "
        "generated data sets with 6 to 400 rows, 2 to 6 classes, numeric and nominal features, "
        "up to 30 % missing values and several values of `-M` and `-C`. "
        f"{row['equal_trees']:,} trees are the same; {texts} "
        "of the printed texts differ, some only in the last digit of a weight. The class shares "
        "of 40 new rows with missing values differ by at most "
        f"{row['greatest_difference_of_shares']:.0e}."
    )


def texts(rows: list[Row]) -> str:
    found, last = [], ""
    for row in (one for one in rows if "method" in one):
        method = row["method"].removesuffix(", euclidean")
        values = [number(row["average_precision"]), number(row["micro_f1"])]
        size, updates = number(row["labels_predicted"], 2), row.get("updates", "")
        is_next = row["data"] != last
        told = [row["data"], number(row["labels_per_row"], 2)] if is_next else ["", ""]
        found.append([*told, method, *values, size, updates])
        last = row["data"]
    heads = ["data", "labels per row", "method", "average precision", "micro F1", "size"]
    bibtex = [row for row in rows if row.get("data") == "bibtex" and "updates" in row]
    learned, scored = (
        " and ".join(number(row[name], 2) for row in bibtex)
        for name in ("core_seconds", "scoring_seconds")
    )
    return (
        table([*heads, "updates"], found)
        + "\n\nLearning bibtex (4880 rows, 159 labels, 1836 words) took PMM1 and PMM2 "
        + f"{learned} processor seconds, scoring its 2515 test rows {scored}."
    )


def words(rows: list[Row]) -> str:
    as_they_are = {row["data"]: row for row in rows if row.get("method") == "PMM1"}
    changed = {(row["data"], row["words"]): row for row in rows if "words" in row}
    names = list(dict.fromkeys(data for data, _ in changed))
    kept, more, occurs = (
        " and ".join(number(found["average_precision"]) for found in some)
        for some in (
            [as_they_are[name] for name in names],
            [changed[name, "times 100"] for name in names],
            [changed[name, "occurs"] for name in names],
        )
    )
    return (
        f"The average precision of PMM1 on {' and '.join(names)} is {kept} with their weights, "
        f"{more} with the weights times 100, and {occurs} if X says only whether a word occurs."
    )
