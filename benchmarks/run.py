"""Run the benchmarks, keep their results as files, and write docs/benchmarks.md from these."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import baseline_tables
import cluster_tables
import collection_tables
import honesty_tables
import quality_tables
import scale_tables
import teaching_tables

from nearlabel.experiments.papers.printed_tables import papers
from nearlabel.features.scales import SCALES
from nearlabel.methods.registry import METHODS

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PAGES = HERE.parent / "docs" / "methods"
EXPERIMENTS = HERE.parent / "docs" / "experiments.md"
COLLECTION = HERE.parent / "docs" / "made_collection.md"
COLLECTIONS = HERE.parent / "docs" / "collection.md"
SCALE = HERE.parent / "docs" / "scale.md"
CLUSTER = HERE.parent / "docs" / "cluster.md"
METRICS = HERE.parent / "docs" / "metrics.md"
LABEL_SPACE = HERE.parent / "docs" / "label_space.md"
BLEND = HERE.parent / "docs" / "blend.md"
QUALITY = HERE.parent / "docs" / "quality.md"
README = HERE.parent / "README.md"
SUMMARY = HERE.parent / "docs" / "results.md"
FAMILY = PAGES / "README.md"
WITH_PEERS = ("against_peers", "exact_search", "published", "approximate_search", "hard_clusters")
WITHOUT = (
    *("label_kernels", "command_line", "reading", "model_files", "sparse_search", "methods"),
    "label_cuts",
    *("baselines", "c45_and_j48", "rank_svm_steps"),
    "quality",
    *("local_adaptation", "family_at_scale", "simplex", "dependent_counts"),
    *(
        "tuning",
        "scales",
        "even_counts",
        "blend_at_scale",
        "trees_at_scale",
        "honesty",
        "calibration",
        "text_distances",
        "reproduction",
        "collection",
        "scale",
        "recall_effect",
    ),
    *("hard_data", "special_ways", "living_models", "pictures", "teaching"),
    *("stored_collections", "vector_stores"),
    *("service", "page", "cluster"),
)


def measure(name: str, python: str, method: str | None = None) -> None:
    """Run one script with one BLAS thread, and keep its output.

    If it measures a single method, the results of the others are kept.
    """
    print(f"{name} …", flush=True)
    single = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    done = subprocess.run(
        [python, f"{name}.py", *([] if method is None else [method])],
        cwd=HERE,
        env={**os.environ, **single},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:  # the script printed the reason; an earlier result is kept
        print(f"{name} has no new result", flush=True)
        return
    result = json.loads(done.stdout)
    if method is not None:
        others = [row for row in result_of(name)["rows"] if row["method"] != method]
        result["rows"] = others + result["rows"]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")


def page() -> str:
    """All results as Markdown."""
    parts = [
        "# Measurements\n",
        "Made by `make bench` from the files in `benchmarks/results`. Times are core-seconds of "
        "one process with one BLAS thread, so that they can be compared on a shared machine; "
        "compare within a table, not across machines. Memory is the peak above the inputs.\n",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        if path.stem == "quality":  # it has its own page
            continue
        result = json.loads(path.read_text())
        parts.append(f"## {result['question']}\n")
        parts.extend(f"{table}\n" for table in tables(result["rows"]))
        versions = ", ".join(f"{name} {value}" for name, value in result["versions"].items())
        parts.append(f"`benchmarks/{path.stem}.py` on {versions}.\n")
    return "\n".join(parts)


def with_part(text: str, name: str, part: str) -> str:
    """A document with a generated part between its two marks, if it has them."""
    begin, end = f"<!-- {name}: made by `make bench` -->", f"<!-- end of {name} -->"
    if begin not in text:
        return text
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n{part}\n{end}{after}"


def documents() -> dict[Path, str]:
    """The text of each document with generated parts."""
    made = {PAGE: page(), README: with_part(README.read_text(), "five numbers", five_numbers())}
    made[SUMMARY] = with_part(SUMMARY.read_text(), "numbers", numbers())
    made[FAMILY] = with_part(FAMILY.read_text(), "family", about_family())
    experiments = with_part(EXPERIMENTS.read_text(), "tuning", about_tuning())
    experiments = with_part(experiments, "scales", about_scales())
    experiments = with_part(experiments, "text", about_text())
    experiments = with_part(experiments, "reproduction", about_reproduction())
    experiments = with_part(experiments, "orders", about_orders())
    steps = baseline_tables.steps(result_of("rank_svm_steps")["rows"])
    made[EXPERIMENTS] = with_part(experiments, "Rank-SVM by steps", steps)
    made[METRICS] = with_part(METRICS.read_text(), "calibration", about_calibration())
    made[COLLECTION] = COLLECTION.read_text()
    for name, part in collection_tables.parts(result_of("collection")["rows"]).items():
        made[COLLECTION] = with_part(made[COLLECTION], name, part)
    made[COLLECTIONS] = COLLECTIONS.read_text()
    for name, part in teaching_tables.parts(result_of("teaching")["rows"]).items():
        made[COLLECTIONS] = with_part(made[COLLECTIONS], name, part)
    scale = with_part(SCALE.read_text(), "scale", scale_tables.needs(result_of("scale")["rows"]))
    rows = result_of("approximate_search")["rows"]
    scale = with_part(scale, "approximate", scale_tables.against_faiss(rows))
    hard = result_of("hard_clusters")["rows"]
    scale = with_part(scale, "hard", scale_tables.against_others(hard))
    rows = result_of("recall_effect")["rows"]
    made[SCALE] = with_part(scale, "recall", scale_tables.effect_of_recall(rows))
    made[CLUSTER] = CLUSTER.read_text()
    known = (RESULTS / "cluster.json").exists()
    rows = result_of("cluster")["rows"] if known else []
    for name, part in cluster_tables.parts(rows, result_of("scale")["rows"]).items():
        made[CLUSTER] = with_part(made[CLUSTER], name, part)
    rows = result_of("honesty")["rows"]
    made[LABEL_SPACE] = with_part(
        LABEL_SPACE.read_text(), "honesty", honesty_tables.of_spaces(rows)
    )
    blend = with_part(BLEND.read_text(), "honesty", honesty_tables.of_blends(rows))
    quality = result_of("quality")["rows"]
    made[BLEND] = with_part(blend, "real sets", honesty_tables.of_real_sets(quality))
    made[QUALITY] = QUALITY.read_text()
    for name, part in quality_tables.parts(quality).items():
        made[QUALITY] = with_part(made[QUALITY], name, part)
    measured = {"thresholds", *(name.lower() for name in METHODS)}
    for path in (one for one in PAGES.glob("*.md") if one.stem in measured):
        part = about_cuts() if path.stem == "thresholds" else about(path.stem)
        made[path] = with_part(path.read_text(), "figure", part)
        made[path] = with_part(made[path], "even counts", about_even_counts())
    rows, of_methods, [weka] = (
        result_of(name)["rows"] for name in ("baselines", "methods", "c45_and_j48")
    )
    for page_name, some in baseline_tables.parts(rows, of_methods, weka).items():
        path = PAGES / f"{page_name}.md"
        made[path] = path.read_text()
        for name, part in some.items():
            made[path] = with_part(made[path], name, part)
    return made


def about_family() -> str:
    """Average precision of every method on some sets, the best in bold."""
    sets, k = ("emotions", "scene", "yeast", "enron", "slashdot", "corel5k", "bibtex"), 10
    rows = [row for row in result_of("methods")["rows"] if row["data"] in sets and row["k"] == k]
    found = {(row["method"], row["data"]): row.get("average_precision") for row in rows}
    best = {
        data: max(filter(None, (found[m, data] for m, d in found if d == data))) for data in sets
    }
    lines = [
        f"Average precision on held-out rows of public sets, k = {k}, all methods with default "
        "parameters (dense features min-max scaled, texts unscaled):",
        "",
        "| | " + " | ".join(sets) + " |",
        "|---|" + "---|" * len(sets),
    ]
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [
            f"**{found[method, data]}**"
            if found[method, data] == best[data]
            else shown(found[method, data])
            for data in sets
        ]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def about(page: str) -> str:
    """Results of a method on real data compared with ML-kNN; of ML-kNN with BRkNN."""
    rows = result_of("methods")["rows"]
    method = next(name for name in METHODS if name.lower() == page)
    if method not in {row["method"] for row in rows}:
        command = f"python benchmarks/run.py --only methods --method {method}"
        return f"Not measured on real data yet; run `{command}`."
    other = "BRkNN" if method == "MLkNN" else "MLkNN"
    found = {(row["data"], row["method"], row["k"]): row for row in rows}
    counts = sorted({row["k"] for row in rows})
    heads = [f"{name}, k = {k}" for k in counts for name in (method, other)]
    lines = [
        f"![Average precision of {method} minus that of {other} on several data sets]"
        f"(../images/methods/{page}.png)",
        "",
        "Average precision on held-out rows (dense features min-max scaled, texts unscaled), and "
        f"processor seconds of {method} without the search, for k = {counts[0]}:",
        "",
        "| data | labels | " + " | ".join(heads) + " | seconds |",
        "|---|---|" + "---|" * (len(heads) + 1),
    ]
    for data in dict.fromkeys(row["data"] for row in rows):
        some = [found[data, name, k] for k in counts for name in (method, other)]
        cells = [shown(row.get("average_precision")) for row in some]
        seconds = shown(some[0]["core_seconds"])
        lines.append(f"| {data} | {some[0]['labels']} | {' | '.join(cells)} | {seconds} |")
    return "\n".join(lines)


def about_tuning() -> str:
    """The cost of searches for parameters."""
    lines = [
        "| 10,000 rows, 100 features, 50 labels | core-seconds | times one fit |",
        "|---|---|---|",
    ]
    for what, seconds, times in (row.values() for row in result_of("tuning")["rows"]):
        lines += [f"| {what} | {seconds} | {times} |"]
    return "\n".join(lines)


def about_scales() -> str:
    """Average precision by scale."""
    rows = result_of("scales")["rows"]
    scales = [name for name in SCALES if name in rows[0] and name != "auto"]
    own = " and ".join(row["data"] for row in rows if row["split"] == "holdout")
    lines = [
        "Average precision of ML-kNN with k = 20, convention paper, on the official test rows "
        f"({own} have none: on a third of their rows, drawn with seed 0):",
        "",
        "| | " + " | ".join(f"`{scale}`" for scale in scales) + " | chosen by `auto` |",
        "|---|" + "---|" * (len(scales) + 1),
    ]
    for row in rows:
        cells = [shown(row[scale]) for scale in scales]
        lines.append(f"| {row['data']} | {' | '.join(cells)} | `{row['chosen_by_auto']}` |")
    return "\n".join(lines)


def about_even_counts() -> str:
    """Even counts compared with those of the paper."""
    lines = [
        "Public sets, k = 100: average precision (convention paper), and the mean inverse rank of "
        "true labels that are rare, with at most 100 training rows:",
        "",
        "| data | s | true labels that are rare | average precision, paper | even "
        "| rare labels, paper | even |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result_of("even_counts")["rows"]:
        if row["k"] == 100:
            s = "1" if row["smoothing"] == 1 else "1/(k+1)"
            share = f"{row['true_labels_that_are_rare']:.0%}"
            names = ("ap_paper", "ap_even", "rare_paper", "rare_even")
            cells = " | ".join(shown(row[name]) for name in names)
            lines.append(f"| {row['data']} | {s} | {share} | {cells} |")
    return "\n".join(lines)


def about_text() -> str:
    """How often a different distance or scaling was better on text."""
    rows = result_of("text_distances")["rows"]

    def better(way: str) -> str:
        tried = [row for row in rows if f"ap_{way}" in row]
        sets = len({row["data"] for row in tried})
        won = sum(row[f"ap_{way}"] > row["ap_raw"] for row in tried)
        return f"{won} of {len(tried)} times on {sets} sets"

    gains = {
        row["data"]: f"{row['ap_raw']} and {row['ap_cosine']}"
        for row in rows
        if row["method"] == "MLkNN" and not row["data"].startswith("yahoo")
    }
    listed = ", ".join(f"{data} {pair}" for data, pair in gains.items())
    return (
        "On text, the cosine distance has a better average precision than the Euclidean distance "
        f"of the papers {better('cosine')}, with ML-kNN and BRkNN and k chosen by leave-one-out, "
        f"up to 100. With ML-kNN: {listed}. On the word counts of yahoo, min-max scaling is better "
        f"{better('minmax')}."
    )


def about_calibration() -> str:
    """Calibration errors of all methods, before and after calibration."""
    every = result_of("calibration")["rows"]
    rows = [row for row in every if "method" in row]
    sets = list(dict.fromkeys(row["data"] for row in rows))
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found.setdefault((row["method"], row["probabilities"]), []).append(f"{row['error']:.3f}")
    lines = [
        "![Reliability diagrams of PositivekNN and BalancedkNN on four sets: after calibration "
        "most bins are near the diagonal](images/calibration.png)",
        "",
        "| method | probabilities | " + " | ".join(sets) + " |",
        "|---|---|" + "---|" * len(sets),
    ]
    for (method, which), errors in found.items():
        lines.append(f"| `{method}` | {which} | {' | '.join(errors)} |")
    lines += [
        "",
        "Maps for `BalancedkNN`, on leave-one-out scores of training rows in five folds, each "
        "mapped by one learned from the other four; means over these sets:",
        "",
        "| isotonic regression | error | mean squared error | error on the predicted side |",
        "|---|---|---|---|",
    ]
    tried = [row for row in every if "map" in row]
    for name in dict.fromkeys(row["map"] for row in tried):
        some = [row for row in tried if row["map"] == name]
        keys = ("error", "squared_error", "error_beside_decisions")
        means = (sum(row[key] for row in some) / len(some) for key in keys)
        lines.append(f"| {name} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    return "\n".join(lines)


def about_reproduction() -> str:
    """Published cells by verdict."""
    rows = result_of("reproduction")["rows"]
    verdicts = [name for name in rows[0] if name not in ("paper", "algorithm")]
    heads = " | ".join(verdicts)
    lines = [f"| paper | algorithm | {heads} |", "|---|---|" + "---|" * len(verdicts)]
    for row in rows:
        if "paper" in row:
            cells = " | ".join(str(row[verdict]) for verdict in verdicts)
            lines.append(f"| {papers()[row['paper']].title} | {row['algorithm']} | {cells} |")
    shares = [row for row in rows if "agree" in row]
    listed = "; ".join(
        f"{papers()[row['cells_of']].title} {row['agree']} of {row['of']}" for row in shares
    )
    agree, of = (sum(row[name] for row in shares) for name in ("agree", "of"))
    times = [
        f"The first run took {row['first_run']} seconds with two threads, a second one "
        f"{row['second_run']}."
        for row in rows
        if "first_run" in row
    ]
    told = f"Cells that were run and agree: {listed}; all five papers {agree} of {of}."
    return "\n".join([*lines, "", told, *times])


def about_orders() -> str:
    """Partial and total orders of Zhang and Zhou (2007), printed and from our runs."""
    parts = []
    rows = [row for row in result_of("reproduction")["rows"] if "order" in row]
    for heading in dict.fromkeys(row["order"] for row in rows):
        some = [row for row in rows if row["order"] == heading]
        heads = [name for name in some[0] if name != "order"]
        lines = [f"**{heading}**", "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        lines += ["| " + " | ".join(row[name] for name in heads) + " |" for row in some]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def about_cuts() -> str:
    """The effect of learned thresholds."""
    rows = result_of("label_cuts")["rows"]
    lines = [
        "Macro F1 on the official test rows, raw features, k = 10. A label that no test row has "
        "and that is never predicted counts 1 in the convention `paper` and 0 in `sklearn`.",
        "",
        "| data | method | own decision, paper | thresholds, paper | own, sklearn "
        "| thresholds, sklearn |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            shown(row[f"macro_f1_{convention}_{which}"])
            for convention in ("paper", "sklearn")
            for which in ("own", "cuts")
        ]
        lines.append(f"| {row['data']} | {row['method']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def five_numbers() -> str:
    """The numbers in the README."""
    shares = [row for row in result_of("reproduction")["rows"] if "agree" in row]
    agree, of = (sum(row[name] for row in shares) for name in ("agree", "of"))
    first = next(row for row in shares if row["cells_of"] == "zhang-2007")
    peers = result_of("against_peers")["rows"]
    fits = [row for row in peers if row.get("measured") == "fit and predict_proba"]
    few, many = sorted(fits, key=lambda row: (row["n"], row["q"]))[-2:]
    graph = result_of("exact_search")["rows"][0]
    large = {row["what"]: row for row in result_of("label_kernels")["rows"]}
    rank = large["MLkNN.rank_from_graph, top 10"]
    rows = [
        (
            "published numbers",
            f"of {of} numbers in the tables of five papers that can be computed again, {agree} "
            f"agree; of Zhang and Zhou (2007), {first['agree']} of {first['of']}",
        ),
        (
            "scikit-multilearn-ng",
            f"ML-kNN is {few['times_faster_than_ng']:.0f} times faster with {few['q']} labels, "
            f"{many['times_faster_than_ng']:.0f} times with {many['q']}",
        ),
        (
            "exact search",
            f"{graph['times_faster_than_faiss']:.1f} times faster than faiss, "
            f"{graph['times_faster_than_scikit_learn']:.1f} times faster than scikit-learn",
        ),
        ("a million items", scale_tables.short(result_of("scale")["rows"])),
        (
            f"{rank['q']:,} labels",
            f"the ten best of {rank['n']:,} rows take {rank['peak_mib']} MiB above the inputs; one "
            f"dense matrix of scores would take {rank['n'] * rank['q'] * 8 / 2**30:,.0f} GiB",
        ),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def numbers() -> str:
    """The most important measurements, for the page of results."""
    published = result_of("published")["rows"]
    metrics = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
    lines = ["| | " + " | ".join(metric.replace("_", " ") for metric in metrics) + " |"]
    lines.append("|---|" + "---|" * len(metrics))
    for row in published:
        if row["data"] == "birds":
            continue
        who = row["who"]
        if who == "published":
            who = f"**{row['data']}**, {row['setting']}: published"
        lines.append(f"| {who} | " + " | ".join(shown(row[metric]) for metric in metrics) + " |")
    peers = result_of("against_peers")["rows"]
    fits = [row for row in peers if row.get("measured") == "fit and predict_proba"]
    few, many = sorted(fits, key=lambda row: (row["n"], row["q"]))[-2:]
    start = {row["command"]: row["seconds"] for row in result_of("command_line")["rows"]}
    sklearn = start["python -c 'import sklearn'"]
    large = {row["what"]: row for row in result_of("label_kernels")["rows"]}
    fit, rank = large["MLkNN.fit_graph"], large["MLkNN.rank_from_graph, top 10"]
    return "\n".join(
        [
            *lines,
            "",
            "Time, core-seconds of fit and `predict_proba` on one thread, "
            f"{few['n']:,} + {few['new']:,} rows of {few['d']} features: "
            f"{few['times_faster_than_ng']:.0f} times faster than scikit-multilearn-ng with "
            f"{few['q']} labels, {many['times_faster_than_ng']:.0f} times with {many['q']}.",
            *about_search(),
            "",
            f"Many labels, {fit['n']:,} rows, {fit['q']:,} labels, a given graph with {fit['k']} "
            f"neighbors, core-seconds on one thread and memory above the inputs: `fit_graph` "
            f"{fit['core_seconds']} s and {fit['peak_mib']} MiB, the ten best labels of all rows "
            f"{rank['core_seconds']} s and {rank['peak_mib']} MiB. One dense matrix of scores "
            f"would be {fit['n'] * fit['q'] * 8 / 2**30:,.0f} GiB.",
            "",
            scale_tables.sentence(result_of("scale")["rows"]),
            "",
            f"Start of the command line: help in {start['nearlabel --help']} s, `evaluate` on 600 "
            f"rows in {start['nearlabel evaluate, 600 rows']} s, where `import sklearn` alone "
            f"takes {sklearn} s.",
        ]
    )


def about_search() -> list[str]:
    """The exact search compared with others; empty if it was not measured."""
    if not (RESULTS / "exact_search.json").exists():
        return []
    result = result_of("exact_search")
    graph = result["rows"][0]
    return [
        "",
        f"Exact search, the {graph['k']} neighbors of each of {graph['n']:,} rows of {graph['d']} "
        f"features in {graph['input']}, core-seconds on one thread: "
        f"{graph['times_faster_than_faiss']} times faster than faiss, "
        f"{graph['times_faster_than_scikit_learn']} times faster than scikit-learn's brute force. "
        f"It takes {graph['times_the_product']} of the time that BLAS needs to multiply all rows "
        f"with all rows, because a block is computed once for its rows and its columns. Engine: "
        f"{result['versions']['engine']}.",
    ]


def result_of(name: str) -> Any:
    """A kept result."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """Rows with the same columns, as Markdown tables."""
    kinds: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(tuple(row), []).append(row)
    found = []
    for columns, members in kinds.items():
        lines = ["| " + " | ".join(column.replace("_", " ") for column in columns) + " |"]
        lines.append("|" + " --- |" * len(columns))
        lines += ["| " + " | ".join(shown(row[c]) for c in columns) + " |" for row in members]
        found.append("\n".join(lines))
    return found


def shown(value: Any) -> str:
    """A value formatted for readers."""
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="the Python of the environment with the peers")
    parser.add_argument("--only", choices=(*WITHOUT, *WITH_PEERS), help="one benchmark")
    parser.add_argument("--method", choices=METHODS, help="one method, with --only methods")
    parser.add_argument("--pages", action="store_true", help="write the pages, measure nothing")
    arguments = parser.parse_args()
    if arguments.method and arguments.only != "methods":
        parser.error("--method can only be used with --only methods")
    for name in () if arguments.pages else WITHOUT:
        if arguments.only in (None, name):
            measure(name, sys.executable, arguments.method)
    for name in WITH_PEERS if arguments.peers and not arguments.pages else ():
        if arguments.only in (None, name):
            measure(name, arguments.peers)
    for path, text in documents().items():
        path.write_text(text)
    print("wrote docs/benchmarks.md and the numbers of README.md and of docs")


if __name__ == "__main__":
    main()
