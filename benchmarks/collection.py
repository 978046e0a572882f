"""Is the 2017 paper's comparison confirmed by synthetic data, and why does ML-kNN fall behind?

`make_collection` generates a million items and 190,000 labels by default. All methods use one graph
with 100 neighbors per item, and rank the labels of new items. Tied labels get the worst rank.

Usage: python collection.py [--samples N] [--overlap V ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from measuring import printed, report
from scipy import sparse

import nearlabel as nl
from nearlabel.common.arrays import Array, Csr, Floats, entries_at, row_numbers, with_data
from nearlabel.common.validation import check_n_jobs
from nearlabel.labels.counts import label_totals, neighbor_counts
from nearlabel.labels.histograms import label_histograms
from nearlabel.labels.ranks import Ties
from nearlabel.labels.scores import LabelScores
from nearlabel.search import build_index

PUBLISHED = ("BRkNN", "BRkNN-w", "ML-kNN", "positive-sample")
QUESTION = "The 2017 paper's comparison on a synthetic collection"
N, NEW, K, FEATURES = 1_000_000, 10_000, 100, 128
LABELS_FOR_AN_ITEM = 0.19  # the vocabulary grows with the collection
OVERLAPS = (0.5, 4.0)
MOST_ITEMS = 100  # that list a label of the rare vocabulary: the number of neighbors
SUCCESS_AT = (5, 10, 100)
SMALL = 1 / (K + 1)  # smoothing that adds one row in total to the cells of a label
Z = 10.0  # of the paper's Table 2
PUBLIC = ("corel5k", "bibtex", "delicious")
BANDS = {"1-2": (1, 2), "3-10": (3, 10), "11-100": (11, 100), "over 100": (101, np.inf)}
CALIBRATED = ("ML-kNN", "ML-kNN, s = 1/(k+1)", "ML-kNN, even counts, s = 1/(k+1)")
CARRIERS = (2, 5, 10, 30)  # numbers of items of the labels whose posteriors are shown
FEWEST_PAIRS = 100  # of a new item and a label, below which a share is not reported


@dataclass(frozen=True)
class Problem:
    """One collection with one vocabulary: training items and new items."""

    name: dict[str, Any]
    graph: nl.NeighborGraph
    near: nl.NeighborGraph  # of the new items
    Y: Csr
    shown: Csr
    complete: Csr

    @property
    def unit(self) -> float:
        """The median distance of a neighbor."""
        return float(np.median(self.near.distances))


def problems(n: int, overlap: float, new: int = NEW) -> Iterator[Problem]:
    """A collection with all its labels, then without the frequent ones, on the same graphs."""
    q = round(n * LABELS_FOR_AN_ITEM)
    made = nl.datasets.make_collection(n, FEATURES, q, overlap=overlap, n_queries=new)
    index, threads = build_index(made.data.X, "euclidean", "auto"), check_n_jobs(-1)
    graph, near = index.graph(K, n_jobs=threads), index.graph(K, made.queries.X, n_jobs=threads)
    labels = made.data.Y, made.queries.Y, made.queries_complete
    yield Problem({"overlap": overlap, "vocabulary": "all"}, graph, near, *labels)
    rare = np.flatnonzero(label_totals(made.data.Y) <= MOST_ITEMS)
    labels = tuple(Y[:, rare] for Y in labels)
    yield Problem({"overlap": overlap, "vocabulary": "rare"}, graph, near, *labels)


def methods(unit: float) -> dict[str, Any]:
    """The paper's methods and some variants; z = 10 is in the unit of the distances."""
    return {
        "BRkNN": nl.BRkNN(K),
        "BRkNN-w": nl.BRkNN(K, weights="distance"),
        "ML-kNN": nl.MLkNN(K),
        "ML-kNN, s = 1/(k+1)": nl.MLkNN(K, smoothing=SMALL),
        "ML-kNN, k = 10": nl.MLkNN(10),
        "Mallows": nl.MallowskNN(K),
        "positive, z = 10 as rate": nl.PositivekNN(K, rate=Z / unit, random_state=0),
        "positive, z = 10 as width": nl.PositivekNN(K, rate=1 / (Z * unit), random_state=0),
        "positive, z fitted": nl.PositivekNN(K, random_state=0),
        "ML-kNN, even counts": nl.MLkNN(K, counts="even"),
        "ML-kNN, even counts, s = 1/(k+1)": nl.MLkNN(K, smoothing=SMALL, counts="even"),
    }


