"""Any history of rows added, forgotten and relabelled ends in what a fresh fit gives."""

from __future__ import annotations

import copy
import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

import nearlabel as nl

pytestmark = pytest.mark.engines

FEATURES, MOST_LABELS = 2, 5
METHODS = {
    "mlknn": lambda k: nl.MLkNN(k),
    "mlknn, s=0, manhattan": lambda k: nl.MLkNN(k, smoothing=0, metric="manhattan"),
    "mlknn, cosine": lambda k: nl.MLkNN(k, metric="cosine"),
    "lamlknn": lambda k: nl.LAMLkNN(k, n_clusters=2, random_state=0),
    "dmlknn": lambda k: nl.DMLkNN(k, tolerance=1),
    "brknn": lambda k: nl.BRkNN(k, weights="distance", fill="top"),
    "mallowsknn": lambda k: nl.MallowskNN(k),
    "mlcwknn": lambda k: nl.MLCWkNN(k),
    "positiveknn": lambda k: nl.PositivekNN(k),
    "positiveknn, all rows": lambda k: nl.PositivekNN(None),
    "iblr": lambda k: nl.IBLR(k, ridge=1.0),
    "balancedknn": lambda k: nl.BalancedkNN(k),
    "thresholds": lambda k: nl.LabelThresholds(nl.MLkNN(k), min_rows=1),
    "thresholds of dmlknn": lambda k: nl.LabelThresholds(nl.DMLkNN(k), min_rows=1),
}


def fresh_fit(model, X, Y, ids):
    """What the model should be: fitted to the rows that it has, with what only refresh learns."""
    made = nl_clone(model)
    if isinstance(model, nl.LAMLkNN):
        made.set_params(cluster_centers=model.cluster_centers_)
    if isinstance(model, nl.PositivekNN):
        made.set_params(rate=model.rate_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(X, Y, ids=ids)
    return made


def nl_clone(model):
    from sklearn.base import clone

    return clone(model)


class Mirror:
    """The rows that a model should have, in the order of their arrival."""

    def __init__(self, X, Y):
        self.X, self.Y, self.ids = [*X], [*Y], [*range(len(X))]
        self.next_id, self.q = len(X), Y.shape[1]

    def add(self, X, Y):
        self.widen(Y.shape[1])
        self.X += [*X]
        self.Y += [*Y]
        self.ids += [*range(self.next_id, self.next_id + len(X))]
        self.next_id += len(X)

    def widen(self, q):
        self.q = q
        self.Y = [np.pad(y, (0, q - len(y))) for y in self.Y]

    def forget(self, ids):
        kept = [i for i, one in enumerate(self.ids) if one not in ids]
        self.X, self.Y, self.ids = ([part[i] for i in kept] for part in (self.X, self.Y, self.ids))

    def relabel(self, ids, Y):
        self.widen(Y.shape[1])
        for one, y in zip(ids, Y, strict=True):
            self.Y[self.ids.index(one)] = y

    def arrays(self):
        return np.array(self.X), np.array(self.Y), np.array(self.ids)


def vectors(draw, m):
    """Few whole numbers: rows that are equal, and at equal distances, are the rule."""
    values = st.lists(st.integers(-3, 3), min_size=FEATURES, max_size=FEATURES)
    rows = draw(st.lists(values, min_size=m, max_size=m))
    return np.array(rows, float) + 0.5  # cosine has no direction for zeros


def label_sets(draw, m, q):
    bits = st.lists(st.integers(0, 1), min_size=q, max_size=q)
    return np.array(draw(st.lists(bits, min_size=m, max_size=m)), np.int8)


def widened(draw, q):
    """A number of labels that sometimes is more than before."""
    return min(MOST_LABELS, q + draw(st.sampled_from([0, 0, 0, 1])))


def change_something(draw, model, mirror, folder):
    """One step of a history; the model after it, which may have been read from a file."""
    what = draw(st.sampled_from(["add", "add", "forget", "forget", "relabel", "file", "compact"]))
    ids, q = mirror.ids, mirror.q
    if what == "add":
        m = draw(st.integers(1, 4))
        X, Y = vectors(draw, m), label_sets(draw, m, widened(draw, q))
        form = draw(st.sampled_from([np.asarray, sparse.csr_array]))
        model.partial_fit(X, form(Y))
        mirror.add(X, Y)
    elif what == "forget" and len(ids) > 3:
        gone = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=len(ids) - 2, unique=True))
        model.forget(gone)
        mirror.forget(gone)
    elif what == "relabel":
        some = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
        Y = label_sets(draw, len(some), widened(draw, q))
        model.relabel(some, Y)
        mirror.relabel(some, Y)
    elif what == "file":
        how = draw(st.sampled_from(["load", "mmap", "pickle", "copy"]))
        if how == "pickle":
            return pickle.loads(pickle.dumps(model))
        if how == "copy":
            return copy.deepcopy(model)
        path = os.path.join(folder, "history.model")
        model.save(path)
        return nl.load(path, mmap=how == "mmap")
    elif what == "compact":
        model.compact()
    return model


