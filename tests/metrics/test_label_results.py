import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from notebook_cells import Cells
from scipy import sparse
from sklearn import metrics as sk
from strategies import label_scores, rankings

import nearlabel as nl
from nearlabel.labels import scores as scores_module
from nearlabel.metrics.label_results import mean_results


def by_scikit_learn(Y, scores, predicted):
    """The same, column by column."""
    found = {name: [] for name in ("precision", "recall", "f1", "average_precision", "auc")}
    for truth, score, decided in zip(Y.T, scores.T, predicted.T, strict=True):
        of_sets = sk.precision_recall_fscore_support(
            truth, decided, average="binary", zero_division=np.nan
        )
        for name, value in zip(("precision", "recall", "f1"), of_sets[:3], strict=True):
            found[name].append(value)
        both = 0 < truth.sum() < len(truth)
        found["auc"].append(sk.roc_auc_score(truth, score) if both else np.nan)
        found["average_precision"].append(
            sk.average_precision_score(truth, score) if truth.any() else np.nan
        )
    return found


@given(rankings())
def test_every_column_is_scikit_learns(ranking):
    Y, scores, predicted = ranking
    expected = by_scikit_learn(Y, scores, predicted)
    for form in (scores, sparse.csr_array(scores), nl.LabelScores(sparse.csr_array(scores))):
        got = nl.metrics.per_label(sparse.csr_array(Y), form, sparse.csc_matrix(predicted))
        assert got.label.tolist() == list(range(Y.shape[1]))
        assert got.support.tolist() == Y.sum(axis=0).tolist()
        for name, values in expected.items():
            np.testing.assert_allclose(getattr(got, name), values, rtol=0, atol=1e-12, err_msg=name)


@given(label_scores())
def test_scores_by_default_rank_rows_as_dense_ones_do(given_scores):
    scores, dense = given_scores
    Y = (np.arange(dense.size).reshape(dense.shape) % 3 == 0).astype(int)
    ours, theirs = nl.metrics.per_label(Y, scores), nl.metrics.per_label(Y, dense)
    np.testing.assert_array_equal(ours.auc, theirs.auc)
    np.testing.assert_array_equal(ours.average_precision, theirs.average_precision)


@pytest.mark.filterwarnings("error")
def test_extreme_scores_and_macro_means_of_scikit_learn():
    rng = np.random.default_rng(0)
    Y = (rng.random((50, 4)) < 0.3).astype(int)
    scores = rng.integers(-2, 3, (50, 4)) * 8e307
    got = nl.metrics.evaluate(Y, nl.LabelScores(sparse.csr_array(scores)))
    assert got["macro_auc"] == pytest.approx(sk.roc_auc_score(Y, scores / 8e307), abs=1e-12)
    expected = sk.average_precision_score(Y, scores / 8e307)
    assert got["macro_average_precision"] == pytest.approx(expected, abs=1e-12)


def test_labels_that_are_not_defined_are_left_out_of_the_means():
    Y = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]])
    scores = np.array([[0.9, 0.1, 0.3], [0.5, 0.2, 0.2], [0.5, 0.3, 0.1]])
    results = nl.metrics.per_label(Y, scores)
    np.testing.assert_array_equal(results.auc, [0.75, np.nan, np.nan])
    np.testing.assert_allclose(results.average_precision, [5 / 6, np.nan, 1])
    assert nl.metrics.macro_auc(Y, scores) == 0.75
    assert nl.metrics.macro_average_precision(Y, scores) == pytest.approx(11 / 12)
    assert np.isnan(nl.metrics.macro_auc(Y[:, 1:], scores[:, 1:]))
    with pytest.warns(UserWarning, match="No positive"):  # where scikit-learn counts 0
        assert sk.average_precision_score(Y, scores) == pytest.approx((5 / 6 + 0 + 1) / 3)


def test_blocks_of_labels_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 30)) < 0.2).astype(int)
    touched = sparse.csr_array((rng.random((40, 30)) < 0.3) * rng.random((40, 30)).round(1))
    forms = (
        nl.LabelScores(touched, rng.random((2, 30)).round(1), group=np.arange(40) % 2),
        touched.toarray(),
    )
    whole = [nl.metrics.per_label(Y, form) for form in forms]
    monkeypatch.setattr(scores_module, "_ENTRIES_AT_ONCE", 50)
    for form, expected in zip(forms, whole, strict=True):
        got = nl.metrics.per_label(Y, form)
        np.testing.assert_array_equal(got.auc, expected.auc)
        np.testing.assert_array_equal(got.average_precision, expected.average_precision)