def scored_by_all(problem: Problem) -> tuple[dict[str, LabelScores], dict[str, float], float]:
    """The scores of each method, its CPU seconds, and the fitted rate."""
    scored, seconds, fitted = {}, {}, np.nan
    for name, model in methods(problem.unit).items():
        start = time.process_time()
        model.fit_graph(problem.graph, problem.Y)
        scored[name] = model.scores_from_graph(problem.near)
        seconds[name] = rounded(time.process_time() - start, 2)
        rate = getattr(model, "relative_rate_", None)
        fitted = fitted if rate is None else rate  # the last one is that of the fitted rate
    return scored, seconds, fitted


def measured(problem: Problem, *, reasons: bool) -> Iterator[dict[str, Any]]:
    """All results of one problem; with reasons, also what explains the ranks of ML-kNN."""
    scored, seconds, rate = scored_by_all(problem)
    yield {**problem.name, **sizes(problem), "fitted_relative_rate": rounded(rate)}
    for lists, truth in (("shown", problem.shown), ("complete", problem.complete)):
        for name, found in qualities(scored, truth):
            told = {**problem.name, "lists": lists, "method": name, **found}
            yield {**told, "fit_and_score_core_seconds": seconds[name]}
    totals, votes = label_totals(problem.Y), neighbor_counts(problem.near, problem.Y)
    for name, scores in scored.items():
        yield {**problem.name, "method": name, **by_band(scores, problem.shown, totals)}
    if reasons:
        yield from by_reach(scored, problem.shown, votes, totals)
        yield from cells(problem, votes, totals)
        posteriors = {name: scored[name] for name in CALIBRATED}
        yield from calibration(posteriors, problem.shown, votes, totals)


def on_real_data() -> Iterator[dict[str, Any]]:
    """The same methods on the far smaller public sets, if they are in the data folder."""
    for name in PUBLIC:
        try:
            data = nl.datasets.load(name)
        except FileNotFoundError as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        assert data.train is not None
        assert data.test is not None
        known, new = data.rows(data.train), data.rows(data.test)
        metric = "cosine" if sparse.issparse(data.X) else "euclidean"
        graph = nl.neighbor_graph(known.X, K, metric=metric, n_jobs=-1)
        near = nl.neighbor_graph(known.X, K, new.X, metric=metric, n_jobs=-1)
        scored, _, _ = scored_by_all(Problem({}, graph, near, known.Y, new.Y, new.Y))
        for method, found in qualities(scored, new.Y):
            yield {"data": name, "labels": int(new.Y.shape[1]), "method": method, **found}


def sizes(problem: Problem) -> dict[str, Any]:
    totals, recall = label_totals(problem.Y), problem.graph.recall
    return {
        "items": problem.Y.shape[0],
        "new_items": len(problem.near),
        "labels": problem.Y.shape[1],
        "labels_a_list": rounded(problem.Y.nnz / problem.Y.shape[0]),
        "true_labels_an_item": rounded(problem.complete.nnz / len(problem.near)),
        "share_of_labels_seen": rounded(np.mean(totals > 0)),
        "share_of_labels_of_at_most_10_items": rounded(np.mean(totals <= 10)),
        "recall_of_the_graph": "exact" if recall is None else str(recall),
        "median_distance": rounded(problem.unit),
    }


def inverse_ranks(scores: LabelScores, truth: Csr, ties: Ties = "max") -> Floats:
    """The mean of 1 / rank of the true labels, for each row with labels."""
    total = with_data(truth, 1 / scores.ranks_of(truth, ties).data).sum(axis=1)
    count = np.diff(truth.indptr)
    means: Floats = total[count > 0] / count[count > 0]
    return means


def qualities(scored: dict[str, LabelScores], truth: Csr) -> Iterator[tuple[str, dict[str, float]]]:
    """The metrics of the paper's Table 2 for each method, and the difference from BRkNN."""
    plain = inverse_ranks(scored["BRkNN"], truth)
    for name, scores in scored.items():
        means = inverse_ranks(scores, truth)
        gain = means - plain
        found = {
            "mean_inverse_rank": means.mean(),
            "more_than_brknn": gain.mean(),
            "its_standard_error": gain.std(ddof=1) / np.sqrt(len(gain)),
            "mean_inverse_rank_with_ties_by_column": inverse_ranks(scores, truth, "lower").mean(),
        }
        for at in SUCCESS_AT:
            found[f"success_at_{at}"] = nl.metrics.success_rate(truth, scores, at)
        yield name, {metric: rounded(value) for metric, value in found.items()}


