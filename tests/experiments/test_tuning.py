import warnings
from unittest import mock

import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.experiments import folds
from nearlabel.metrics import METRICS, scorer


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(160, 5, 6, random_state=3)


@pytest.fixture
def searches():
    """Every graph that is searched: its number of neighbors."""
    found = []
    search = folds.neighbor_graph

    def neighbor_graph(X, k, *rest, **how):
        found.append((k, how["metric"]))
        return search(X, k, *rest, **how)

    with mock.patch.object(folds, "neighbor_graph", neighbor_graph):
        yield found


@pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning")
@pytest.mark.filterwarnings("ignore:leave-one-out:UserWarning")  # of few rows
@pytest.mark.filterwarnings("ignore:scoring:UserWarning")  # of one label
@parametrize_with_quick_checks(
    [
        nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [1, 3]}),
        nl.GraphSearchCV(nl.BRkNN(), {"n_neighbors": [1, 3]}, scoring="hamming_loss", cv=3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("cv", "sparse_y"),
    [
        (4, False),
        (KFold(3, shuffle=True, random_state=0), True),
        pytest.param(4, True, marks=pytest.mark.slow),
        pytest.param(KFold(3, shuffle=True, random_state=0), False, marks=pytest.mark.slow),
    ],
)
def test_as_scikit_learns_grid_search(made, searches, cv, sparse_y):
    Y = made.Y if sparse_y else made.Y.toarray()
    grid = [
        {"n_neighbors": [1, 5, 12], "smoothing": [0.5, 1.0]},
        {"n_neighbors": [5], "metric": ["cosine"]},
    ]
    scoring = {name: scorer(name) for name in METRICS}
    ours = nl.GraphSearchCV(nl.MLkNN(), grid, scoring=scoring, cv=cv, refit="ranking_loss")
    ours.fit(made.X, Y)
    assert [metric for _, metric in searches] == ["euclidean", "cosine"]
    theirs = GridSearchCV(nl.MLkNN(), grid, scoring=scoring, cv=cv, refit="ranking_loss")
    theirs.fit(made.X, Y if not sparse_y else made.Y.tocsc().tocsr())
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for name in theirs.cv_results_:
        if name.startswith("param"):
            assert list(ours.cv_results_[name]) == list(theirs.cv_results_[name])
        elif not name.endswith("_time"):
            np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name], name)
    assert (ours.n_splits_, ours.multimetric_) == (theirs.n_splits_, theirs.multimetric_)
    assert ours.best_score_ == theirs.best_score_
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_array_equal(ours.predict_proba(made.X), theirs.predict_proba(made.X))
    assert ours.score(made.X, Y) == theirs.score(made.X, Y)


def test_leave_one_out_over_methods_on_one_graph(made, searches):
    grid = [
        {"estimator": [nl.MLkNN()], "n_neighbors": [3, 8], "smoothing": [0.5, 1]},
        {"estimator": [nl.LAMLkNN(random_state=0)], "n_neighbors": [3, 8], "n_clusters": [2, 3]},
        {"estimator": [nl.PositivekNN()], "n_neighbors": [8, 20], "rate": [1.0, 5.0]},
    ]
    scoring = ["average_precision", "hamming_loss"]
    search = nl.GraphSearchCV(nl.MLkNN(), grid, scoring=scoring, refit="average_precision")
    search.fit(made.X, made.Y)
    assert searches == [(20, "euclidean")]
    graph = nl.neighbor_graph(made.X, 20)
    rows = np.arange(len(made))
    for place, parameters in enumerate(search.cv_results_["params"]):
        own = dict(parameters)
        model = clone(own.pop("estimator")).set_params(**own).fit(made.X, made.Y)
        near = graph.head(model.n_neighbors)
        scores = model._left_out_scores(near, made.X, rows)
        expected = nl.metrics.evaluate(made.Y, scores, model._decide(scores, near))
        found = {name: search.cv_results_[f"mean_test_{name}"][place] for name in scoring}
        assert found["average_precision"] == expected["average_precision"]
        assert found["hamming_loss"] == -expected["hamming_loss"]
    best = dict(search.best_params_)
    alone = clone(best.pop("estimator")).set_params(**best).fit(made.X, made.Y)
    assert type(search.best_estimator_) is type(alone)
    np.testing.assert_array_equal(search.predict_proba(made.X), alone.predict_proba(made.X))
    assert (
        search.rank(made.X[:2], top=3).labels.tolist() == alone.rank(made.X[:2], 3).labels.tolist()
    )


