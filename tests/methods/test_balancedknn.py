import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, problems

import nearlabel as nl
from nearlabel.labels.calibration import calibration
from nearlabel.methods import balancedknn

pytestmark = pytest.mark.engines

BANDWIDTHS = st.sampled_from(["median", 0.0, 0.5, 3.0])


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(150, 4, 6)


class TestWorkedExample:
    """The six-row worked example: two rows per class, sigma 1."""

    def test_members_and_similarities(self, f6):
        X, Y, t = f6
        model = nl.BalancedkNN(per_class=2, bandwidth=1.0).fit(X, Y)
        members = model._members(t)
        assert members.indices.tolist() == [0, 1, 3]
        similarities = balancedknn._kappa(members.data, 1.0)
        np.testing.assert_allclose(similarities, [0.006738, 0.201897, 0.020651], atol=5e-7)

    def test_lists_of_each_class(self, f6):
        X, Y, t = f6
        model = nl.BalancedkNN(per_class=2, bandwidth=1.0).fit(X, Y)
        got = {g.label: g.ids.tolist() for g in model.retrieve(t, top=4, per_label=2)[0]}
        assert got == {0: [1, 0], 1: [1, 3], 2: [], 3: [1, 3]}

    def test_scores_and_order(self, f6):
        X, Y, t = f6
        model = nl.BalancedkNN(per_class=2, bandwidth=1.0).fit(X, Y)
        scores = model.label_scores(t).toarray()
        np.testing.assert_allclose(scores, [[0.208634, 0.222547, 0, 0.229285]], atol=5e-7)
        assert model.rank(t).labels.tolist() == [[3, 1, 0, 2]]
        assert model.cuts_[2] == np.inf
        assert model.predict(t)[0, 2] == 0


@examples(200)
@given(problem=problems(), bandwidth=BANDWIDTHS, is_sparse=st.booleans())
def test_equals_the_literal_method(problem, bandwidth, is_sparse):
    X, Y, queries, per_class = problem
    expected, sigma, cuts = oracles.balancedknn(X, Y, per_class, queries, bandwidth)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.BalancedkNN(per_class, bandwidth).fit(form(X), form(Y))
    assert model.bandwidth_ == sigma
    np.testing.assert_allclose(model.cuts_, cuts, rtol=1e-10)
    scores = model.label_scores(form(queries)).toarray()
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-300)
    decided = model.predict(form(queries))
    decided = decided.toarray() if is_sparse else decided
    np.testing.assert_array_equal(decided, scores >= model.cuts_)
    probabilities = model.predict_proba(form(queries))
    assert ((probabilities > 0) & (probabilities < 1)).all()
    np.testing.assert_array_equal(probabilities > 0.5, decided == 1)
    left_out = model.left_out_scores()
    chances = calibration(left_out, sparse.csr_array(Y)).of(scores)
    clear = (chances > 0.5) == (decided == 1)
    np.testing.assert_allclose(probabilities[clear], chances[clear], atol=1e-12)
    np.testing.assert_allclose(probabilities[~clear], 0.5, atol=1e-5)


@given(problem=problems(), bandwidth=BANDWIDTHS)
def test_explain_gives_the_members_and_the_score_without_each(problem, bandwidth):
    X, Y, queries, per_class = problem
    model = nl.BalancedkNN(per_class, bandwidth).fit(X, Y)
    members = oracles.class_neighbors(X, Y, per_class, queries[0])
    nearest_first = sorted(members, key=lambda j: (members[j], j))
    explained = model.explain(queries[0], top=99)
    assert explained.n_neighbors == len(members)
    assert [a.label for a in explained] == model.rank(queries[:1], 99).labels[0].tolist()
    for label in explained:
        column = label.label
        voters = [j for j in nearest_first if Y[j, column]]
        assert [v.id for v in label.neighbors] == voters
        assert [v.distance for v in label.neighbors] == [members[j] for j in voters]
        assert label.predicted == (label.score >= model.cuts_[column])
        assert label.terms["count"] == len(voters)
        assert label.terms["bandwidth"] == model.bandwidth_
        assert label.terms.get("cut", np.inf) == model.cuts_[column]
        for voter in label.neighbors:
            others = oracles.class_neighbors(X, Y, per_class, queries[0], voter.id)
            expected = oracles.balanced_scores(Y, others, model.bandwidth_)[column]
            assert voter.score_without == pytest.approx(expected, rel=1e-10, abs=1e-300)
            assert voter.part == label.score - voter.score_without


def test_rare_labels_have_neighbors_everywhere():
    """The purpose of the method: two of three hundred rows carry a label, far from the query."""
    X = np.arange(300.0)[:, None]
    Y = np.ones((300, 2), int)
    Y[2:, 1] = 0
    members = nl.BalancedkNN(per_class=3).fit(X, Y)._members(np.array([[200.0]]))
    assert members.indices.tolist() == [0, 1, 199, 200, 201]


