"""What does a query of DML-kNN cost with 100,000 rows and 100,000 labels?

The naive way visits the counts of every training row. It is measured in NumPy, sparse in the
labels, for a few queries; so is the twin of the kernel, which visits few rows like the kernel.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
from label_kernels import measured, problem
from measuring import core_seconds, report

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.common.arrays import Csr, row_numbers
from nearlabel.formulas.similar_counts import AdmissibleRows, Tally
from nearlabel.labels.counts import neighbor_counts

QUESTION = "DML-kNN with many labels, given the graph"
N, K, Q, TOP, TOLERANCE, NEW, FEW = 100_000, 10, 100_000, 10, 6, 2_000, 20


class Scan:
    """Admissible rows, found by visiting every row."""

    def __init__(self, C: Csr, Y: Csr) -> None:
        self.n, self.q = C.shape
        entries = 2 * C + Y
        self.row, self.label = row_numbers(entries), entries.indices
        self.count, self.carries = entries.data >> 1, entries.data & 1 == 1

    def tally(self, counts: Csr) -> Tally:
        """The admissible rows of one query."""
        c = counts.toarray()[0]
        own = c[self.label]
        is_near = np.abs(self.count - own) <= TOLERANCE
        # A label with a count above the tolerance in the query must have a similar entry.
        reached = np.bincount(self.row[is_near & (own > TOLERANCE)], minlength=self.n)
        admissible = reached == np.count_nonzero(c > TOLERANCE)
        admissible[self.row[~is_near]] = False
        counted = admissible[self.row]
        same = counted & (self.count == own)
        V = np.bincount(self.label[same & self.carries], minlength=self.q)
        U = np.bincount(self.label[same & ~self.carries], minlength=self.q)
        seen = np.bincount(self.label[counted], minlength=self.q)
        U[c == 0] += (admissible.sum() - seen)[c == 0]
        return Tally(admissible.sum()[None], V[None], U[None])


def tallied(rows: AdmissibleRows, counts: Csr) -> Tally:
    """One tally of all queries."""
    parts = [tally for _, tally in rows.tallies(counts)]
    return Tally(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def counting(rows: AdmissibleRows, scan: Scan, counts: Csr) -> dict[str, float]:
    """Milliseconds per query of the kernel, of its twin in NumPy, and of the scan."""
    m, few = counts.shape[0], counts[:FEW]
    found, scanned = tallied(rows, few), [scan.tally(few[[i]]) for i in range(few.shape[0])]
    for ours, theirs in zip(found, zip(*scanned, strict=True), strict=True):
        np.testing.assert_array_equal(ours, np.concatenate(theirs))

    def run() -> None:
        for _ in rows.tallies(counts):
            pass

    kernel = core_seconds(run) / m
    with mock.patch.object(engine, "core", return_value=None):
        twin = core_seconds(run, 1) / m
    naive = core_seconds(lambda: [scan.tally(few[[i]]) for i in range(few.shape[0])], 1)
    naive /= few.shape[0]
    return {
        "queries": m,
        "ms_a_query": round(kernel * 1000, 3),
        "numpy_ms_a_query": round(twin * 1000, 3),
        "ms_a_query_by_a_scan_of_all_rows": round(naive * 1000, 1),
        "times_faster_than_the_scan": round(naive / kernel, 1),
    }


def main() -> None:
    graph, Y = problem(N, K, Q)
    new = graph.take(np.random.default_rng(1).permutation(N)[:NEW])
    model, fitting = measured(
        lambda: nl.DMLkNN(n_neighbors=K, tolerance=TOLERANCE).fit_graph(graph, Y)
    )
    _, ranking = measured(lambda: model.rank_from_graph(new, top=TOP))
    ms = round(ranking.pop("core_seconds") * 1000 / NEW, 3)

    C, counts = neighbor_counts(graph, Y), neighbor_counts(new, Y)
    rows, scan = AdmissibleRows.of(C, Y, K, TOLERANCE), Scan(C, Y)
    is_heavy = counts.max(axis=1).toarray().ravel() > TOLERANCE
    shape = {"n": N, "k": K, "q": Q, "labels_a_row": round(Y.nnz / N, 2)}
    what = "admissible rows of queries with {} count above the tolerance"
    report(
        QUESTION,
        [
            {"what": "DMLkNN.fit_graph", **shape, **fitting},
            {"what": f"DMLkNN.rank_from_graph, top {TOP}", **shape}
            | {"queries": NEW, "ms_a_query": ms, **ranking},
            {"what": what.format("no"), **shape}
            | counting(rows, scan, counts[np.flatnonzero(~is_heavy)]),
            {"what": what.format("a"), **shape}
            | counting(rows, scan, counts[np.flatnonzero(is_heavy)]),
        ],
    )


if __name__ == "__main__":
    main()