def test_a_sweep_over_k_is_one_model_after_the_other(made):
    grid = {"n_neighbors": list(range(1, 31))}
    swept = nl.GraphSearchCV(nl.MLkNN(), grid, scoring=list(METRICS), refit=False)
    swept.fit(made.X, made.Y)
    with mock.patch("nearlabel.experiments.folds._SWEEP_BYTES", 0):
        single = clone(swept).fit(made.X, made.Y)
    for name in METRICS:
        key = f"mean_test_{name}"
        np.testing.assert_array_equal(swept.cv_results_[key], single.cv_results_[key], name)


def test_ties_go_to_the_smaller_k():
    # Two far clusters with one label each: every k up to 9 is perfect.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random((20, 2)), 50 + rng.random((20, 2))])
    y = np.repeat([[1, 0], [0, 1]], 20, axis=0)
    for order in ([9, 3, 5], [3, 5, 9], [5, 9, 3]):
        search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": order}).fit(X, y)
        assert search.cv_results_["mean_test_score"].tolist() == [0, 0, 0]
        assert search.best_params_ == {"n_neighbors": 3}
        assert search.cv_results_["rank_test_score"].tolist() == [1, 1, 1]


def test_one_column_of_two_classes():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = np.where(X[:, 0] + 0.1 * rng.random(60) > 0.5, "yes", "no")
    for cv in ("loo", 3):
        search = nl.GraphSearchCV(
            nl.MLkNN(), {"n_neighbors": [1, 5]}, scoring="hamming_loss", cv=cv
        )
        search.fit(X, y)
        assert search.classes_.tolist() == ["no", "yes"]
        assert set(search.predict(X)) == {"no", "yes"}
        assert -0.2 < search.score(X, y) <= 0
    theirs = GridSearchCV(
        nl.MLkNN(), {"n_neighbors": [1, 5]}, scoring=scorer("hamming_loss"), cv=3
    ).fit(X, y)
    np.testing.assert_array_equal(
        theirs.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


def test_holdouts_that_overlap_in_no_row(made):
    splitter = ShuffleSplit(3, test_size=0.4, random_state=0)
    search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [4]}, cv=splitter).fit(made.X, made.Y)
    for place, (train, test) in enumerate(splitter.split(made.X)):
        model = nl.MLkNN(n_neighbors=4).fit(made.X[train], made.Y[train])
        expected = scorer("ranking_loss")(model, made.X[test], made.Y[test])
        # The rows of a part are sorted, which may change the last digit of a mean.
        found = search.cv_results_[f"split{place}_test_score"][0]
        assert found == pytest.approx(expected, rel=1e-14)


def test_progress_and_times(made):
    told = []
    search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [2, 4, 6]}, cv=2)
    search.fit(made.X, made.Y, progress=lambda *step: told.append(step))
    assert told[0] == (160, 640)
    assert told[-1] == (640, 640)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert (search.cv_results_["mean_fit_time"] > 0).all()
    assert search.refit_time_ > 0


