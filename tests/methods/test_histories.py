"""After any history of added, forgotten and relabelled rows, a model equals a new fit."""

import numpy as np
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from model_lives import METHODS, STEPS, Life

import nearlabel as nl

# Warnings about few rows, and about learning again.
pytestmark = pytest.mark.filterwarnings(
    "ignore:n_neighbors=:UserWarning",
    "ignore:the training rows were changed:UserWarning",
    "ignore:(metric='chebyshev'|a function as metric) compares row by row",
)
HISTORIES = st.tuples(
    st.integers(0, 2**32 - 1), st.lists(st.sampled_from(STEPS), min_size=1, max_size=9)
)


def assert_same_answers(life, model, fresh, queries, *, keeps):
    assert model.n_neighbors_ == fresh.n_neighbors_
    q = np.array(life.Y).shape[1]
    assert model.items_.labels.shape[1] == q
    mine, theirs = model.label_scores(queries).toarray(), fresh.label_scores(queries).toarray()
    if isinstance(model, nl.IBLR):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        return
    np.testing.assert_array_equal(mine, theirs)
    top = model.rank(queries, top=3)
    np.testing.assert_array_equal(top.labels, fresh.rank(queries, top=3).labels)
    if not (keeps and isinstance(model, nl.PositivekNN)):  # the learned threshold is kept
        if life.labels != "classes":
            wanted = fresh.predict_proba(queries)
            np.testing.assert_array_equal(model.predict_proba(queries), wanted)
        decided = model.label_matrix(model.predict(queries))
        np.testing.assert_array_equal(decided.toarray(), fresh.predict(queries))
    if isinstance(model, nl.MLkNN):
        np.testing.assert_array_equal(model.prior_, fresh.prior_)
        np.testing.assert_array_equal(model.likelihood_, fresh.likelihood_)


def assert_same_rows(life, model, fresh, queries):
    mine, theirs = model.kneighbors(queries), fresh.kneighbors(queries)
    np.testing.assert_array_equal(mine[0], theirs[0])
    ids = np.array(life.ids)
    np.testing.assert_array_equal(model.items_.ids(mine[1]), ids[theirs[1]])
    mine, theirs = model.kneighbors(), fresh.kneighbors()
    np.testing.assert_array_equal(mine[0], theirs[0])
    np.testing.assert_array_equal(model.items_.ids(mine[1]), ids[theirs[1]])
    if not isinstance(model, nl.IBLR):
        assert_same_words(model.explain(queries[:1], 2), fresh.explain(queries[:1], 2))
        groups = model.retrieve(queries[:1], 2, 3)[0], fresh.retrieve(queries[:1], 2, 3)[0]
        for one, other in zip(*groups, strict=True):
            np.testing.assert_array_equal(one.ids, other.ids)


def assert_same_words(explained, wanted):
    for one, other in zip(explained.labels, wanted.labels, strict=True):
        assert (one.label, one.score, one.terms) == (other.label, other.score, other.terms)
        assert [row.id for row in one.neighbors] == [row.id for row in other.neighbors]


def check_a_life(name, seed, steps, folder):
    life = Life(name, seed, folder)
    note(f"{life.log}")
    for what in steps:
        life.step(what)
        if life.random.random() < 0.3:  # what was computed for an answer must not stay
            life.model.rank(life.new_vectors(1))
    queries = life.new_vectors(3)
    transformed = queries if life.scaler is None else life.scaler.transform(queries)
    keeps = not life.is_refreshed
    model, fresh = life.learner, life.fresh(keeps=keeps)
    assert_same_answers(life, model, fresh, transformed, keeps=keeps)
    assert_same_rows(life, model, fresh, transformed)
    assert life.model.verify(), str(life.model.verify())
    for state, asked, wanted in life.snapshots:
        np.testing.assert_array_equal(state.label_scores(asked).toarray(), wanted)
    life.let_go()
    assert life.model.verify(), str(life.model.verify())
    if life.labels in ("tags", "frame"):
        assert life.learner.label_names_.tolist() == life.names[: len(life.learner.label_names_)]


@pytest.mark.engines
@pytest.mark.parametrize("name", METHODS)
@settings(phases=[Phase.generate], max_examples=min(3, 1 + settings().max_examples // 12))
@given(history=HISTORIES)
def test_any_history_equals_a_new_fit(name, history, tmp_path_factory):
    check_a_life(name, *history, tmp_path_factory.getbasetemp())


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=10_000 // len(METHODS) + 1)
@given(history=HISTORIES)
def test_ten_thousand_histories(name, history, tmp_path_factory):
    check_a_life(name, *history, tmp_path_factory.getbasetemp())