def test_blocks_of_rows_and_labels_change_nothing(data, monkeypatch):
    expected = nl.BalancedkNN().fit(data.X, data.Y)
    scores = expected.label_scores(data.X).toarray()
    monkeypatch.setattr(balancedknn, "_MEMBERS_AT_ONCE", 1)
    monkeypatch.setattr(balancedknn, "_SCORES_AT_ONCE", 1)
    model = nl.BalancedkNN(n_jobs=2).fit(data.X, data.Y)
    np.testing.assert_array_equal(model.cuts_, expected.cuts_)
    np.testing.assert_array_equal(model.label_scores(data.X).toarray(), scores)


def test_probabilities_of_many_rows_are_learned_from_some_of_them(data, monkeypatch):
    monkeypatch.setattr(balancedknn, "_CALIBRATED_SCORES", 50 * 6 - 1)
    model = nl.BalancedkNN().fit(data.X, data.Y)
    rows = np.linspace(0, 149, 50).astype(int)  # all labels of rows from the first to the last
    known = calibration(model.left_out_scores(rows), data.Y[rows])
    np.testing.assert_array_equal(model._calibration.scores, known.scores)
    np.testing.assert_array_equal(model._calibration.chances, known.chances)


def test_probabilities_are_frequencies():
    """On new rows; score / (score + cut) would be far from them."""
    data = nl.datasets.make_local_labels(900, 4, 6, random_state=0)
    model = nl.BalancedkNN().fit(data.X[:600], data.Y[:600])
    scores, truth = model.label_scores(data.X[600:]).toarray(), data.Y[600:]
    error = nl.metrics.calibration_error
    assert error(truth, model._probabilities(scores, np.arange(6))) < 0.04
    assert error(truth, model.predict_proba(data.X[600:])) < 0.04
    assert error(truth, model._uncalibrated(scores, np.arange(6))) > 0.12


def test_a_label_that_no_row_carries_is_the_least_likely(data):
    Y = data.Y.toarray()
    Y[:, 2] = 0
    probabilities = nl.BalancedkNN().fit(data.X, Y).predict_proba(data.X)
    assert (probabilities[:, 2] == probabilities.min()).all()


@pytest.fixture
def searched(monkeypatch):
    """Of how many rows the neighbors of each class are searched, call by call."""
    found = []
    search = balancedknn.class_neighbors

    def noted(*given, **more):
        found.append(given[4].shape[0])
        return search(*given, **more)

    monkeypatch.setattr(balancedknn, "class_neighbors", noted)
    return found


def test_it_searches_once_for_the_training_rows_and_once_for_queries(data, searched):
    model = nl.BalancedkNN().fit(data.X, data.Y)
    assert searched == [150]
    model.predict(data.X[:9])
    assert searched == [150, 9]
    model.rank(data.X[:8])
    assert searched == [150, 9, 8]


def test_one_search_beside_the_graph_in_a_comparison(data, searched):
    from nearlabel.experiments import evaluate_splits, splits

    parts = splits(data, "holdout")
    evaluate_splits(data, [nl.MLkNN(), nl.BalancedkNN()], parts)
    assert searched == [len(parts[0][0]), len(parts[0][1])]


def test_no_label_at_all():
    X, Y = np.arange(4.0)[:, None], np.zeros((4, 2), int)
    model = nl.BalancedkNN().fit(X, Y)
    assert model.bandwidth_ == 1.0
    assert model.predict(X).tolist() == [[0, 0]] * 4
    assert [len(label.neighbors) for label in model.explain(X[0])] == [0, 0]


def test_few_rows_do_not_cause_a_warning(f6):
    X, Y, t = f6
    model = nl.BalancedkNN(per_class=10**30).fit(X, Y)
    assert model.n_neighbors_ == 5
    assert model.kneighbors(t)[1].shape == (1, 5)
    assert model._members(t).nnz == 6
    with pytest.raises(ValueError, match="X has 1 sample"):
        nl.BalancedkNN().fit(X[:1], Y[:1])


def test_impossible_sizes_are_refused_before_any_search(monkeypatch):
    monkeypatch.setattr("nearlabel.common.validation.physical_memory", lambda: 2**36)
    monkeypatch.setattr("nearlabel.methods.items.build_index", None)
    n = 100_000
    Y = sparse.diags_array(np.ones(n), format="csr")
    message = r"BalancedkNN.* 100,000 x 100,000 .*111.8 GiB.*per_class"
    with pytest.raises(MemoryError, match=message):
        nl.BalancedkNN(per_class=1).fit(sparse.csr_array((n, 3)), Y)
