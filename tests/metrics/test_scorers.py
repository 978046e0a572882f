import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.metrics import METRICS


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(300, 5, 6)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_a_scorer_and_losses_are_negated(data, metric):
    Y = data.Y.toarray()
    model = nl.MLkNN().fit(data.X, Y)
    value = nl.metrics.evaluate(Y, model.label_scores(data.X), model.predict(data.X))[metric]
    sign = -1 if metric in ("hamming_loss", "one_error", "coverage", "ranking_loss") else 1
    scorer = nl.metrics.scorer(metric)
    assert scorer(model, data.X, Y) == sign * value
    assert pickle.loads(pickle.dumps(scorer)) == scorer


def test_scorers_see_through_a_pipeline_and_take_other_classifiers(data):
    Y = data.Y.toarray()
    pipe = make_pipeline(MinMaxScaler(), nl.MLkNN(n_neighbors=5)).fit(data.X, Y)
    scorer = nl.metrics.scorer("average_precision", convention="mulan")
    scaled = MinMaxScaler().fit_transform(data.X)
    direct = nl.MLkNN(n_neighbors=5).fit(scaled, Y)
    assert scorer(pipe, data.X, Y) == scorer(direct, scaled, Y)
    assert scorer(make_pipeline(direct), scaled, Y) == scorer(direct, scaled, Y)
    theirs = KNeighborsClassifier().fit(data.X, Y)
    probabilities = np.column_stack([p[:, 1] for p in theirs.predict_proba(data.X)])
    assert scorer(theirs, data.X, Y) == nl.metrics.average_precision(
        Y, probabilities, convention="mulan"
    )


def test_scorers_take_a_target_of_one_column(data):
    y = np.where(data.Y.toarray()[:, 0] == 1, "yes", "no")
    scoring = {
        "hamming": nl.metrics.scorer("hamming_loss"),
        "precision": nl.metrics.scorer("precision_at", at=1),
    }
    for model in (nl.MLkNN(), KNeighborsClassifier()):
        result = cross_validate(model, data.X, y, cv=3, scoring=scoring)
        accuracy = cross_validate(model, data.X, y, cv=3)["test_score"]
        np.testing.assert_allclose(-result["test_hamming"], 1 - accuracy)


@pytest.mark.parametrize(
    "estimator",
    [
        OneVsRestClassifier(LogisticRegression()),
        MLPClassifier((20,), max_iter=100, random_state=0),
        RidgeClassifier(),
        RandomForestClassifier(5, random_state=0),
        KNeighborsClassifier(),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scorers_take_every_kind_of_classifier(data, estimator):
    scorer = nl.metrics.scorer("ranking_loss")
    Y = data.Y.toarray()
    assert -0.5 < scorer(clone(estimator).fit(data.X, Y), data.X, Y) < 0
    y = Y[:, 0]
    one_column = nl.metrics.scorer("success_rate", at=1)
    assert one_column(clone(estimator).fit(data.X, y), data.X, y) == 1


def test_scorers_take_labels_that_no_training_row_carries(data):
    Y = data.Y.toarray()
    never, always = Y.copy(), Y.copy()
    never[:, 2], always[:, 2] = 0, 1
    for labels in (never, always):
        model = RandomForestClassifier(5, random_state=0).fit(data.X, labels)
        score = nl.metrics.scorer("ranking_loss")(model, data.X, labels)
        assert -0.5 < score < 0


@pytest.mark.parametrize("convention", ["paper", "lamda", "mulan", "sklearn"])
def test_metrics_are_means_of_their_rows(convention):
    random = np.random.default_rng(0)
    Y = (random.random((40, 5)) < 0.3).astype(int)
    Y[0], Y[1] = 0, 1
    scores = random.integers(0, 4, (40, 5)) / 4
    decided = (scores > 0.5).astype(int)
    values = nl.metrics.evaluate(Y, scores, decided, convention, at=2)
    rows = nl.metrics.per_row(Y, scores, decided, convention, at=2)
    assert values.keys() - rows.keys() == {
        *("micro_f1", "macro_f1", "macro_average_precision", "macro_auc")
    }
    for name, column in rows.items():
        assert column.shape == (40,)
        assert np.nanmean(column) == pytest.approx(values[name], abs=1e-12)
        for row in (0, 1, 2, 39):
            alone = nl.metrics.evaluate(Y[[row]], scores[[row]], decided[[row]], convention, at=2)
            assert column[row] == pytest.approx(alone[name], nan_ok=True)
    assert "hamming_loss" not in nl.metrics.per_row(Y, scores)
