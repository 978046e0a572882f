import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics as sk
from strategies import rankings

import nearlabel as nl
from nearlabel.metrics import CONVENTIONS, METRICS

# The worked example of the conventions: four rows over four labels.
SCORES = np.array(
    [[0.9, 0.4, 0.4, 0.1], [0.2, 0.7, 0.7, 0.5], [0.3, 0.3, 0.3, 0.3], [0.8, 0.6, 0.1, 0.2]]
)
TRUTH = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("convention", "metric", "per_row"),
    [
        ("paper", "ranking_loss", [0.25, 1 / 3, 1, None]),
        ("lamda", "ranking_loss", [0.25, 1 / 3, 1, None]),
        ("mulan", "ranking_loss", [0, 1 / 3, 1, 0]),
        ("sklearn", "ranking_loss", [0.25, 1 / 3, 1, 0]),
        ("paper", "coverage", [2, 1, 3, None]),
        ("lamda", "coverage", [1, 1, 3, -1]),
        ("mulan", "coverage", [1, 1, 3, 0]),
        ("sklearn", "coverage", [3, 2, 4, 0]),
        ("paper", "average_precision", [5 / 6, 0.5, 0.25, None]),
        ("lamda", "average_precision", [1, 0.5, 0.25, None]),
        ("mulan", "average_precision", [1, 0.5, 0.25, None]),
        ("sklearn", "average_precision", [5 / 6, 0.5, 0.25, 1]),
        ("paper", "one_error", [0, 0, 0, None]),
        ("lamda", "one_error", [0, 0, 0, None]),
        ("mulan", "one_error", [0, 1, 1, 1]),
        ("paper", "mean_inverse_rank", [2 / 3, 0.5, 0.25, None]),
    ],
)
def test_worked_table(convention, metric, per_row):
    for row, expected in enumerate(per_row):
        got = nl.metrics.evaluate(TRUTH[[row]], SCORES[[row]], convention=convention)[metric]
        assert math.isnan(got) if expected is None else got == pytest.approx(expected, abs=1e-12)
    kept = [value for value in per_row if value is not None]
    whole = nl.metrics.evaluate(TRUTH, SCORES, convention=convention)[metric]
    assert whole == pytest.approx(np.mean(kept), abs=1e-12)


@given(rankings(), st.sampled_from(sorted(CONVENTIONS)), st.integers(1, 8))
def test_every_metric_equals_the_literal_oracle_in_every_convention(ranking, convention, at):
    Y, scores, predicted = ranking
    got = nl.metrics.evaluate(Y, scores, predicted, convention, at=at)
    for name in METRICS:
        expected = oracles.metric(name, Y, scores, predicted, convention, at)
        if expected is None:
            assert name not in got
        else:
            assert got[name] == pytest.approx(expected, abs=1e-12, nan_ok=True), name


@given(rankings(), st.sampled_from(sorted(CONVENTIONS)))
def test_dense_and_sparse_forms_give_the_same(ranking, convention):
    Y, scores, predicted = ranking
    dense = nl.metrics.evaluate(Y, scores, predicted, convention)
    touched = nl.LabelScores(sparse.csr_array(scores), 0.0)
    for other in (
        nl.metrics.evaluate(sparse.csr_array(Y), touched, sparse.csc_matrix(predicted), convention),
        nl.metrics.evaluate(Y.astype(bool), sparse.csr_array(scores), predicted * 1.0, convention),
    ):
        assert other == pytest.approx(dense, abs=1e-12, nan_ok=True)


@given(rankings())
def test_the_sklearn_convention_is_scikit_learn(ranking):
    Y, scores, predicted = ranking
    if Y.shape[1] == 1:
        return  # scikit-learn takes one column for a 1-d target
    got = nl.metrics.evaluate(Y, scores, predicted, "sklearn")
    expected = {
        "coverage": sk.coverage_error(Y, scores),
        "ranking_loss": sk.label_ranking_loss(Y, scores),
        "average_precision": sk.label_ranking_average_precision_score(Y, scores),
        "hamming_loss": sk.hamming_loss(Y, predicted),
        "subset_accuracy": sk.accuracy_score(Y, predicted),
        "jaccard": sk.jaccard_score(Y, predicted, average="samples", zero_division=0),
        "micro_f1": sk.f1_score(Y, predicted, average="micro", zero_division=0),
        "macro_f1": sk.f1_score(Y, predicted, average="macro", zero_division=0),
        "example_f1": sk.f1_score(Y, predicted, average="samples", zero_division=0),
    }
    for name, value in expected.items():
        assert got[name] == pytest.approx(value, abs=1e-12), name
    assert "one_error" not in got


def test_each_function_is_what_evaluate_gives():
    predicted = (SCORES > 0.35).astype(int)
    together = nl.metrics.evaluate(TRUTH, SCORES, predicted, "mulan", at=2)
    for name in METRICS:
        function = getattr(nl.metrics, name)
        spec = METRICS[name]
        options = {"at": 2} if spec.option == "at" else {}
        if spec.option == "convention":
            options = {"convention": "mulan"}
        value = function(TRUTH, predicted if spec.reads == "sets" else SCORES, **options)
        assert value == together[name]


def test_without_decisions_only_the_ranking_metrics():
    assert "hamming_loss" not in nl.metrics.evaluate(TRUTH, SCORES)
    assert set(nl.metrics.evaluate(TRUTH, SCORES, TRUTH)) == set(METRICS)


def test_many_labels_without_a_dense_matrix():
    n, q = 1000, 1_000_000
    rng = np.random.default_rng(0)
    Y = sparse.csr_array(
        (np.ones(5 * n), (np.repeat(np.arange(n), 5), rng.integers(q, size=5 * n))), shape=(n, q)
    )
    Y.data[:] = 1
    scores = nl.LabelScores(Y.astype(float), rng.random(q) * 0.5)
    got = nl.metrics.evaluate(Y, scores, Y)
    assert (got["ranking_loss"], got["average_precision"], got["hamming_loss"]) == (0, 1, 0)
    assert got["success_rate"] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: nl.metrics.evaluate([[1, 0]], [[0.1, 0.2, 0.3]]),
            "Y and scores.*shape",
        ),
        (lambda: nl.metrics.hamming_loss([[1, 0]], [[1]]), "Y and predicted.*shape"),
        (lambda: nl.metrics.evaluate([[2, 0]], [[0.1, 0.2]]), r"\bY\b.*2.*matrix.*tags"),
        (lambda: nl.metrics.evaluate(np.array([[2, 0]]), [[0.1, 0.2]]), "2 at row 0, column 0"),
        (
            lambda: nl.metrics.coverage([[1]], [[1.0]], convention="weka"),
            "convention.*'paper', 'lamda'.*'weka'",
        ),
        (
            lambda: nl.metrics.one_error([[1]], [[1.0]], convention="sklearn"),
            "'sklearn' .*one_error.*'paper', 'lamda', 'mulan'",
        ),
        (lambda: nl.metrics.success_rate([[1]], [[1.0]], at=0), r"\bat\b.*1.*0"),
        (lambda: nl.metrics.scorer("accuracy"), "metric .*'hamming_loss'.*'accuracy'"),
        (
            lambda: nl.metrics.scorer("one_error", convention="sklearn"),
            "'sklearn' .*one_error",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
