"""The choice of questions, compared with literal definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import entropy

import nearlabel as nl
from nearlabel.collection.question_choice import (
    certain,
    looked_at,
    mixed,
    nearest_to,
    seen_by,
    tag_probabilities,
    telling,
)


def fitted(n=40, q=4, seed=0, metric="euclidean"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, q)) > 0.5).astype(int)
    return nl.MLkNN(5, metric=metric).fit(X, Y), rng


def doubts_of(model, X):
    P = model.predict_proba(X)
    return np.array([sum(entropy([p, 1 - p], base=2) for p in row) for row in P])


def literally_telling(X, model, n, metric="euclidean"):
    """Facility location by its definition, among the fifth with the greatest entropy."""
    distances = cdist(X, X, metric)
    if model is None:
        uncovered, open_rows = distances.max(axis=1), set(range(len(X)))
    else:
        uncovered = model.kneighbors(X, 1)[0][:, 0]
        order = np.argsort(-doubts_of(model, X), kind="stable")
        open_rows = set(order[: max(n, round(len(X) / 5))].tolist())
    chosen = []
    while len(chosen) < n and open_rows:
        gains = {row: np.maximum(uncovered - distances[row], 0).sum() for row in open_rows}
        best = max(sorted(open_rows), key=lambda row: gains[row])
        chosen.append((best, gains))
        open_rows.remove(best)
        uncovered = np.minimum(uncovered, distances[best])
    return chosen


@pytest.mark.parametrize("has_model", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_questions_that_teach_are_those_of_facility_location(has_model, seed):
    model, rng = fitted(seed=seed)
    X = rng.normal(size=(30, 3))  # few enough for each to have all others as neighbors
    model = model if has_model else None
    seen = None if model is None else seen_by(model, X)
    found = telling(X, seen, 6, "euclidean").tolist()
    assert found == [row for row, _ in literally_telling(X, model, 6)]


def test_earlier_choices_cover_their_neighbors():
    groups = np.repeat([[0, 0], [9, 0], [0, 9], [9, 9]], [40, 20, 10, 5], axis=0)
    X = groups + np.random.default_rng(0).normal(scale=0.1, size=groups.shape)
    chosen = telling(X, None, 4, "euclidean")
    assert len({tuple(groups[row]) for row in chosen}) == 4


def test_questions_prefer_items_unlike_tagged_ones():
    X = np.vstack([np.zeros((20, 2)), np.full((20, 2), 9.0)])
    X += np.random.default_rng(0).normal(scale=0.1, size=X.shape)
    Y = np.array([[1, 0]] * 5 + [[1, 1]] * 5)  # unsure of the second tag everywhere
    model = nl.MLkNN(3).fit(X[:10], Y)
    assert telling(X[10:], seen_by(model, X[10:]), 1, "euclidean")[0] >= 10


@given(arrays(float, (12, 2), elements=st.sampled_from([0.0, 1.0, 2.0])), st.integers(1, 15))
@settings(max_examples=30, deadline=None)
def test_equal_and_few_items_are_asked_about_once(X, n):
    model, _ = fitted()
    X3 = np.hstack([X, X[:, :1]])
    for seen in (seen_by(model, X3), None):
        rows, is_quick = mixed(X3, seen, n, "euclidean")
        for chosen in (rows, telling(X3, seen, n, "euclidean")):
            assert len(chosen) == min(n, 12) == len(set(chosen.tolist()))
        assert len(is_quick) == len(rows)


@pytest.mark.parametrize("count", [0, 1])
def test_no_or_one_item_to_ask_about(count):
    model, _ = fitted()
    X = np.ones((count, 3))
    for seen in (None, seen_by(model, X)) if count else (None,):
        assert telling(X, seen, 3).tolist() == [*range(count)]
        assert len(mixed(X, seen, 5)[0]) == count


def test_uncertainty_is_the_entropy_of_all_tags(monkeypatch):
    model, rng = fitted()
    X = rng.normal(size=(17, 3))
    monkeypatch.setattr("nearlabel.collection.question_choice._CELLS_AT_ONCE", 20)  # by blocks
    seen = seen_by(model, X)
    np.testing.assert_allclose(seen.doubts, doubts_of(model, X))
    np.testing.assert_allclose(seen.best, model.predict_proba(X).max(axis=1))
    np.testing.assert_array_equal(seen.nearest, model.kneighbors(X, 1)[0][:, 0])


def test_confident_questions_have_a_tag_and_the_least_uncertainty_first():
    model, rng = fitted(q=2)
    X = rng.normal(size=(60, 3))
    doubts, has_tag = doubts_of(model, X), (model.predict_proba(X) >= 0.5).any(axis=1)
    rows = certain(seen_by(model, X), 60)
    assert set(rows.tolist()) == set(np.flatnonzero(has_tag).tolist())
    assert 0 < len(rows) < 60
    assert (np.diff(doubts[rows]) >= -1e-12).all()
    assert certain(seen_by(model, X), 3).tolist() == rows[:3].tolist()
    assert len(certain(None, 3)) == 0


def test_every_fourth_mixed_question_is_a_confident_one():
    model, rng = fitted(q=2)
    X = rng.normal(size=(60, 3))
    rows, is_quick = mixed(X, seen_by(model, X), 9, "euclidean")
    assert is_quick.tolist() == [False, False, False, True] * 2 + [False]
    assert rows[is_quick].tolist() == certain(seen_by(model, X), 2).tolist()


def test_sparse_items_are_chosen_like_dense_ones():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 8)) < 0.4) * rng.random((60, 8)) + 0.01
    Y = (rng.random((20, 3)) < 0.4).astype(int)
    dense = nl.MLkNN(4, metric="cosine").fit(X[:20], Y)
    rows = sparse.csr_array(X)
    thin = nl.MLkNN(4, metric="cosine").fit(rows[:20], Y)
    found, expected = (
        mixed(items, seen_by(model, items), 8)[0].tolist()
        for items, model in ((rows[20:], thin), (X[20:], dense))
    )
    assert found == expected
    assert telling(rows[20:], None, 5).tolist() == telling(X[20:], None, 5).tolist()


def test_items_nearest_to_any_of_several(monkeypatch):
    rng = np.random.default_rng(0)
    X, items = rng.normal(size=(3, 2)), rng.normal(size=(25, 2))
    monkeypatch.setattr("nearlabel.collection.question_choice._ROWS_AT_ONCE", 10)
    found = nearest_to(X, lambda part: items[part], 25, 7, "euclidean")
    assert found.tolist() == np.argsort(cdist(items, X).min(axis=1))[:7].tolist()


def test_a_tag_of_learned_items_is_judged_as_if_they_were_new():
    model, rng = fitted()
    new = rng.normal(size=(3, 3))
    learned = model.items_.store.take(np.array([4, 7]))
    X = np.vstack([new[:1], learned, new[1:]])
    found = tag_probabilities(model, X, 2, [None, 4, 7, None, None])
    np.testing.assert_allclose(found[[0, 3, 4]], model.predict_proba(new)[:, 2])
    graph = model.items_.left_out_neighbors(np.array([4, 7]), 5)
    expected = model._left_out_scores(graph, learned, np.array([4, 7])).toarray()[:, 2]
    np.testing.assert_allclose(found[[1, 2]], expected)
    assert tag_probabilities(model, X, 99, [None] * 5).tolist() == [0] * 5


def test_fewer_candidates_with_more_learned_items():
    assert [looked_at(n) for n in (0, 1000, 4000, 8000, 10**6)] == [1000, 1000, 1000, 500, 100]