def test_refit(made):
    grid = {"n_neighbors": [2, 30]}
    several = ["ranking_loss", "hamming_loss"]
    left = nl.GraphSearchCV(nl.MLkNN(), grid, refit=False).fit(made.X, made.Y)
    assert left.best_params_["n_neighbors"] in (2, 30)
    assert not hasattr(left, "predict")
    with pytest.raises(AttributeError, match="predict"):
        left.predict(made.X)
    search = nl.GraphSearchCV(nl.MLkNN(), grid, scoring=several, refit=lambda results: 1)
    search.fit(made.X, made.Y)
    assert (search.best_index_, search.best_estimator_.n_neighbors) == (1, 30)
    assert not hasattr(search, "best_score_")
    with pytest.raises(ValueError, match="score.*refit.*scoring"):
        search.score(made.X, made.Y)
    for refit, message in (
        (True, "refit.*'ranking_loss', 'hamming_loss'.*True"),
        ("coverage", "refit.*'ranking_loss', 'hamming_loss'.*'coverage'"),
        (lambda _: 2, "refit .*cv_results_.*0 to 1.* 2"),
    ):
        with pytest.raises(ValueError, match=message):
            nl.GraphSearchCV(nl.MLkNN(), grid, scoring=several, refit=refit).fit(made.X, made.Y)
    none = nl.GraphSearchCV(nl.MLkNN(), grid, scoring=several, refit=False).fit(made.X, made.Y)
    assert not hasattr(none, "best_index_")


def test_a_failed_search_changes_nothing(made):
    search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [2, 3]}).fit(made.X, made.Y)
    before = dict(vars(search))
    with pytest.raises(ValueError, match="NaN"):
        search.fit(np.full((9, 2), np.nan), np.eye(9, dtype=int))
    with (
        mock.patch("nearlabel.experiments.folds.left_out_sweep", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        search.fit(made.X[:50, :2], made.Y[:50])
    assert vars(search) == before


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scoring": "f1"}, ValueError, "scoring .*nearlabel.*'f1'"),
        ({"scoring": []}, ValueError, "scoring .*no metric"),
        ({"scoring": max}, ValueError, "scoring .*nearlabel.*function max"),
        ({"scoring": ["coverage", "coverage"]}, ValueError, "scoring .*metric twice"),
        ({"cv": "five"}, ValueError, "cv .*'loo'.*'five'"),
        ({"cv": [([0, 1, 2], [2, 3])]}, ValueError, "cv .*row in both"),
        ({"cv": []}, ValueError, "cv .*no folds"),
        ({"cv": [([0, 1, 999], [2, 3])]}, ValueError, "cv .*0 to 159"),
        ({"cv": [([0, 1, 1], [2, 3])]}, ValueError, "cv .*row twice"),
        ({"scoring": ["coverage"]}, ValueError, "refit.*'coverage'.*True"),
        ({"cv": [([0], [2, 3])]}, ValueError, "cv .*1 and 2"),
        ({"estimator": MinMaxScaler()}, TypeError, r"estimator.*nearlabel.*MinMaxScaler\(\)"),
        (
            {"param_grid": {"n_neighbors": [0]}},
            ValueError,
            "n_neighbors.*1.*0",
        ),
        ({"param_grid": {"neighbors": [1]}}, ValueError, "Invalid parameter 'neighbors'"),
        ({"param_grid": {"n_neighbors": []}}, ValueError, "n_neighbors"),
        ({"param_grid": 7}, TypeError, "dict"),
    ],
)
def test_bad_arguments(made, change, error, message):
    given = {"estimator": nl.MLkNN(), "param_grid": {"n_neighbors": [3]}} | change
    with pytest.raises(error, match=message):
        nl.GraphSearchCV(**given).fit(made.X, made.Y)


def test_a_metric_that_is_nowhere_defined(made):
    search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [5, 3]})
    with pytest.warns(UserWarning, match="metric .*not defined"):
        search.fit(made.X, np.ones((160, 2), int))
    assert search.best_params_ == {"n_neighbors": 3}
    assert np.isnan(search.best_score_)


