import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, problems

import nearlabel as nl
from nearlabel.labels.calibration import calibration
from nearlabel.methods import positiveknn

pytestmark = pytest.mark.engines

RATES = st.sampled_from([1e-6, 0.1, 1.0, 7.0, 1e6])


class TestWorkedExample:
    """The six-row worked example: neighbors 2, 4 and 1 of the query."""

    @pytest.mark.parametrize(
        ("rate", "probabilities"),
        [
            (1.0, [0.358974, 0.382380, 0, 0.448390]),
            (0.1, [0.976192, 0.978756, 0, 0.995743]),
            (5.0, [0.001806, 0.001844, 0, 0.001858]),
        ],
    )
    def test_probabilities(self, f6, rate, probabilities):
        X, Y, t = f6
        model = nl.PositivekNN(n_neighbors=3, rate=rate).fit(X, Y)
        got = [label.terms["probability"] for label in model.explain(t[0], labels=range(4))]
        np.testing.assert_allclose(got, probabilities, atol=5e-7)
        assert model.rank(t).labels.tolist() == [[3, 1, 0, 2]]

    def test_log_sums_and_terms(self, f6):
        X, Y, t = f6
        model = nl.PositivekNN(n_neighbors=3, rate=1).fit(X, Y)
        S = [0.444686, 0.481883, 0, 0.594915]
        np.testing.assert_allclose(model.label_scores(t).toarray(), [S], atol=5e-7)
        labels = sorted(model.explain(t[0], top=4), key=lambda label: label.label)
        terms = {term: [label.terms[term] for label in labels] for term in labels[0].terms}
        assert terms["count"] == [2, 2, 0, 3]
        assert terms["rate"] == [1, 1, 1, 1]
        np.testing.assert_allclose(terms["log_sum"], S, atol=5e-7)
        expected = [0.358974, 0.382380, 0, 0.448390]
        np.testing.assert_allclose(terms["probability"], expected, atol=5e-7)

    def test_what_is_fitted(self, f6):
        X, Y, _ = f6
        model = nl.PositivekNN(n_neighbors=3).fit(X, Y)
        assert model.median_distance_ == np.median(model.kneighbors()[0])
        assert model.relative_rate_ == model.rate_ * model.median_distance_
        # No rate puts a wrong label above a right one here, so the lowest of the grid is taken.
        assert model.loss_ == 0
        assert model.relative_rate_ == pytest.approx(2**-4, rel=1e-15)


def left_out(X, Y, k, z):
    """Leave-one-out scores of the training rows: their own labels count one less."""
    n, q = Y.shape
    scores = oracles.positive_scores(Y, *oracles.neighbors(X, k), z, k)
    for i in range(n):
        for label in range(q):
            if scores[i, label] < 0:
                others = int(Y[:, label].sum()) - int(Y[i, label])
                scores[i, label] = -1e-300 * (1 - (others + 1) / (n + 1))
    return scores


@examples(200)
@given(problem=problems(), rate=RATES, is_sparse=st.booleans())
def test_equals_the_literal_method(problem, rate, is_sparse):
    X, Y, queries, k = problem
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.PositivekNN(n_neighbors=k, rate=rate).fit(form(X), form(Y))
    found = oracles.neighbors(X, k, queries)
    expected = oracles.positive_scores(Y, *found, rate, k)
    scores = model.label_scores(form(queries))
    np.testing.assert_allclose(scores.toarray(), expected, rtol=1e-10, atol=1e-317)
    predicted = model.predict(form(queries))
    predicted = predicted.toarray() if is_sparse else predicted
    if Y.shape[1] == 1:  # the label against its absence
        against = oracles.positive_scores(1 - Y, *found, rate, k)
        np.testing.assert_array_equal(predicted, np.maximum(expected, 0) > np.maximum(against, 0))
    else:
        np.testing.assert_array_equal(predicted, scores.toarray() >= model.cut_)
    probabilities = model.predict_proba(form(queries))
    assert ((probabilities > 0) & (probabilities < 1)).all()
    np.testing.assert_array_equal(probabilities > 0.5, predicted)
    left_out = model.left_out_scores()
    chances = calibration(left_out, sparse.csr_array(Y)).of(scores.toarray())
    clear = (chances > 0.5) == predicted
    np.testing.assert_allclose(probabilities[clear], chances[clear], atol=1e-12)
    np.testing.assert_allclose(probabilities[~clear], 0.5, atol=1e-5)


