import warnings

import numpy as np
import pytest
from hypothesis import given
from strategies import labeled_graphs

import nearlabel as nl
from nearlabel.common.validation import check_labels
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.histograms import label_histograms
from nearlabel.labels.sweep import CountSweep

pytestmark = [pytest.mark.kernels, pytest.mark.engines]


@given(labeled_graphs(of_training_rows=True))
def test_counts_and_cells_of_every_k(problem):
    graph, Y = problem
    Y = Y[:, :70]  # the sweep is dense
    sweep = CountSweep(graph, Y)
    for k in range(1, min(graph.k, 20) + 1):
        sweep.add_neighbor()
        assert sweep.k == k
        np.testing.assert_array_equal(sweep.counts, neighbor_counts(graph.head(k), Y).toarray())
        counted = label_histograms(graph.head(k), Y)
        for label in range(Y.shape[1]):
            cells = slice(counted.start[label], counted.start[label + 1])
            for own, table in enumerate((counted.without_label, counted.with_label)):
                expected = np.zeros(graph.k + 1, int)
                expected[: cells.stop - cells.start] = table[cells]
                np.testing.assert_array_equal(sweep.cells[own, label], expected)
    table = np.random.default_rng(0).random(sweep.cells.shape)
    expected = table[Y.toarray(), np.arange(Y.shape[1]), sweep.counts]
    np.testing.assert_array_equal(sweep.look_up(table), expected)


def test_a_graph_of_other_rows():
    Y = check_labels(np.eye(4, dtype=int)).matrix
    with warnings.catch_warnings(), pytest.raises(ValueError, match="graph"):
        CountSweep(nl.neighbor_graph([[0.0], [1.0], [2.0]], 1), Y)