def by_band(
    scores: LabelScores, truth: Csr, totals: Array, chosen: Any = True
) -> dict[str, float | None]:
    """The mean of 1 / rank over chosen true labels, by the number of items that carry them."""
    inverse, carriers = 1 / scores.ranks_of(truth).data, totals[truth.indices]
    return {
        f"mean_inverse_rank_{band}": mean_of(inverse[chosen & within(carriers, *span)])
        for band, span in BANDS.items()
    }


def by_reach(
    scored: dict[str, LabelScores], truth: Csr, votes: Csr, totals: Array
) -> Iterator[dict[str, Any]]:
    """True labels with all carriers among the neighbors, which never happens in training."""
    label = truth.indices
    found, count = entries_at(votes, row_numbers(truth), label)
    all_near = np.where(found, count, 0) == totals[label]
    for band, span in BANDS.items():
        here = within(totals[label], *span)
        yield {
            "carriers": band,
            "true_labels": int(here.sum()),
            "share_with_all_carriers_near": mean_of(all_near[here]),
        }
    for name, scores in scored.items():
        for which, chosen in (("all near", all_near), ("not all near", ~all_near)):
            yield {"method": name, "carriers": which, **by_band(scores, truth, totals, chosen)}


def cells(problem: Problem, votes: Csr, totals: Array) -> Iterator[dict[str, Any]]:
    """The training rows in the cells, one per label and count, of new items."""
    counted = label_histograms(problem.graph, problem.Y)
    cell, carriers = counted.cells(votes.indices, votes.data), totals[votes.indices]
    for band, span in BANDS.items():
        here = within(carriers, *span)
        with_label, without = counted.with_label[cell[here]], counted.without_label[cell[here]]
        yield {
            "carriers": band,
            "labels_among_the_neighbors": rounded(here.sum() / votes.shape[0]),
            "no_carrier_in_the_cell": mean_of(with_label == 0),
            "nobody_in_the_cell": mean_of(with_label + without == 0),
            "mean_factor_s_1": mean_of(factor(carriers[here], 1.0)),
            "mean_factor_small_s": mean_of(factor(carriers[here], SMALL)),
        }


def factor(n_l: Array, s: float) -> Floats:
    """The factor by which the smoothing of P(E | H_1) changes the odds of a label."""
    share: Floats = (s + n_l) / (s * (K + 1) + n_l)
    return share


def calibration(
    posteriors: dict[str, LabelScores], truth: Csr, votes: Csr, totals: Array
) -> Iterator[dict[str, Any]]:
    """How often new items list a label, by its votes, and the posteriors."""
    row, label = row_numbers(votes), votes.indices
    listed = entries_at(truth, row, label)[0]
    told = {name: scores.at(row, label) for name, scores in posteriors.items()}
    for n_l in CARRIERS:
        for count in range(1, n_l + 1):
            here = (totals[label] == n_l) & (votes.data == count)
            if here.sum() >= FEWEST_PAIRS:
                yield {
                    "items_with_the_label": n_l,
                    "votes": count,
                    "pairs": int(here.sum()),
                    "on_the_list": rounded(listed[here].mean(), 6),
                    **{name: rounded(values[here].mean(), 6) for name, values in told.items()},
                }


def within(values: Array, low: float, high: float) -> Array:
    inside: Array = (low <= values) & (values <= high)
    return inside


def mean_of(values: Array) -> float | None:
    return rounded(values.mean()) if len(values) else None


def rounded(value: Any, digits: int = 4) -> float:
    return round(float(value), digits)


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--samples", type=int, default=N, help="items of the collection")
    parser.add_argument("--overlap", type=float, nargs="+", default=OVERLAPS, help="of regions")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = [
        {"published": name, **printed("zhang-2017", "msr_bing", name)} for name in PUBLISHED
    ]
    rows += on_real_data()
    for overlap in options.overlap:
        for problem in problems(options.samples, overlap):
            first = problem.name == {"overlap": options.overlap[0], "vocabulary": "all"}
            rows += measured(problem, reasons=first)
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
