"""Classifiers of scikit-learn as readings of a blend."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearlabel as nl
from nearlabel.blend.readings import OtherReading

FEW = {"readings": [], "ridge": False, "forest": False}


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(140, 5, 4, labels_per_sample=2, random_state=0)


def test_scores_of_training_rows_are_cross_fitted(data):
    X, Y = data.X[:41], data.Y[:41]
    estimator = OneVsRestClassifier(LogisticRegression())
    found = OtherReading.fit(estimator, X, Y)
    for row in (0, 5, 40):
        others = np.arange(41) % 4 != row % 4
        model = OneVsRestClassifier(LogisticRegression()).fit(X[others], Y[others].toarray())
        assert found.left_out[row] == pytest.approx(model.predict_proba(X[[row]])[0], abs=1e-6)
    whole = OneVsRestClassifier(LogisticRegression()).fit(X, Y.toarray())
    assert found.scores(data.X[41:]) == pytest.approx(whole.predict_proba(data.X[41:]))


def test_probabilities_and_decision_values(data):
    others = [
        ExtraTreesClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
        OneVsRestClassifier(RidgeClassifier()),
    ]
    model = nl.BlendedNeighbors(5, others=others, **FEW).fit(data.X[:100], data.Y[:100])
    assert list(model.weights_) == [
        "ExtraTreesClassifier",
        "OneVsRestClassifier of LogisticRegression",
        "OneVsRestClassifier of RidgeClassifier",
        "frequency",
    ]
    assert max(model.weights_, key=model.weights_.get) != "frequency"
    chances = model.predict_proba(data.X[100:])
    assert nl.metrics.average_precision(data.Y[100:], chances) > 0.75
    assert (model.predict(data.X[100:]) == (chances > 0.5)).all()


def test_a_blend_with_others_has_no_file(data, tmp_path):
    others = [ExtraTreesClassifier(3, random_state=0)]
    model = nl.BlendedNeighbors(5, others=others, **FEW).fit(data.X, data.Y)
    with pytest.raises(TypeError, match=r"others=\[ExtraTreesClassifier.* cannot be saved: model"):
        model.save(tmp_path / "blend.model")
    assert not (tmp_path / "blend.model").exists()


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (ExtraTreesClassifier(), "others must be a list of scikit-learn classifiers"),
        ([ExtraTreesClassifier], "others must be scikit-learn classifiers with predict_proba"),
        ([StandardScaler()], "others must be scikit-learn classifiers with predict_proba"),
        ([LogisticRegression()], "others: LogisticRegression cannot be fitted to 4 labels"),
    ],
)
def test_invalid_input(data, others, message):
    with pytest.raises((TypeError, ValueError), match=message):
        nl.BlendedNeighbors(5, others=others, **FEW).fit(data.X, data.Y)


def test_too_many_labels_are_refused(data, monkeypatch):
    monkeypatch.setattr("nearlabel.blend.blended_neighbors.DENSE_LABELS", 3)
    others = [ExtraTreesClassifier(3)]
    with pytest.raises(ValueError, match="others supports at most 3 labels; got 4"):
        nl.BlendedNeighbors(5, others=others).fit(data.X, data.Y)
