"""What do counting and ranking labels cost for a million rows and 190,000 labels?

The neighbors of a row are mostly from its own topic, and so are half of its labels. The NumPy twins
of the kernels run on part of the rows; their times are extrapolated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from measuring import core_seconds, peak_mib, report
from scipy import sparse

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr
from nearlabel.labels.counts import blocks_of_votes, group_totals
from nearlabel.labels.histograms import (
    LabelHistograms,
    add_to_histograms,
    label_histograms,
)

QUESTION = "Counting and ranking many labels, given the graph"
N, K, Q, TOP, PART = 1_000_000, 100, 190_000, 10, 50_000
TOPICS, TOPIC_LABELS, OWN_TOPIC = 1_000, 40, 0.7


def _spread(rng: np.random.Generator, size: Array, draws: int) -> Array:
    """Distinct numbers below `size`, one from each of `draws` equal parts; shape (rows, draws)."""
    part = size[:, None] // draws
    numbers: Array = np.arange(draws) * part + (rng.random((len(size), draws)) * part).astype(int)
    return numbers


def topic_graph(rng: np.random.Generator, topic: Array, k: int) -> nl.NeighborGraph:
    """Distinct neighbors of each row, without the row itself, mostly from its own topic."""
    n, own = len(topic), round(OWN_TOPIC * k)
    by_topic = np.argsort(topic, kind="stable")
    size = np.bincount(topic, minlength=TOPICS)
    begin = np.cumsum(size) - size
    place = np.empty(n, np.int32)
    place[by_topic] = np.arange(n, dtype=np.int32)
    indices = np.empty((n, k), np.int32)
    for start in range(0, n, 2**16):
        here = slice(start, min(start + 2**16, n))
        mine = topic[here]
        # Steps around the circle of the row's topic, and around that of all other rows.
        near = place[here] - begin[mine]
        near = (near[:, None] + 1 + _spread(rng, size[mine] - 1, own)) % size[mine][:, None]
        far = (begin[mine] + size[mine])[:, None] + _spread(rng, n - size[mine], k - own)
        indices[here, :own] = by_topic[begin[mine][:, None] + near]
        indices[here, own:] = by_topic[far % n]
        rng.permuted(indices[here], axis=1, out=indices[here])
    # Distances are not used here, so all are the same number.
    distances = np.broadcast_to(np.float32(1), indices.shape)
    return nl.NeighborGraph.unchecked(indices, distances, n)


def topic_labels(rng: np.random.Generator, topic: Array, q: int = Q) -> Csr:
    """About 7.6 labels per row: half by Zipf's law from all, half from those of the topic."""
    n = len(topic)
    share = np.cumsum(1 / np.arange(1, q + 1))
    zipf = np.searchsorted(share, rng.random((n, 4)) * share[-1])
    columns = rng.permutation(q)  # frequent labels can be in any column
    of_topic = rng.integers(q, size=(TOPICS, TOPIC_LABELS))
    chosen = of_topic[topic[:, None], rng.integers(TOPIC_LABELS, size=(n, 4))]
    label = np.hstack([columns[zipf], chosen]).ravel()
    kept = rng.random(label.size) < 0.975
    row = np.repeat(np.arange(n), 8)[kept]
    Y = sparse.csr_array((np.ones(len(row), np.int8), (row, label[kept])), shape=(n, q))
    Y.sum_duplicates()
    small = Y.indices.astype(np.int32), Y.indptr.astype(np.int32)
    return sparse.csr_array((np.ones(Y.nnz, np.int8), *small), shape=Y.shape)


def problem(n: int, k: int = K, q: int = Q) -> tuple[nl.NeighborGraph, Csr]:
    """The graph and the labels."""
    rng = np.random.default_rng(0)
    topic = rng.integers(TOPICS, size=n)
    return topic_graph(rng, topic, k), topic_labels(rng, topic, q)


def scipy_products(graph: nl.NeighborGraph, Y: Csr) -> None:
    """Only the counts, neither sorted nor kept."""
    for _, block in blocks_of_votes(graph, Y):
        n, k = block.indices.shape
        ones = np.ones(n * k, np.int32)
        votes = (ones, block.indices.ravel(), np.arange(0, n * k + 1, k, dtype=np.int32))
        _ = sparse.csr_array(votes, shape=(n, Y.shape[0])) @ Y


def measured(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result of `work`, its core-seconds, and its memory above the inputs."""
    results: list[Any] = []

    def timed() -> None:
        start = time.process_time()
        results.append(work())
        results.append(time.process_time() - start)

    mib = peak_mib(timed)
    return results[0], {"core_seconds": round(results[1], 2), "peak_mib": round(mib)}


def scaled(work: Callable[[], Any]) -> float:
    """Core-seconds for all rows, from those of a part."""
    return round(core_seconds(work, 1) * N / PART, 1)


def main() -> None:
    graph, Y = problem(N)
    part = graph.rows(0, PART)
    _, counting = measured(lambda: label_histograms(graph, Y))
    blank = LabelHistograms.of_totals(*group_totals(Y, None), K)
    tables = blank.start, blank.with_label, blank.without_label

    model, fitting = measured(lambda: nl.MLkNN(n_neighbors=K).fit_graph(graph, Y))
    ranked, ranking = measured(lambda: model.rank_from_graph(graph, top=TOP))
    with mock.patch.object(engine, "core", return_value=None):
        by_numpy = model.rank_from_graph(part, top=TOP)
        rank_by_numpy = scaled(lambda: model.rank_from_graph(part, top=TOP))
    np.testing.assert_array_equal(ranked.labels[:PART], by_numpy.labels)
    np.testing.assert_array_equal(ranked.scores[:PART], by_numpy.scores)

    product = scaled(lambda: scipy_products(part, Y))
    twin = f"numpy_core_seconds_scaled_from_{PART}_rows"
    floor = f"scipy_product_core_seconds_scaled_from_{PART}_rows"
    shape = {"n": N, "k": K, "q": Q, "labels_a_row": round(Y.nnz / N, 2)}
    with mock.patch.object(engine, "core", return_value=None):
        by_hand = scaled(lambda: add_to_histograms(part.indices, np.arange(PART), Y, *tables))
    rows = [
        {"what": "label_histograms", **shape, **counting, twin: by_hand, floor: product},
        {"what": "MLkNN.fit_graph", **shape, **fitting},
        {"what": f"MLkNN.rank_from_graph, top {TOP}", **shape, **ranking}
        | {twin: rank_by_numpy, floor: product},
    ]
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
