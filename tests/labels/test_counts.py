from __future__ import annotations

import numpy as np
from hypothesis import given
from strategies import problems

import nearlabel as nl
from nearlabel.common.validation import label_matrix
from nearlabel.labels import counts as statistics


@given(problems())
def test_counts_and_histograms_equal_loops(problem):
    X, dense, _, k = problem
    Y = label_matrix(dense, "Y")
    graph = nl.neighbor_graph(X, k)
    C = dense[graph.indices].sum(axis=1)
    np.testing.assert_array_equal(statistics.neighbor_counts(graph, Y).toarray(), C)
    seen = statistics.label_histograms(graph, Y)
    table = seen.table(
        lambda n, n_with, c, c_prime: 10**6 * n + 10**4 * n_with + 10**2 * c + c_prime
    )
    for label in range(dense.shape[1]):
        carried = dense[:, label] == 1
        for count in range(k + 1):
            here = C[:, label] == count
            if count > carried.sum():
                assert not here.any()
                continue
            cell = seen.cells(label, count)
            c, c_prime = np.sum(here & carried), np.sum(here & ~carried)
            assert (seen.with_label[cell], seen.without_label[cell]) == (c, c_prime)
            assert table[cell] == 10**6 * len(X) + 10**4 * carried.sum() + 10**2 * c + c_prime


@given(problems())
def test_histograms_of_groups_are_those_of_their_rows(problem):
    X, dense, _, k = problem
    Y, graph = label_matrix(dense, "Y"), nl.neighbor_graph(X, k)
    group = np.arange(len(dense)) % 3  # for two rows, the third group is empty
    seen = statistics.label_histograms(graph, Y, group=group, n_groups=3)
    C = dense[graph.indices].sum(axis=1)
    for g in range(3):
        mine = group == g
        assert seen.n[g] == mine.sum()
        np.testing.assert_array_equal(seen.totals[g], dense[mine].sum(axis=0))
        for label in range(dense.shape[1]):
            carried = mine & (dense[:, label] == 1)
            for count in range(min(k, dense[:, label].sum()) + 1):
                here = C[:, label] == count
                cell = seen.cells(label, count, g)
                assert seen.with_label[cell] == np.sum(here & carried)
                assert seen.without_label[cell] == np.sum(here & mine & ~carried)


def test_histograms_do_not_depend_on_the_blocks(monkeypatch):
    data = nl.datasets.make_local_labels(200, 4, 9)
    graph = nl.neighbor_graph(data.X, 7)
    whole = statistics.label_histograms(graph, data.Y)
    monkeypatch.setattr(statistics, "_VOTES_AT_ONCE", 1)
    monkeypatch.setattr(statistics, "_ROWS_AT_ONCE", 3)
    by_rows = statistics.label_histograms(graph, data.Y)
    np.testing.assert_array_equal(whole.with_label, by_rows.with_label)
    np.testing.assert_array_equal(whole.without_label, by_rows.without_label)


def test_tables_follow_the_labels_present():
    n, q, k = 50, 100_000, 20
    Y = label_matrix(np.eye(n, dtype=np.int8), "Y")
    Y.resize((n, q))
    seen = statistics.label_histograms(nl.neighbor_graph(np.arange(n)[:, None], k), Y)
    assert len(seen.with_label) == q + n  # one cell for count 0, one more where one row carries it
