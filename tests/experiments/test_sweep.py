import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

import nearlabel as nl
from nearlabel.common.validation import check_labels
from nearlabel.experiments.folds import _SWEEP_BYTES, is_swept, left_out_sweep
from nearlabel.labels.sweep import bytes_of_sweep


@given(problems(), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_sweep_scores_as_one_model_after_the_other(problem, s):
    X, Y, _, most = problem
    Y = check_labels(Y).matrix
    graph = nl.neighbor_graph(X, most)
    neighbors = sorted({1, (most + 1) // 2, most})
    swept = left_out_sweep(graph, Y, s, neighbors)
    for k, scores in zip(neighbors, swept, strict=True):
        model = nl.MLkNN(n_neighbors=k, smoothing=s).fit_graph(graph, Y)
        alone = model._left_out_scores(graph.head(k), None, np.arange(len(X)))
        assert scores.toarray().tobytes() == alone.toarray().tobytes()


def test_what_is_swept():
    class Mine(nl.MLkNN):
        """May count in another way."""

    assert is_swept(nl.MLkNN(smoothing=2))
    for model in (nl.MLkNN(counts="even"), nl.LAMLkNN(), nl.BRkNN(), Mine()):
        assert not is_swept(model)


def test_what_is_too_large_for_a_sweep():
    Y = check_labels(np.eye(4, dtype=int)).matrix
    assert bytes_of_sweep(Y, 3) <= _SWEEP_BYTES
    assert bytes_of_sweep(Y, 2**16) > _SWEEP_BYTES  # more than its counters hold
    for shape, k in (((2**14, 2**14), 3), ((100, 2**14), 99)):
        wide = Y.copy()
        wide.resize(shape)
        assert bytes_of_sweep(wide, k) > _SWEEP_BYTES


@pytest.mark.parametrize("wrap", [lambda model: model, nl.LabelThresholds])
def test_centers_are_found_once_for_all_numbers_of_neighbors(wrap, monkeypatch):
    data = nl.datasets.make_local_labels(120, 4, 6, random_state=0)
    found, initial_centers = [], nl.LAMLkNN._initial_centers

    def counting(self, X):
        if self.cluster_centers is None:
            found.append(self.n_neighbors)
        return initial_centers(self, X)

    monkeypatch.setattr(nl.LAMLkNN, "_initial_centers", counting)
    known = {}
    for k in (3, 5, 8):
        model = wrap(nl.LAMLkNN(n_neighbors=k, n_clusters=3, random_state=0))
        quick = model._with_known(data.X, known).fit(data.X, data.Y)
        assert found == [3]
        expected = model.fit(data.X, data.Y).predict_proba(data.X)
        found.pop()
        found[:] = [3]
        np.testing.assert_array_equal(quick.predict_proba(data.X), expected)


def test_models_that_share_no_centers():
    X = np.zeros((4, 1))
    for model in (
        nl.MLkNN(),
        nl.LAMLkNN(cluster_centers=[[0.0]]),
        nl.LAMLkNN(random_state=np.random.RandomState(0)),
    ):
        assert model._with_known(X, {}) is model
