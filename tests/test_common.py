"""scikit-learn's contract: all its checks, no expected failure, and the tools around it."""

import pickle

import joblib
import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import nearlabel as nl
from nearlabel.methods.registry import METHODS, estimator

ESTIMATORS = [
    *(estimator(name, 10, random_state=0) for name in METHODS),
    nl.LabelThresholds(nl.MLkNN()),
    nl.BlendedNeighbors(),
]


# The checks fit on few rows, fewer than n_neighbors.
@pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning")
@parametrize_with_quick_checks(ESTIMATORS, quick=[nl.MLkNN])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def _no_rows_to_add(estimator):
    """A model of given distances cannot add rows, and says so."""
    if estimator.get_params().get("metric") == "precomputed":
        return {"check_fit_score_takes_y": "partial_fit refuses given distances"}
    return {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning")
@parametrize_with_checks(
    [
        nl.MLkNN(n_neighbors=3, smoothing=0, metric="cosine"),
        nl.MLkNN(n_neighbors=3, metric="precomputed"),
        nl.PositivekNN(n_neighbors=None, fit_by="gradient"),
        nl.PositivekNN(n_neighbors=3, rate=2.0, metric="precomputed"),
        nl.BRkNN(weights="distance", fill="top"),
        nl.BRkNN(fill="cardinality"),
        nl.DMLkNN(tolerance=0, denominator="counts"),
        nl.LabelThresholds(nl.BalancedkNN()),
        nl.LabelThresholds(nl.PositivekNN()),
        nl.MallowskNN(estimate="mle"),
        nl.IBLR(n_neighbors=3, keep_features=True, ridge=0.1),
        nl.IBLR(n_neighbors=3, metric="precomputed"),
    ],
    expected_failed_checks=_no_rows_to_add,
)
def test_scikit_learn_checks_with_other_parameters(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(240, 5, 6, labels_per_sample=2)


# A blend of all that it can learn takes most of the time of these tests.
QUICK = [*ESTIMATORS[:-1], nl.BlendedNeighbors(forest=False, learn_distance=False)]


@pytest.mark.parametrize("estimator", QUICK, ids=lambda e: type(e).__name__)
class TestTools:
    def test_grid_search_over_a_pipeline(self, estimator, data):
        pipe = make_pipeline(MinMaxScaler(), clone(estimator))
        inner = "estimator__" if hasattr(estimator, "estimator") else ""
        size = "per_class" if isinstance(estimator, nl.BalancedkNN) else f"{inner}n_neighbors"
        grid = {f"{pipe.steps[-1][0]}__{size}": [3, 15]}
        search = GridSearchCV(pipe, grid, cv=3, scoring="average_precision")
        search.fit(data.X, data.Y.toarray())
        assert search.best_score_ > 0.6
        assert search.predict(data.X).shape == data.Y.shape

    def test_roc_auc_of_a_target_of_one_column(self, estimator, data):
        y = np.where(data.Y.toarray()[:, 0] == 1, "b", "a")
        scores = cross_val_score(clone(estimator), data.X, y, cv=3, scoring="roc_auc")
        assert scores.min() > 0.7

    @pytest.mark.parametrize("method", ["predict", "predict_proba"])
    def test_cross_val_predict(self, estimator, data, method):
        got = cross_val_predict(clone(estimator), data.X, data.Y.toarray(), cv=3, method=method)
        assert got.shape == data.Y.shape
        if method == "predict_proba":
            assert ((got > 0) & (got < 1)).all()

    def test_clone_and_pickle(self, estimator, data, tmp_path):
        copy = clone(estimator)
        assert repr(copy.get_params()) == repr(estimator.get_params())
        model = copy.fit(data.X, data.Y)
        expected = model.predict_proba(data.X)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(model)).predict_proba(data.X), expected
        )
        joblib.dump(model, tmp_path / "model.joblib")
        restored = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
        np.testing.assert_array_equal(restored.predict_proba(data.X), expected)

    def test_fit_graph_equals_fit(self, estimator, data):
        graph = nl.neighbor_graph(data.X, 50)
        asked = nl.neighbor_graph(data.X, 50, data.X + 0.1)
        fitted = clone(estimator).fit(data.X, data.Y)
        by_graph = clone(estimator).fit_graph(graph, data.Y, data.X)
        expected = fitted.label_scores(data.X + 0.1).toarray()
        np.testing.assert_array_equal(
            by_graph.scores_from_graph(asked, data.X + 0.1).toarray(), expected
        )
        np.testing.assert_array_equal(by_graph.label_scores(data.X + 0.1).toarray(), expected)

    def test_predict_agrees_with_probabilities_and_ranking(self, estimator, data):
        model = clone(estimator).fit(data.X, data.Y.toarray())
        decided, probabilities = model.predict(data.X), model.predict_proba(data.X)
        np.testing.assert_array_equal(decided, probabilities > 0.5)
        scores = model.label_scores(data.X)
        ranked = model.rank(data.X, top=data.Y.shape[1])
        np.testing.assert_array_equal(ranked.scores, -np.sort(-scores.toarray(), axis=1))
        assert (np.diff(ranked.scores) <= 0).all()

    def test_answers_in_the_form_of_y(self, estimator, data):
        Y = data.Y.toarray()
        dense = clone(estimator).fit(data.X, Y).predict(data.X)
        assert isinstance(dense, np.ndarray)
        assert dense.dtype.kind == "i"
        for form in (data.Y, sparse.csr_matrix(Y), sparse.csc_array(Y.astype(float))):
            got = clone(estimator).fit(data.X, form).predict(data.X)
            assert isinstance(got, sparse.csr_array)
            np.testing.assert_array_equal(got.toarray(), dense)

    def test_pandas_and_polars(self, estimator, data):
        pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
        names = ["sea", "hill", "tree", "sand", "town", "night"]
        Y = data.Y.toarray().astype(int)
        expected = clone(estimator).fit(data.X, Y).predict(data.X)
        X = pd.DataFrame(data.X, columns=list("abcde"))
        model = clone(estimator).fit(X, pd.DataFrame(Y, columns=names))
        np.testing.assert_array_equal(model.predict(X), expected)
        assert model.feature_names_in_.tolist() == list("abcde")
        assert model.label_names_.tolist() == names
        ranked = model.rank(X, top=2)
        np.testing.assert_array_equal(ranked.names, np.array(names)[ranked.labels])
        nullable = pd.DataFrame(Y, columns=names).astype("Int64")
        np.testing.assert_array_equal(clone(estimator).fit(X, nullable).predict(X), expected)
        frame = pl.DataFrame(Y, schema=names)
        model = clone(estimator).fit(pl.DataFrame(data.X), frame)
        np.testing.assert_array_equal(model.predict(pl.DataFrame(data.X)), expected)
        assert model.label_names_.tolist() == names

    def test_inside_another_estimator(self, estimator, data):
        X, Y = data.X[:90], data.Y[:90, :3].toarray()
        several = MultiOutputClassifier(clone(estimator)).fit(X, Y)
        alone = [clone(estimator).fit(X, column).predict(X) for column in Y.T]
        np.testing.assert_array_equal(several.predict(X), np.transpose(alone))