def test_what_is_not_given_is_not_computed():
    Y, scores = np.eye(3, dtype=int), np.eye(3)
    assert list(nl.metrics.per_label(Y, scores).to_dict()) == [
        "label",
        "support",
        "average_precision",
        "auc",
    ]
    only_sets = nl.metrics.per_label(Y, predicted=Y)
    assert list(only_sets.to_dict()) == ["label", "support", "precision", "recall", "f1"]
    assert only_sets.auc is None
    for arguments, message in (
        ({}, "scores.*predicted"),
        ({"scores": scores[:2]}, r"Y and scores.*\(3, 3\).*\(2, 3\)"),
        ({"predicted": Y[:, :2]}, r"Y and predicted.*\(3, 3\).*\(3, 2\)"),
        ({"scores": scores, "label_names": ["a"]}, r"per label name, 1; got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            nl.metrics.per_label(Y, **arguments)
    with pytest.raises(ValueError, match="column.*'precision'.*'auc'"):
        only_sets.sort_by("auc")


def test_names_and_data_frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    Y = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0]])
    scores = nl.LabelScores.from_dense(Y + 0.5, label_names=["sea", "hill", "road"])
    results = nl.metrics.per_label(Y, scores, Y)
    assert results.label.tolist() == ["sea", "hill", "road"]
    frame = pd.DataFrame(results.to_dict())
    assert frame.columns.tolist()[:3] == ["label", "support", "precision"]
    assert frame["support"].tolist() == [1, 1, 2]
    assert pl.DataFrame(results.to_dict())["label"].to_list() == ["sea", "hill", "road"]
    by_frame = nl.metrics.per_label(pd.DataFrame(Y, columns=list("abc")), predicted=Y)
    assert by_frame.label.tolist() == ["a", "b", "c"]
    named = nl.metrics.per_label(Y, scores, label_names=["x", "y", "z"])
    assert named.label.tolist() == ["x", "y", "z"]


def test_tags():
    tags = [["sea", "road"], ["hill", "road"], []]
    Y = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0]])
    names = ["sea", "hill", "road"]
    scores = nl.LabelScores.from_dense(Y - 0.5 * Y[::-1], label_names=names)
    expected = nl.metrics.per_label(Y, scores, Y[::-1])
    for got in (
        nl.metrics.per_label(tags, scores, tags[::-1]),
        nl.metrics.per_label(tags, scores.toarray(), tags[::-1], label_names=names),
    ):
        assert repr(got) == repr(expected)
    with pytest.raises(ValueError, match="Y.*tags.*label_names"):
        nl.metrics.per_label(tags, predicted=tags)


def test_a_model_by_label(f6):
    X, Y, _ = f6
    model = nl.MLkNN(3).fit(X, Y, label_names=list("abcd"))
    assert nl.metrics.per_label(Y, model.label_scores(X)).label.tolist() == list("abcd")


def test_text_html_and_order():
    Y = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0]])
    predicted = np.array([[1, 0, 0], [1, 0, 1], [0, 0, 0]])
    results = nl.metrics.per_label(Y, predicted=predicted, label_names=["<b>", "never", "road"])
    assert repr(results).splitlines() == [
        "label  support  precision  recall     f1",
        "<b>          2      0.500   0.500  0.500",
        "never        0        nan     nan    nan",
        "road         2      1.000   0.500  0.667",
    ]
    worst = results.sort_by("f1")
    assert worst.label.tolist() == ["<b>", "road", "never"]
    assert worst.precision[:2].tolist() == [0.5, 1]
    assert len(worst) == 3
    shown = Cells(results._repr_html_())
    assert shown.rows[1] == ["<b>", "2", "0.500", "0.500", "0.500"]
    assert "b" not in shown.tags
    many = nl.metrics.per_label(np.eye(90, dtype=int), np.eye(90))
    assert repr(many).splitlines()[-1] == "… 70 more labels"
    assert len(Cells(many._repr_html_()).rows) == 41
    assert "… 50 more labels" in many._repr_html_()


def test_ten_thousand_labels_without_a_dense_matrix():
    n, q = 2000, 10_000
    rng = np.random.default_rng(0)
    row, label = np.repeat(np.arange(n), 20), rng.integers(q, size=20 * n)
    touched = sparse.csr_array((rng.random(20 * n), (row, label)), shape=(n, q))
    Y = sparse.csr_array((touched.data > 0.5, touched.indices, touched.indptr), shape=(n, q))
    scores = nl.LabelScores(touched, rng.random(q) * 0.5)
    tracemalloc.start()
    results = nl.metrics.per_label(Y, scores, Y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * q  # bytes: not even a dense matrix of booleans
    carried = results.support > 0
    assert (results.auc[carried] == 1).all()
    assert np.isnan(results.auc[~carried]).all()


def test_means_over_parts_where_they_are_defined():
    names = ["a", "b"]
    first = nl.metrics.per_label([[1, 0], [0, 0]], [[1, 0], [0, 1]], label_names=names)
    second = nl.metrics.per_label([[1, 0], [0, 0]], [[0, 0], [1, 1]], label_names=names)
    third = nl.metrics.per_label([[0, 0], [0, 0]], [[0, 0], [1, 1]], label_names=names)
    mean = mean_results([first, second, third])
    assert mean.support.tolist() == [2, 0]
    np.testing.assert_array_equal(mean.auc, [0.5, np.nan])
    np.testing.assert_array_equal(mean.average_precision, [0.75, np.nan])
    assert mean.precision is None
