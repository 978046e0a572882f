"""BlendedNeighbors: weights by scikit-learn, unbiased scores, edge cases, changes and files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import nearlabel as nl
from nearlabel.blend import learned_blend
from nearlabel.blend.pooled_logistic import CrossFitted
from nearlabel.blend.readings import LeftOut, ScoredRows

pytestmark = pytest.mark.engines


class Made(NamedTuple):
    X: Any
    Y: Any


def made(n, d, q=6, seed=0):
    """Vectors, and labels that follow from them with some noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    odds = 2 * np.sin(X @ random.normal(size=(d, q))) + X @ random.normal(size=(d, q)) - 1
    return Made(X, (random.random((n, q)) < expit(odds)).astype(np.int8))


@pytest.fixture(scope="module")
def data():
    return made(260, 5)


@pytest.fixture(scope="module")
def model(data):
    return nl.BlendedNeighbors().fit(data.X[:200], data.Y[:200])


def precision(Y, scores):
    return nl.metrics.average_precision(Y, scores)


def test_it_is_ahead_of_each_of_its_readings(data, model):
    X, Y = data.X[200:], data.Y[200:]
    own = precision(Y, model.label_scores(X))
    for reading in (nl.MLkNN(10), nl.MLkNN(30), nl.PositivekNN(40, random_state=0)):
        assert precision(Y, reading.fit(data.X[:200], data.Y[:200]).label_scores(X)) < own


def test_weights_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    columns = random.normal(3, 2, (400, 4))
    truth = random.random(400) < expit(columns @ [1.0, -0.5, 0, 0.3] - 2)
    row, label = np.divmod(np.arange(400), 4)
    found = CrossFitted.fit(columns, truth, row, label, 4, own=False)
    scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    peer = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000).fit(scaled, truth)
    expected = np.append(peer.coef_[0], peer.intercept_)
    assert found.whole.weights == pytest.approx(expected, abs=1e-5)
    odds = found.whole.log_odds(columns, label)
    assert odds == pytest.approx(peer.decision_function(scaled), abs=1e-5)
    assert found.whole.parts(columns, label).sum(axis=1) == pytest.approx(odds)


def test_labels_have_weights_of_their_own_where_they_differ():
    """Two labels for which a column is evidence, and two against which it is."""
    random = np.random.default_rng(0)
    columns = random.normal(0, 1, (2000, 1))
    row, label = np.divmod(np.arange(2000), 4)
    signs = np.where(label < 2, 2.0, -2.0)
    truth = random.random(2000) < expit(signs * columns[:, 0])
    found = CrossFitted.fit(columns, truth, row, label, 4)
    assert found.strength == 30
    slopes = (found.whole.weights + found.whole.own)[:, 0]
    assert (np.sign(slopes) == [1, 1, -1, -1]).all()
    same = random.random(2000) < expit(2 * columns[:, 0])
    assert CrossFitted.fit(columns, same, row, label, 4).strength != 30


