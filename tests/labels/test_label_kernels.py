"""The compiled kernels over labels: equal to their NumPy twins, and safe for any input."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import label_scores, labeled_graphs

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.labels import counts as statistics
from nearlabel.labels import scores as scores_module
from nearlabel.labels.counts import neighbor_counts, neighbor_sums
from nearlabel.labels.histograms import cell_values, label_histograms
from nearlabel.labels.ranks import at_or_above
from nearlabel.labels.scores import LabelScores

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


def both(work):
    """The results of the compiled core and of NumPy."""
    results = []
    for core in (CORE, None):
        with mock.patch.object(engine, "core", return_value=core):
            results.append(work())
    return results


def assert_same(ours, twin):
    assert ours.dtype == twin.dtype
    assert ours.tobytes() == twin.tobytes()  # zeros of either sign stay what they were


@given(labeled_graphs(), st.sampled_from([1, 2, 2**16]))
def test_counts(problem, rows_at_once):
    graph, Y = problem
    with mock.patch.object(statistics, "_ROWS_AT_ONCE", rows_at_once):
        ours, twin = both(lambda: neighbor_counts(graph, Y))
    assert ours.shape == twin.shape
    assert ours.has_canonical_format
    assert_same(ours.data, twin.data)
    np.testing.assert_array_equal(ours.indices, twin.indices)
    np.testing.assert_array_equal(ours.indptr, twin.indptr)


@given(labeled_graphs(), st.sampled_from([1, 2, 2**16]), st.integers(0, 2**32 - 1))
def test_sums(problem, rows_at_once, seed):
    graph, Y = problem
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, -0.0, 1e-300, 0.1, 1.0, -1.0, 1e17], graph.indices.shape)
    with mock.patch.object(statistics, "_ROWS_AT_ONCE", rows_at_once):
        ours, twin = both(lambda: neighbor_sums(graph, Y, weights))
    counts = neighbor_counts(graph, Y)
    np.testing.assert_array_equal(ours.indices, counts.indices)
    np.testing.assert_array_equal(ours.indptr, counts.indptr)
    np.testing.assert_array_equal(twin.indices, counts.indices)
    np.testing.assert_array_equal(ours.data, twin.data)  # zeros of either sign are the same weight
    for row in range(min(3, len(graph))):
        for label in counts.indices[counts.indptr[row] : counts.indptr[row + 1]][:5]:
            total = 0.0
            for neighbor, weight in zip(graph.indices[row], weights[row], strict=True):
                total += weight if Y[neighbor, label] else 0
            assert ours[row, label] == total


@given(
    labeled_graphs(of_training_rows=True), st.sampled_from([1, 3, 2**16]), st.sampled_from([1, 3])
)
def test_histograms_and_the_values_of_their_cells(problem, rows_at_once, groups):
    graph, Y = problem
    group = None if groups == 1 else np.arange(len(graph)) % groups
    with mock.patch.object(statistics, "_ROWS_AT_ONCE", rows_at_once):
        ours, twin = both(lambda: label_histograms(graph, Y, group=group, groups=groups))
    for name in ("n", "totals", "start", "with_label", "without_label"):
        assert_same(getattr(ours, name), getattr(twin, name))
    assert ours.with_label.sum() == Y.nnz
    assert ours.without_label.sum() == Y.shape[0] * Y.shape[1] - Y.nnz
    table = np.random.default_rng(0).random(len(ours.with_label))
    counts = neighbor_counts(graph, Y)
    cells = ours.start[: Y.shape[1] + 1], counts.indices, counts.data
    assert_same(*both(lambda: cell_values(table, *cells)))


@given(label_scores(), st.sampled_from([np.int32, np.int64]))
def test_the_best_labels_and_dense_scores(given_scores, kind):
    scores, dense = given_scores
    touched = scores.touched()
    touched.indices, touched.indptr = touched.indices.astype(kind), touched.indptr.astype(kind)
    for form in (scores, LabelScores.from_dense(dense)):
        for r in range(1, scores.shape[1] + 1):
            for ours, twin in zip(*both(lambda: form.top(r)), strict=True):  # noqa: B023
                assert_same(ours, twin)
        assert_same(*both(form.toarray))


def test_many_labels_and_rows():
    rng = np.random.default_rng(1)
    touched = sparse.csr_array((rng.random((60, 5000)) < 0.1) * rng.random((60, 5000)).round(2))
    # Defaults of some groups are above all that rows touch, and below in others.
    defaults = rng.random((3, 5000)).round(2) + np.array([[-1.0], [0.0], [1.0]])
    scores = LabelScores(touched, defaults, group=rng.integers(0, 3, 60).astype(np.uint8))
    for r in (1, 10, 700, 5000):
        for ours, twin in zip(*both(lambda: scores.top(r)), strict=True):  # noqa: B023
            assert_same(ours, twin)
    one_default = LabelScores(touched, 0.5)
    for ours, twin in zip(*both(lambda: one_default.top(900)), strict=True):
        assert_same(ours, twin)


@pytest.mark.parametrize("k", [255, 256, 65535, 65536])
def test_counters_hold_the_number_of_neighbors(k):
    # A label that all rows carry is counted k times.
    Y = sparse.csr_array(np.ones((k + 1, 1), np.int8))
    indices = np.arange(k + 1)[None, 1:]
    graph = nl.NeighborGraph.unchecked(indices, np.zeros(indices.shape), k + 1)
    assert neighbor_counts(graph, Y).data.tolist() == [k]


def test_no_rows():
    Y = sparse.csr_array(np.eye(3, dtype=np.int8))
    graph = nl.neighbor_graph(np.arange(3)[:, None], 1).rows(0, 0)
    ours, twin = both(lambda: neighbor_counts(graph, Y))
    assert ours.shape == twin.shape == (0, 3)
    assert LabelScores(ours).top(2)[0].shape == (0, 2)


def test_a_slice_of_a_graph_is_not_copied():
    wide = np.tile(np.arange(1, 101, dtype=np.int32), (50_000, 1))
    Y = sparse.csr_array((101, 1), dtype=np.int8)
    with mock.patch.object(np, "require", side_effect=np.require) as require:
        neighbor_counts(nl.NeighborGraph.unchecked(wide, wide, 101).head(2), Y)
    taken = [call for call in require.call_args_list if call.args[0].ndim == 2]
    assert sum(len(call.args[0]) for call in taken) == len(wide)
    assert all(np.shares_memory(np.require(*call.args), wide) for call in taken)


def test_labels_repeated_too_often_are_safe():
    # Not a canonical matrix: an 8-bit counter overflows, and the label is listed again.
    indices = np.zeros(600, np.int64)
    data, columns, ends = CORE.neighbor_counts(
        np.zeros((1, 1), np.int64), np.array([0, 600]), indices, 700
    )
    assert (len(data), columns.tolist(), ends.tolist()) == (1, [0], [0, 1])
    with pytest.raises(ValueError, match="Y.*repeat a label"):
        CORE.neighbor_counts(
            np.zeros((1, 255), np.int64), np.array([0, 2]), np.zeros(2, np.int64), 1
        )


def test_unordered_scores_are_safe():
    rng = np.random.default_rng(0)
    wild = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], (50, 400))
    labels, scores = np.empty((50, 300), np.int32), np.empty((50, 300))
    CORE.top_of_dense(wild, labels, scores)
    assert 0 <= labels.min() <= labels.max() < 400


def test_invalid_user_input_is_named():
    Y = sparse.csr_array(np.eye(3, dtype=np.int8))
    graph = nl.neighbor_graph(np.arange(3)[:, None], 1)
    with pytest.raises(ValueError, match="graph.*row numbers of Y"):
        neighbor_counts(graph, Y[:1])
    with pytest.raises(ValueError, match="graph .*3.*Y .*2"):
        label_histograms(graph, Y[:2])
    for work in (neighbor_counts, label_histograms):
        wrong = nl.NeighborGraph.unchecked(graph.indices + 2, graph.distances, 3)
        with pytest.raises(ValueError, match="graph.*row numbers of Y"):
            work(wrong, Y)
    with pytest.raises(ValueError, match="graph .*2.*Y .*3"):
        label_histograms(graph.rows(0, 2), Y)


@given(label_scores(), st.data(), st.booleans(), st.sampled_from([1, 5, 2**20]))
def test_places(problem, data, is_dense, at_once):
    scores, dense = problem
    n, q = dense.shape
    seed = data.draw(st.integers(0, 2**32 - 1))
    Y = sparse.csr_array(np.random.default_rng(seed).integers(0, 2, (n, q)).astype(np.int8))
    scores = LabelScores.from_dense(dense) if is_dense else scores
    with mock.patch.object(scores_module, "_ENTRIES_AT_ONCE", at_once):
        ours, twin = both(lambda: scores.places_of(Y))
    for name in ("above", "tied_lower", "tied_higher"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(twin, name))
    for ties in ("max", "min", "higher", "lower"):
        ranks = ours.ranks(ties)
        np.testing.assert_array_equal(*both(lambda ranks=ranks: at_or_above(ranks, Y)))


def test_many_labels_at_or_above():
    rng = np.random.default_rng(0)
    Y = sparse.csr_array((rng.random((5, 300)) < 0.5).astype(np.int8))
    ranks = rng.integers(1, 40, Y.nnz)
    np.testing.assert_array_equal(*both(lambda: at_or_above(ranks, Y)))
