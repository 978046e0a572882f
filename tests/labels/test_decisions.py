import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from strategies import label_scores

import nearlabel as nl
from nearlabel.common.validation import label_matrix
from nearlabel.labels.decisions import best_labels, f1_cuts, hamming_cut
from nearlabel.labels.scores import LabelScores, labels_from

pytestmark = pytest.mark.engines


def truths(draw, shape):
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1)))


@given(label_scores(), st.data())
def test_f1_cuts_are_the_best_of_all_cuts(given_scores, data):
    scores, dense = given_scores
    truth = truths(data.draw, dense.shape)
    expected = [
        oracles.f1_cut(*pair) for pair in zip(dense.T.tolist(), truth.T.tolist(), strict=True)
    ]
    for form in (scores, LabelScores.from_dense(dense)):
        cuts = f1_cuts(form, label_matrix(truth, "Y"))
        np.testing.assert_array_equal(cuts, expected)
        decided = labels_from(form, cuts).toarray()
        np.testing.assert_array_equal(decided, dense >= cuts)


def test_a_cut_must_have_the_least_f1():
    scores = LabelScores.from_dense([[0.9, 0.9], [0.8, 0.2], [0.1, 0.1]])
    Y = label_matrix([[1, 0], [0, 1], [1, 0]], "Y")  # F1 at best 0.8, and 2/3
    for least, finite in ((0, [True, True]), (0.7, [True, False]), (0.81, [False, False])):
        assert np.isfinite(f1_cuts(scores, Y, least=least)).tolist() == finite


@given(label_scores(), st.data())
def test_hamming_cut_is_the_best_of_all_cuts(given_scores, data):
    scores, dense = given_scores
    truth = truths(data.draw, dense.shape)
    expected = oracles.hamming_cut(dense, truth)
    assert hamming_cut(scores, label_matrix(truth, "Y")) == expected
    assert hamming_cut(LabelScores.from_dense(dense), label_matrix(truth, "Y")) == expected


def test_a_cut_between_floats_that_have_nothing_between():
    low, high = 0.5, np.nextafter(0.5, 1)
    scores = LabelScores.from_dense([[low], [high]])
    Y = label_matrix([[0], [1]], "Y")
    assert f1_cuts(scores, Y).tolist() == [high]
    assert hamming_cut(scores, Y) == high


@given(label_scores(), st.data())
def test_best_labels_prefer_by_score_then_preference_then_column(given_scores, data):
    scores, dense = given_scores
    n, q = dense.shape
    how_many = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, q)))
    preferred = data.draw(hnp.arrays(np.int64, q, elements=st.integers(0, 2)))
    for form in (scores, LabelScores.from_dense(dense)):
        chosen = best_labels(form, how_many, preferred).toarray()
        for row in range(n):
            order = sorted(range(q), key=lambda m: (-dense[row, m], -preferred[m], m))
            assert np.flatnonzero(chosen[row]).tolist() == sorted(order[: how_many[row]])


def test_thresholds_of_many_labels_take_little_memory():
    n, q = 20_000, 200_000
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(n), 5)
    Y = sparse.csr_array((np.ones(5 * n, np.int8), (row, rng.integers(q, size=5 * n))), (n, q))
    Y.sum_duplicates()
    Y.data[:] = 1
    indices = (np.arange(n)[:, None] + np.arange(1, 6)) % n
    graph = nl.NeighborGraph(indices, np.tile(np.arange(5.0), (n, 1)), n)
    scores = nl.BRkNN(n_neighbors=5).fit_graph(graph, Y).scores_from_graph(graph)
    assert f1_cuts(scores, label_matrix(Y, "Y")).shape == (q,)  # dense scores would be 32 GB
