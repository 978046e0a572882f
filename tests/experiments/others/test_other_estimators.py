"""Estimators for other learners: compared with literal versions, and with constant labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC

import nearlabel as nl
from nearlabel.experiments.others.other_estimators import (
    ConstantToo,
    LabelForest,
    LabelPowerset,
    MachinePerLabel,
)
from nearlabel.experiments.others.other_methods import OTHERS


@pytest.fixture(scope="module")
def data():
    """With a label that no row has, and one that all rows have."""
    made = nl.datasets.make_local_labels(80, 4, 3, labels_per_sample=2, random_state=0)
    Y = np.column_stack([made.Y.toarray(), np.zeros(80), np.ones(80)]).astype(np.int8)
    return made.X, Y


def test_label_powerset_adds_the_probabilities_of_sets(data):
    X, Y = data
    model = LabelPowerset(LogisticRegression()).fit(X[:60], Y[:60])
    chances = model.predict_proba(X[60:])
    of_sets = model.estimator_.predict_proba(X[60:])
    for label in range(5):
        having = model.sets_[:, label] == 1
        assert chances[:, label] == pytest.approx(of_sets[:, having].sum(axis=1))
    assert (model.predict(X[60:]) == model.sets_[of_sets.argmax(axis=1)]).all()
    only = LabelPowerset(LogisticRegression()).fit(X[:60], np.ones((60, 2), np.int8))
    assert (only.predict_proba(X[60:]) == 1).all()


def test_trees_are_those_of_a_classifier(data):
    X, Y = data
    how = {"n_estimators": 5, "max_features": 2, "random_state": 0}
    mine = LabelForest(ExtraTreesRegressor(**how)).fit(X[:60], Y[:60, :3])
    peer = ExtraTreesClassifier(**how).fit(X[:60], Y[:60, :3])
    expected = np.column_stack([one[:, 1] for one in peer.predict_proba(X[60:])])
    assert mine.predict_proba(X[60:]) == pytest.approx(expected)


def test_constant_labels_are_the_least_and_the_most_likely(data):
    X, Y = data
    machines = MachinePerLabel(LinearSVC(random_state=0)).fit(X[:60], Y[:60])
    base = ConstantToo(LogisticRegression())
    chain = ClassifierChain(base, order="random", random_state=0).fit(X[:60], Y[:60])
    for scores in (machines.decision_function(X[60:]), chain.predict_proba(X[60:])):
        assert (scores.argmin(axis=1) == 3).all()
        assert (scores.argmax(axis=1) == 4).all()
    assert machines.decision_function(X[60:])[:, 0] == pytest.approx(
        LinearSVC(random_state=0).fit(X[:60], Y[:60, 0]).decision_function(X[60:])
    )


@pytest.mark.filterwarnings("ignore")  # of constant labels, and of networks that learn briefly
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_every_learner_learns(data, name, form, monkeypatch):
    from nearlabel.metrics.scorers import estimator_scores

    monkeypatch.setattr("nearlabel.experiments.others.other_methods._TREES", 10)
    X, Y = form(np.abs(data[0])), sparse.csr_array(data[1])
    candidates = OTHERS[name].candidates(X[:60], Y[:60], 0)
    assert len({str(one.parameters) for one in candidates}) == len(candidates) > 1
    model = candidates[0].estimator.fit(X[:60], data[1][:60])
    scores = np.asarray(estimator_scores(model, X[60:]))
    assert scores.shape == (20, 5)
    by_frequency = np.tile(data[1][:60].mean(axis=0), (20, 1))
    frequent = nl.metrics.average_precision(data[1][60:], by_frequency)
    assert nl.metrics.average_precision(data[1][60:], scores) > frequent - 0.1
    assert np.shape(model.predict(X[60:])) == (20, 5)
