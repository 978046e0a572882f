import numpy as np
import pytest
from hypothesis import given
from strategies import problems

import nearlabel as nl
from nearlabel.common.validation import label_matrix
from nearlabel.labels import counts
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.histograms import label_histograms

pytestmark = pytest.mark.engines


@given(problems())
def test_counts_and_histograms_equal_loops(problem):
    X, dense, _, k = problem
    Y = label_matrix(dense, "Y")
    graph = nl.neighbor_graph(X, k)
    C = dense[graph.indices].sum(axis=1)
    np.testing.assert_array_equal(neighbor_counts(graph, Y).toarray(), C)
    seen = label_histograms(graph, Y)
    label_of_cell = np.concatenate([label for _, label, _ in seen.runs()])
    assert seen.n.tolist() == [len(X)] * dense.shape[1]
    np.testing.assert_array_equal(seen.totals, dense.sum(axis=0))
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
            assert label_of_cell[cell] == label


def test_histograms_do_not_depend_on_the_blocks(monkeypatch):
    data = nl.datasets.make_local_labels(200, 4, 9)
    graph = nl.neighbor_graph(data.X, 7)
    whole = label_histograms(graph, data.Y)
    monkeypatch.setattr(counts, "_VOTES_AT_ONCE", 1)
    monkeypatch.setattr(counts, "_ROWS_AT_ONCE", 3)
    by_rows = label_histograms(graph, data.Y)
    np.testing.assert_array_equal(whole.with_label, by_rows.with_label)
    np.testing.assert_array_equal(whole.without_label, by_rows.without_label)


def test_tables_have_cells_only_for_present_labels():
    n, q, k = 50, 100_000, 20
    Y = label_matrix(np.eye(n, dtype=np.int8), "Y")
    Y.resize((n, q))
    seen = label_histograms(nl.neighbor_graph(np.arange(n)[:, None], k), Y)
    assert len(seen.with_label) == q + n  # one cell for count 0, one more where one row carries it