@pytest.mark.parametrize("seeds", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_left_out_scores_are_unbiased(seeds):
    """On random labels they are no better than scores of new rows, nor than frequencies."""
    left_out, new, by_frequency = [], [], []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        X = random.normal(size=(240, 6))
        Y = (random.random((240, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(int)
        model = nl.BlendedNeighbors(20).fit(X[:120], Y[:120])
        left_out.append(precision(Y[:120], model.left_out_scores()))
        new.append(precision(Y[120:], model.label_scores(X[120:])))
        shares = np.tile(Y[:120].mean(axis=0), (120, 1))
        by_frequency.append(precision(Y[:120], shares))
    for others in (new, by_frequency):
        gain = np.subtract(left_out, others)
        assert gain.mean() < 3 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.parametrize("seeds", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_left_out_regressions_do_not_reveal_rare_labels(seeds):
    """The mean of all other rows, next to the frequency among all rows, would reveal them."""
    gains = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        X, shares = random.normal(size=(600, 8)), 0.5 / np.arange(1, 41)
        Y = (random.random((600, 40)) < shares).astype(int)
        model = nl.BlendedNeighbors(5, readings=[]).fit(X[:300], Y[:300])
        chances = np.tile(shares, (300, 1))  # they do not depend on single rows
        left_out = precision(Y[:300], model.left_out_scores()) - precision(Y[:300], chances)
        new = precision(Y[300:], model.label_scores(X[300:])) - precision(Y[300:], chances)
        gains.append(left_out - new)
    assert abs(np.mean(gains)) < 3 * np.std(gains, ddof=1) / np.sqrt(len(gains))


@pytest.mark.parametrize("most", [0, 2_000])  # largest number of labels with a dense matrix
def test_inputs_of_a_left_out_row_do_not_depend_on_its_labels(data, most, monkeypatch):
    """Of a reading that has no tables, the regressions and the frequencies."""
    monkeypatch.setattr(learned_blend, "DENSE_LABELS", most)
    known = []
    for flipped in (0, 1):
        Y = data.Y[:200].copy()
        Y[7] ^= flipped
        readings = [nl.BRkNN(5, weights="distance")]
        model = nl.BlendedNeighbors(10, readings=readings, learn_distance=False).fit(
            data.X[:200], Y
        )
        row = np.array([7])
        graph, blend = model.items_.left_out_neighbors(row, 10), model._blend
        left_out = LeftOut(row, row, sparse.csr_array(Y[row]))
        known.append(blend.columns(ScoredRows(graph, data.X[row], left_out))[1])
    assert known[0].shape[1] == len(model.weights_)
    assert known[0] == pytest.approx(known[1], abs=1e-10)


def test_equal_rows_do_not_reveal_each_others_labels():
    """With binary features there are few distinct rows, and nothing can be learned here."""
    gains, sure = [], []
    for seed in range(8):
        random = np.random.default_rng(seed)
        X = np.round(random.normal(size=(400, 2)))
        Y = (random.random((400, 4)) < 0.5).astype(int)
        model = nl.BlendedNeighbors(10).fit(X[:200], Y[:200])
        assert model.label_space_ is None
        left_out, new = model.left_out_scores(), model.label_scores(X[200:])
        gains.append(precision(Y[:200], left_out) - precision(Y[200:], new))
        sure.append(np.abs(new.toarray() - 0.5).mean())
    assert "no learned distance: too many training rows are duplicates" in model.summary()
    assert np.mean(gains) < 0.05  # .25 if every row teaches the weights
    assert np.mean(sure) < 0.15  # .25


def test_left_out_scores_of_some_rows(data, model):
    every = model.left_out_scores().toarray()
    some = model.left_out_scores([3, 0, 199]).toarray()
    assert some == pytest.approx(every[[3, 0, 199]], abs=1e-12)
    with pytest.raises(ValueError, match=r"rows must be positions of training rows, 0 to 199"):
        model.left_out_scores([200])


@pytest.mark.parametrize(
    "parameters",
    [
        {"readings": []},
        {"readings": [], "ridge": False},
        {"readings": [], "learn_distance": False},
        {"learn_distance": False, "ridge": False},
        {"readings": [nl.IBLR(5), nl.LAMLkNN(7, n_clusters=2), nl.MallowskNN(3, estimate="mle")]},
        {"readings": [nl.DMLkNN(5)], "ridge": False, "objective": "cardinality"},
        {"objective": "macro_f1"},
        {"readings": [nl.BRkNN(5), nl.BRkNN(5, weights="distance"), nl.BRkNN(5)]},
    ],
)
def test_any_readings(data, parameters, tmp_path):
    model = nl.BlendedNeighbors(12, **parameters).fit(data.X[:100], data.Y[:100])
    found = model.predict_proba(data.X[200:])
    assert found.shape == (60, 6)
    assert (model.predict(data.X[200:]) == (found > 0.5)).all()
    assert precision(data.Y[:100], model.left_out_scores()) > 0.3
    model.save(tmp_path / "blend.model")
    again = nl.load(tmp_path / "blend.model")
    assert (again.predict_proba(data.X[200:]) == found).all()
    assert again.get_params()["objective"] == model.objective
    assert again.weights_ == model.weights_
    assert len(model.weights_) == len(model._blend.names)


def test_dense_and_sparse_are_the_same(data, model):
    X = sparse.csr_array(data.X)
    other = nl.BlendedNeighbors().fit(X[:200], sparse.csr_array(data.Y[:200]))
    mine, theirs = model.label_scores(data.X[200:]), other.label_scores(X[200:])
    assert theirs.toarray() == pytest.approx(mine.toarray(), abs=1e-9)


def test_threads_change_nothing(data, model):
    other = nl.BlendedNeighbors(n_jobs=2).fit(data.X[:200], data.Y[:200])
    assert (other.predict_proba(data.X[200:]) == model.predict_proba(data.X[200:])).all()


def test_many_labels(monkeypatch, tmp_path):
    """Untouched labels are ranked by frequency, the others as usual."""
    data = nl.datasets.make_collection(400, 8, 60, labels_per_sample=3.0, n_queries=400)
    X, Y, queries = data.data.X, data.data.Y, data.queries.X
    few = nl.BlendedNeighbors(40).fit(X, Y)
    assert few.needs.dense_scores
    all_scored = few.label_scores(queries)  # before the limit is lowered
    monkeypatch.setattr(learned_blend, "DENSE_LABELS", 10)
    monkeypatch.setattr("nearlabel.blend.blended_neighbors.DENSE_LABELS", 10)
    many = nl.BlendedNeighbors(40).fit(X, Y)
    assert not many.needs.dense_scores
    scores = many.label_scores(queries)
    defaults, _ = scores.untouched()
    order = np.argsort(-defaults[0], kind="stable")
    totals = np.asarray(Y.sum(axis=0)).ravel()[order]
    assert np.corrcoef(np.arange(60), totals)[0, 1] < -0.5
    mine, theirs = (precision(data.queries.Y, one) for one in (scores, all_scored))
    assert mine == pytest.approx(theirs, abs=0.03)
    # The candidate labels must not reveal which ones a training row carries: with those
    # of all left-out scores, left_out was .53.
    left_out = precision(Y, many.left_out_scores())
    assert left_out == pytest.approx(mine, abs=0.03)
    assert nl.BlendedNeighbors(40, readings=[]).fit(X, Y).needs.dense_scores
    many.save(tmp_path / "many.model")
    again = nl.load(tmp_path / "many.model").label_scores(queries)
    assert (again.toarray() == scores.toarray()).all()


@pytest.mark.parametrize("column", [0, 1])
def test_a_label_of_no_row_and_of_all(data, column):
    Y = data.Y[:60].copy()
    Y[:, 2] = column
    model = nl.BlendedNeighbors(8).fit(data.X[:60], Y)
    chances = model.predict_proba(data.X[200:])[:, 2]
    assert (np.abs(chances - column) < 0.2).all()


def test_hard_vectors(data):
    """Fewer rows than features, constant columns, duplicates."""
    X = np.hstack([data.X[:20], np.ones((20, 3)), np.tile(data.X[:20], (1, 5))])
    X, Y = np.vstack([X, X]), np.vstack([data.Y[:20], data.Y[:20]])
    scores = nl.BlendedNeighbors(5).fit(X, Y).label_scores(X[:5]).toarray()
    assert np.isfinite(scores).all()


def test_explanations_show_what_each_reading_adds(data, model):
    explained = model.explain(data.X[200], top=2)
    for label in explained:
        parts = dict(label.terms)
        parts.pop("count")
        assert set(parts) == {*model.weights_, "intercept"}
        assert expit(sum(parts.values())) == pytest.approx(label.score, abs=1e-9)
    assert any(label.neighbors for label in explained)


def test_after_changes_it_is_a_fresh_fit(data):
    model = nl.BlendedNeighbors(10).fit(data.X[:80], data.Y[:80])
    model.partial_fit(data.X[80:90], data.Y[80:90])
    model.forget([3, 50])
    with pytest.warns(UserWarning, match="BlendedNeighbors learns again"):
        found = model.predict_proba(data.X[200:])
    kept = np.delete(np.arange(90), [3, 50])
    fresh = nl.BlendedNeighbors(10).fit(data.X[kept], data.Y[kept])
    assert found == pytest.approx(fresh.predict_proba(data.X[200:]), abs=1e-9)
    left_out = fresh.left_out_scores().toarray()
    assert model.left_out_scores().toarray() == pytest.approx(left_out, abs=1e-9)


def test_probabilities_are_calibrated():
    data = made(3000, 6, 4)
    model = nl.BlendedNeighbors().fit(data.X[:1500], data.Y[:1500])
    chances = model.label_scores(data.X[1500:]).toarray().ravel()
    truth = data.Y[1500:].ravel()
    place = np.minimum((chances * 10).astype(int), 9)
    gaps = [abs(chances[place == one].sum() - truth[place == one].sum()) for one in range(10)]
    assert sum(gaps) / len(chances) < 0.02
