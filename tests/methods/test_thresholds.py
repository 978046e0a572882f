import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

import nearlabel as nl
from nearlabel.methods.registry import METHODS, estimator

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(400, 5, 15, labels_per_sample=2, random_state=1)


@given(problem=problems(), s=st.sampled_from([1.0, 0.5]))
def test_cuts_are_the_best_of_scores_that_leave_each_row_out(problem, s):
    X, Y, queries, k = problem
    model = nl.LabelThresholds(nl.MLkNN(n_neighbors=k, smoothing=s), min_f1=0, min_rows=1)
    model.fit(X, Y)
    rows, graph = np.arange(len(X)), nl.neighbor_graph(X, k)
    left_out = model.estimator_._left_out_scores(graph, None, rows).toarray()  # see test_mlknn.py
    expected = [
        oracles.f1_cut(*pair) for pair in zip(left_out.T.tolist(), Y.T.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(np.nan_to_num(model.cuts_, nan=np.inf), expected)
    scores = model.label_scores(queries).toarray()
    own = model.estimator_.predict(queries)
    decided = np.where(np.isinf(expected), own, scores >= expected)
    np.testing.assert_array_equal(model.predict(queries), decided)
    np.testing.assert_array_equal(model.predict_proba(queries) > 0.5, decided == 1)
    np.testing.assert_array_equal(scores, model.estimator_.label_scores(queries).toarray())


@pytest.mark.parametrize("name", METHODS)
def test_every_algorithm(name, data, tmp_path):
    model = nl.LabelThresholds(estimator(name, 10, random_state=0)).fit(data.X[:300], data.Y[:300])
    decided = model.predict(data.X[300:])
    # On the training rows, no label is worse than with the method's own decision.
    graph = nl.neighbor_graph(data.X[:300], 10)
    left_out = model.estimator_._left_out_scores(graph, data.X[:300], np.arange(300))
    truth = data.Y[:300].toarray().T
    own, cuts = (m._decide(left_out, graph).toarray().T for m in (model.estimator_, model))
    before, after = ([*map(oracles.f1_of, truth, sets)] for sets in (own, cuts))
    assert all(a <= b for a, b in zip(before, after, strict=True))
    # BKNN learns such thresholds by itself.
    assert (sum(before) < sum(after)) == (name != "BalancedkNN")
    probabilities = model.predict_proba(data.X[300:])
    cut = np.isfinite(model.cuts_)
    np.testing.assert_array_equal(probabilities[:, cut] > 0.5, decided.toarray()[:, cut] == 1)
    model.save(tmp_path / "model")
    again = nl.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data.X[300:]).toarray(), decided.toarray())
    np.testing.assert_array_equal(again.predict_proba(data.X[300:]), probabilities)
    np.testing.assert_array_equal(again.cuts_, model.cuts_)
    label = int(np.flatnonzero(cut)[0])
    terms = again.explain(data.X[300], labels=label)[0].terms
    assert terms["cut"] == model.cuts_[label]
    assert terms.items() >= model.estimator_.explain(data.X[300], labels=label)[0].terms.items()


def test_rare_and_hopeless_labels_keep_the_decision_of_the_method(data):
    rng = np.random.default_rng(0)
    Y = np.column_stack([data.Y.toarray(), np.zeros((400, 2), int)])
    Y[:2, -2] = 1  # two rows carry it
    Y[rng.permutation(400)[:12], -1] = 1  # random, so that neighbors are not informative
    model = nl.LabelThresholds(nl.MLkNN()).fit(data.X, Y)
    assert np.isnan(model.cuts_[-2:]).all()
    np.testing.assert_array_equal(
        model.predict(data.X)[:, -2:], model.estimator_.predict(data.X)[:, -2:]
    )
    eager = nl.LabelThresholds(nl.MLkNN(), min_f1=0, min_rows=1).fit(data.X, Y)
    assert np.isfinite(eager.cuts_[-1])
    assert eager.predict(data.X)[:, -1].sum() > 100  # the best F1 of noise: nearly everything


def test_probabilities_are_those_of_the_method(data):
    model = nl.LabelThresholds(nl.MLkNN()).fit(data.X[:300], data.Y[:300])
    own = model.estimator_.label_scores(data.X[300:]).toarray()
    told, decided = model.predict_proba(data.X[300:]), model.predict(data.X[300:]).toarray()
    agree = (own > 0.5) == (decided == 1)
    assert 0.5 < agree.mean() < 1
    np.testing.assert_array_equal(told[agree], own[agree])
    np.testing.assert_allclose(told[~agree], 0.5, atol=1e-5)
    np.testing.assert_array_equal(told > 0.5, decided == 1)