@examples(150)
@given(problem=problems(), rate=RATES)
def test_loss_and_cut_are_those_of_the_rows_left_out(problem, rate):
    X, Y, _, k = problem
    model = nl.PositivekNN(n_neighbors=k, rate=rate).fit(X, Y)
    graph = nl.neighbor_graph(X, k)
    scores = model._left_out_scores(graph, X, np.arange(len(X))).toarray()
    np.testing.assert_allclose(scores, left_out(X, Y, k, rate), rtol=1e-10, atol=1e-317)
    order = scores
    if Y.shape[1] == 1:
        Y = np.hstack([Y, 1 - Y])
        order = np.maximum(left_out(X, Y, k, rate), 0)
    loss = oracles.metric("ranking_loss", Y, order, None, "paper", 1)
    Y = Y[:, : scores.shape[1]]
    assert model.loss_ == pytest.approx(loss, abs=1e-12, nan_ok=True)
    wrong = {cut: int(((scores >= cut) != Y).sum()) for cut in {*scores.ravel(), np.inf}}
    assert int(((scores >= model.cut_) != Y).sum()) == min(wrong.values())


@pytest.fixture(scope="module")
def made():
    """60 training rows in a unit cube, a third of them without labels, and 40 queries."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (60, 6)) * (rng.random((60, 1)) < 0.7)
    return rng.random((60, 3)), Y, rng.random((40, 3))


class TestLimits:
    """On distances of order 1, where accepted rates reach the limits."""

    @pytest.mark.parametrize("power", [-30, -1, 1, 40])
    def test_rate_is_in_units_of_one_over_distance(self, made, power):
        X, Y, queries = made
        a = 2.0**power
        plain = nl.PositivekNN(n_neighbors=8, rate=3.0).fit(X, Y)
        scaled = nl.PositivekNN(n_neighbors=8, rate=3.0 / a).fit(X * a, Y)
        np.testing.assert_array_equal(
            scaled.label_scores(queries * a).toarray(), plain.label_scores(queries).toarray()
        )
        for by in ("grid", "gradient"):
            fitted = nl.PositivekNN(n_neighbors=8, fit_by=by, random_state=0)
            rate, relative = fitted.fit(X, Y).rate_, fitted.relative_rate_
            fitted.fit(X * a, Y)
            assert (fitted.rate_, fitted.relative_rate_) == (rate / a, relative)


class TestFitting:
    def test_the_fitted_rate_has_the_smaller_loss(self):
        data = nl.datasets.make_local_labels(400, 4, 12, labels_per_sample=2, random_state=1)
        fitted = {
            by: nl.PositivekNN(n_neighbors=15, fit_by=by, random_state=0).fit(data.X, data.Y)
            for by in ("grid", "gradient")
        }
        given = [
            nl.PositivekNN(n_neighbors=15, rate=zeta / fitted["grid"].median_distance_)
            .fit(data.X, data.Y)
            .loss_
            for zeta in 2.0 ** np.arange(-4, 8)
        ]
        assert fitted["grid"].loss_ <= min(given)
        assert fitted["gradient"].loss_ <= min(given)
        assert max(given) > 1.1 * min(given)  # there was something to fit

    def test_duplicates_only(self):
        X = np.zeros((6, 2))
        Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 0], [0, 0]])
        model = nl.PositivekNN(n_neighbors=4).fit(X, Y)
        assert model.median_distance_ == 1
        scores = model.label_scores([[0.0, 0.0]]).toarray()
        assert scores.tolist() == [[3 * 4000, 4000]]
        assert model.predict([[0.0, 0.0]]).tolist() == [[1, 0]]

    def test_nothing_to_fit_to(self):
        X = np.arange(8.0)[:, None]
        for Y in (np.zeros((8, 2), int), np.ones((8, 2), int)):
            model = nl.PositivekNN(n_neighbors=3).fit(X, Y)
            assert np.isnan(model.loss_)
            assert (model.predict(X) == Y).all()

    def test_many_rows_are_sampled(self, monkeypatch):
        monkeypatch.setattr(positiveknn, "_ROWS", 100)
        data = nl.datasets.make_local_labels(500, 4, 8, random_state=2)
        fit = nl.PositivekNN(n_neighbors=10, random_state=7).fit
        one, two = (fit(data.X, data.Y) and vars(fit(data.X, data.Y)).copy() for _ in range(2))
        fitted = "rate_", "loss_", "cut_", "median_distance_"
        assert [one[name] for name in fitted] == [two[name] for name in fitted]
        rows = nl.PositivekNN(random_state=7)._rows_to_learn_from(data.Y, data.X)
        assert len(np.unique(rows)) == 100
        other = nl.PositivekNN(n_neighbors=10, random_state=8).fit(data.X, data.Y)
        assert other.median_distance_ != one["median_distance_"]
        graph = nl.neighbor_graph(data.X, 10)
        by_graph = nl.PositivekNN(n_neighbors=10, random_state=7).fit_graph(graph, data.Y)
        assert [vars(by_graph)[name] for name in fitted] == [one[name] for name in fitted]
        near = graph.take(rows).distances
        assert one["median_distance_"] == np.median(near)

    def test_neighbors_of_the_sample_are_bounded(self):
        def rows(model, n):
            return model._rows_to_learn_from(sparse.csr_array((n, 1), dtype=np.int8), None)

        assert rows(nl.PositivekNN(), 4000) is None
        assert len(rows(nl.PositivekNN(), 4001)) == 4000
        assert len(rows(nl.PositivekNN(n_neighbors=None), 10_001)) == 209
        assert len(rows(nl.PositivekNN(n_neighbors=None), 10**6)) == 100


class TestAllRows:
    """n_neighbors=None: Eq. 4 of the paper."""

    @examples(60)
    @given(problem=problems(), rate=RATES)
    def test_equals_the_literal_method(self, problem, rate):
        X, Y, queries, _ = problem
        n = len(X)
        model = nl.PositivekNN(n_neighbors=None, rate=rate).fit(X, Y)
        assert model.n_neighbors_ == n
        found = oracles.neighbors(X, n, queries)
        expected = oracles.positive_scores(Y, *found, rate, n)
        scores = model.label_scores(queries).toarray()
        np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-317)
        assert model.kneighbors()[1].shape == (n, n - 1)
        for label in model.explain(queries[0], top=2):
            voters = [place for place in range(n) if Y[found[0][0, place], label.label]]
            assert label.terms["count"] == len(voters) == len(label.neighbors)
            for voter, place in zip(label.neighbors, voters, strict=True):
                rest = (np.delete(part[[0]], place, 1) for part in found)
                left = oracles.positive_scores(Y, *rest, rate, n)[0, label.label]
                assert voter.score_without == pytest.approx(left, rel=1e-10, abs=1e-317)

    def test_small_rates_rank_by_frequency(self):
        data = nl.datasets.make_local_labels(150, 3, 5, random_state=0)
        totals = data.Y.sum(axis=0)
        assert len(set(totals.tolist())) == 5
        model = nl.PositivekNN(n_neighbors=None, rate=1e-100).fit(data.X, data.Y)
        ranked = model.rank(data.X[:20] + 0.01, top=5).labels
        assert (ranked == np.argsort(-totals)).all()

    def test_fit_graph_and_scores_from_graph(self):
        data = nl.datasets.make_local_labels(80, 3, 5)
        graph = nl.neighbor_graph(data.X, 79)
        asked = nl.neighbor_graph(data.X, 80, data.X + 0.1)
        fitted = nl.PositivekNN(n_neighbors=None).fit(data.X, data.Y)
        by_graph = nl.PositivekNN(n_neighbors=None).fit_graph(graph, data.Y)
        np.testing.assert_array_equal(
            by_graph.scores_from_graph(asked).toarray(),
            fitted.label_scores(data.X + 0.1).toarray(),
        )
        with pytest.raises(ValueError, match="graph .*79.*n_neighbors=80"):
            by_graph.scores_from_graph(nl.neighbor_graph(data.X, 79, data.X))

    def test_blocks_and_input_that_does_not_fit(self, monkeypatch):
        data = nl.datasets.make_local_labels(90, 3, 5)
        model = nl.PositivekNN(n_neighbors=None).fit(data.X, data.Y)
        expected = model.rank(data.X, top=5), model.explain(data.X[0])
        monkeypatch.setattr("nearlabel.methods.answers._NEIGHBORS_AT_ONCE", 200)
        monkeypatch.setattr("nearlabel.methods.explanations._WORK_AT_ONCE", 200)
        np.testing.assert_array_equal(model.rank(data.X, top=5).scores, expected[0].scores)
        assert str(model.explain(data.X[0])) == str(expected[1])
        monkeypatch.setattr("nearlabel.common.validation.physical_memory", lambda: 50_000)
        model.rank(data.X, top=5)
        model.label_scores(data.X)
        with pytest.raises(MemoryError, match="neighbors.* GiB.*rank.*predict"):
            model.kneighbors(data.X)


def test_a_file_without_labels(tmp_path):
    data = nl.datasets.make_local_labels(60, 3, 5)
    model = nl.PositivekNN(3).fit(data.X, data.Y * 0)
    model.save(tmp_path / "model")
    again = nl.load(tmp_path / "model")
    assert np.isnan([model.loss_, again.loss_]).all()
    assert np.isinf([model.cut_, again.cut_]).all()
    assert again.rate_ == model.rate_