def assert_same_answers(model, fresh, queries):
    assert model.n_neighbors_ == fresh.n_neighbors_
    mine, theirs = model.label_scores(queries).toarray(), fresh.label_scores(queries).toarray()
    if isinstance(model, nl.IBLR):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        return
    np.testing.assert_array_equal(mine, theirs)
    top = model.rank(queries, top=3)
    np.testing.assert_array_equal(top.labels, fresh.rank(queries, top=3).labels)
    if not isinstance(model, nl.PositivekNN):  # whose cut is the one that was learned
        np.testing.assert_array_equal(model.predict_proba(queries), fresh.predict_proba(queries))
        np.testing.assert_array_equal(model.predict(queries), fresh.predict(queries))
    if isinstance(model, nl.MLkNN):
        np.testing.assert_array_equal(model.prior_, fresh.prior_)
        np.testing.assert_array_equal(model.likelihood_, fresh.likelihood_)


def assert_same_rows(model, fresh, mirror, queries):
    mine, theirs = model.kneighbors(queries), fresh.kneighbors(queries)
    np.testing.assert_array_equal(mine[0], theirs[0])
    ids = model._items.ids(mine[1]), np.array(mirror.ids)[theirs[1]]
    np.testing.assert_array_equal(*ids)
    explained = model.explain(queries[0], top=2)
    wanted = fresh.explain(queries[0], top=2)
    assert [(one.label, one.score) for one in explained.labels] == [
        (one.label, one.score) for one in wanted.labels
    ]
    for groups in zip(model.retrieve(queries[:1], 2, 3)[0], fresh.retrieve(queries[:1], 2, 3)[0]):
        np.testing.assert_array_equal(groups[0].ids, groups[1].ids)


@pytest.mark.parametrize("name", METHODS)
@settings(phases=[Phase.generate], max_examples=40)
@given(data=st.data())
def test_any_history_ends_in_a_fresh_fit(name, data, tmp_path_factory):
    folder = str(tmp_path_factory.getbasetemp())
    k = data.draw(st.integers(1, 3))
    n = data.draw(st.integers(4, 14))
    X, Y = vectors(data.draw, n), label_sets(data.draw, n, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, mirror = METHODS[name](k).fit(X, Y), Mirror(X, Y)
        for _ in range(data.draw(st.integers(1, 6))):
            model = change_something(data.draw, model, mirror, folder)
            if data.draw(st.booleans()):  # what was computed for an answer must not stay
                model.rank(X[:1])
        queries = vectors(data.draw, 4)
        X, Y, ids = mirror.arrays()
        if name != "thresholds of dmlknn" or Y.any():
            _ = model.label_scores(queries)
        fresh = fresh_fit(model, X, Y, ids)
        assert_same_answers(model, fresh, queries)
        assert_same_rows(model, fresh, mirror, queries)
        assert model.verify(), str(model.verify())
