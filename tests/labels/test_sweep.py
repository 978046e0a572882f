from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import labeled_graphs, problems

import nearlabel as nl
from nearlabel.common.validation import check_labels
from nearlabel.labels.counts import label_histograms, neighbor_counts
from nearlabel.labels.sweep import CountSweep


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


@given(problems(), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_sweep_scores_as_one_model_after_the_other(problem, s):
    X, Y, _, most = problem
    Y = check_labels(Y).matrix
    graph = nl.neighbor_graph(X, most)
    neighbors = sorted({1, (most + 1) // 2, most})
    swept = nl.MLkNN(smoothing=s)._left_out_sweep(graph, Y, neighbors)
    for k, scores in zip(neighbors, swept, strict=True):
        model = nl.MLkNN(n_neighbors=k, smoothing=s).fit_graph(graph, Y)
        alone = model._left_out_scores(graph.head(k), None, np.arange(len(X)))
        assert scores.toarray().tobytes() == alone.toarray().tobytes()


def test_what_is_swept_together():
    Y = check_labels(np.eye(4, dtype=int)).matrix
    key, _ = nl.MLkNN(smoothing=2)._sweep(Y, 3)
    assert key == nl.MLkNN(n_neighbors=3, smoothing=2.0)._sweep(Y, 3)[0]
    assert key != nl.MLkNN(smoothing=1)._sweep(Y, 3)[0]
    assert nl.LAMLkNN()._sweep(Y, 3) is None
    assert nl.BRkNN()._sweep(Y, 3) is None

    class Mine(nl.MLkNN):
        """May count in another way."""

    assert Mine()._sweep(Y, 3) is None
    assert nl.MLkNN()._sweep(Y, 2**16) is None  # more than its counters hold
    for shape, k in (((2**14, 2**14), 3), ((100, 2**14), 99)):
        wide = Y.copy()
        wide.resize(shape)
        assert nl.MLkNN()._sweep(wide, k) is None


def test_a_graph_of_other_rows():
    Y = check_labels(np.eye(4, dtype=int)).matrix
    with warnings.catch_warnings(), pytest.raises(ValueError, match="graph"):
        CountSweep(nl.neighbor_graph([[0.0], [1.0], [2.0]], 1), Y)