def test_a_custom_search_is_called_once(made):
    class Counting:
        """Equal only to itself, like most objects."""

        built = 0

        def build(self, vectors, metric="euclidean"):
            Counting.built += 1
            return nl.ExactSearch().build(vectors, metric)

    grid = {"n_neighbors": [2, 4, 6]}
    search = nl.GraphSearchCV(nl.MLkNN(search=Counting()), grid).fit(made.X, made.Y)
    assert Counting.built == 1
    plain = nl.GraphSearchCV(nl.MLkNN(), grid).fit(made.X, made.Y)
    key = "mean_test_score"
    np.testing.assert_array_equal(search.cv_results_[key], plain.cv_results_[key])
    both = {"n_neighbors": [2], "search": ["exact", nl.ExactSearch(2**20)]}
    results = nl.GraphSearchCV(nl.MLkNN(), both).fit(made.X, made.Y).cv_results_
    assert results[key][0] == results[key][1]


def test_leave_one_out_is_unbiased_for_random_labels():
    """Up to a quarter of the rows; beyond that it is biased, with a warning."""
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 4)), rng.integers(0, 2, (400, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [10, 30, 100]}).fit(X, y)
    assert (search.cv_results_["mean_test_score"] < -0.4).all()
    with pytest.warns(UserWarning, match="n_neighbors=399 .*400 rows.* 100"):
        search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [10, 399]}).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] == 0
    with warnings.catch_warnings():  # a method that learns nothing from neighbors is exact
        warnings.simplefilter("error")
        lazy = nl.GraphSearchCV(nl.BRkNN(), {"n_neighbors": [10, 399]}).fit(X, y)
        folds = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [200]}, cv=3).fit(X, y)
    assert (lazy.cv_results_["mean_test_score"] < -0.4).all()
    assert folds.best_score_ < -0.4


def test_names_of_features_are_kept(made):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(made.X, columns=list("abcde"))
    for cv in ("loo", 3, [(np.arange(100), np.arange(100, 160))]):
        search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [3]}, cv=cv).fit(frame, made.Y)
        assert search.feature_names_in_.tolist() == list("abcde")
        search.predict(frame)  # without a warning
        with pytest.raises(ValueError, match="feature names"):
            search.predict(frame[list("edcba")])


def test_many_labels_stay_sparse_in_plain_folds(made):
    Y = made.Y.copy()
    Y.resize((160, 10**7))
    search = nl.GraphSearchCV(nl.BRkNN(), {"n_neighbors": [3]}, cv=2, refit=False)
    assert search.fit(made.X, Y).n_splits_ == 2


def test_the_models_of_a_grid_stay_as_they_were(made):
    model = nl.BRkNN()
    nl.GraphSearchCV(nl.MLkNN(), {"estimator": [model], "n_neighbors": [3, 4]}).fit(made.X, made.Y)
    assert not hasattr(model, "classes_")


def test_folds_with_an_undefined_metric_do_not_count(made):
    """Single rows without labels, or with all labels, have no ranking loss."""
    y = made.Y.toarray()[:40]
    y[3], y[7] = 0, 1
    search = nl.GraphSearchCV(nl.BRkNN(), {"n_neighbors": [2, 5]}, cv=40).fit(made.X[:40], y)
    results = search.cv_results_
    assert np.isnan(results["split3_test_score"]).all()
    splits = np.array([results[f"split{place}_test_score"] for place in range(40)])
    kept = ~np.isnan(splits[:, 0])
    assert kept.sum() < 39
    np.testing.assert_allclose(results["mean_test_score"], splits[kept].mean(axis=0))
    # A method that learns nothing from neighbors: the same as leave-one-out.
    left_out = nl.GraphSearchCV(nl.BRkNN(), {"n_neighbors": [2, 5]}).fit(made.X[:40], y)
    np.testing.assert_allclose(
        results["mean_test_score"], left_out.cv_results_["mean_test_score"], rtol=1e-12
    )
