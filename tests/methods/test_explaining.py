"""The terms of an explanation make its score, in every method."""

from __future__ import annotations

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.methods.registry import METHODS, estimator

pytestmark = pytest.mark.engines


def by_counts(terms, k):
    yes = terms["prior"] * terms["likelihood_with"]
    no = (1 - terms["prior"]) * terms["likelihood_without"]
    return yes / (yes + no)


def by_log_odds(terms, k):
    names = ("intercept", "own", "others", "features")
    return 1 / (1 + np.exp(-sum(terms.get(name, 0) for name in names)))


# How the terms of a method make its score, where they do; in any method they count its voters.
MAKE_THE_SCORE = [
    (nl.MLkNN(), by_counts),
    (nl.LAMLkNN(random_state=0), by_counts),
    (nl.MallowskNN(), lambda terms, k: (terms["count"] + terms["prior"]) / (k + 1)),
    (nl.MallowskNN(estimate="mle"), lambda terms, k: terms["share"]),
    (nl.BRkNN(), lambda terms, k: terms["share"]),
    (nl.BRkNN(weights="distance"), lambda terms, k: terms["share"]),
    (nl.MLCWkNN(), lambda terms, k: terms["weight"]),
    (nl.PositivekNN(n_neighbors=10), lambda terms, k: terms["log_sum"]),
    (nl.IBLR(), by_log_odds),
    (nl.IBLR(keep_features=True), by_log_odds),
]


MODELS = [repr(model) for model, _ in MAKE_THE_SCORE]


@pytest.mark.parametrize(("model", "score"), MAKE_THE_SCORE, ids=MODELS)
def test_terms_make_the_score(model, score):
    data = nl.datasets.make_local_labels(200, 4, 7, random_state=0)
    model.fit(data.X, data.Y)
    for row in range(0, 200, 40):
        for label in model.explain(data.X[row] + 0.1, top=7):
            assert score(label.terms, 10) == pytest.approx(label.score, rel=1e-9, abs=1e-9)
            carried = [voter.id for voter in label.neighbors]
            assert label.terms["count"] == len(carried)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_explains_its_answers(name):
    data = nl.datasets.make_local_labels(120, 4, 7, random_state=0)
    model = estimator(name, 8, random_state=0).fit(data.X, data.Y)
    x = data.X[:1] + 0.1
    ranked, decided = model.rank(x, top=7), model.predict(x).toarray()[0]
    explained = model.explain(x[0], top=7)
    assert [label.label for label in explained] == ranked.labels[0].tolist()
    for label, score in zip(explained, ranked.scores[0], strict=True):
        assert label.score == score
        assert label.predicted == bool(decided[label.label])
        assert label.terms["count"] == len(label.neighbors)
        assert all(
            voter.id in np.flatnonzero(data.Y.toarray()[:, label.label])
            for voter in label.neighbors
        )
        assert all(voter.part == score - voter.score_without for voter in label.neighbors)
        assert all(np.isfinite(value) for name, value in label.terms.items() if name != "theta")


def test_labels_by_column_are_made_once_a_fit():
    first, second = (nl.datasets.make_local_labels(n, 3, 6) for n in (60, 90))
    model = nl.LabelThresholds(nl.MLkNN(n_neighbors=4)).fit(first.X, first.Y)
    before = [group.ids.tolist() for group in model.retrieve(first.X[:1])[0]]
    columns = model._items.by_label
    assert [group.ids.tolist() for group in model.retrieve(first.X[:1])[0]] == before
    assert model._items.by_label is columns
    inner = model.estimator_.retrieve(first.X[:1])[0]
    assert [group.ids.tolist() for group in inner] == before
    model.fit(second.X, second.Y)
    again = nl.LabelThresholds(nl.MLkNN(n_neighbors=4)).fit(second.X, second.Y)
    for ours, theirs in zip(
        model.retrieve(second.X[:9]), again.retrieve(second.X[:9]), strict=True
    ):
        assert [group.ids.tolist() for group in ours] == [group.ids.tolist() for group in theirs]
