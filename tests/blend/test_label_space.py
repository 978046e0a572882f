"""LabelSpace: leave-one-out by literal refits, estimator checks, choices, edge cases, files."""

import pickle

import numpy as np
import pandas as pd
import pytest
from estimator_checks import parametrize_with_quick_checks
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer
from strategies import examples, label_matrices, vectors
from tree_paths import paths, replaced

import nearlabel as nl
from nearlabel.common.arrays import canonical_csr
from nearlabel.common.files import read_stored, write_tree

LEFT_OUT = "training rows are left out: fit_transform is not transform, as with TargetEncoder"


# Both checks compare fit_transform with transform on the training rows; what else they ask for is
# held by tests below.
@parametrize_with_quick_checks(
    [nl.LabelSpace()],
    expected_failed_checks=lambda _: {
        "check_transformer_general": LEFT_OUT,
        "check_transformer_data_not_an_array": LEFT_OUT,
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    made = nl.datasets.make_local_labels(160, 5, 6, labels_per_sample=2)
    return made.X.astype(np.float64), made.Y


def literal_left_out(model, X, Y):
    """Coordinates of each row by slopes fitted to the others, and by the mean of all labels."""
    mean = Y.mean(axis=0)
    p = mean * (1 - mean)
    scales = np.array([0 if one == 0 else one ** (-model.spread_ / 2) for one in p])
    Xc = X - X.mean(axis=0)
    values = np.linalg.svd(Xc, compute_uv=False) ** 2
    values = values[values > 1e-14 * values.max()]
    penalty = model.alpha_ * values.mean()
    found = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        center = X[others].mean(axis=0)
        A, B = X[others] - center, Y[others] - Y[others].mean(axis=0)
        W = np.linalg.solve(A.T @ A + penalty * np.eye(X.shape[1]), A.T @ B)
        found.append(((X[i] - center) @ W + mean) * scales)
    return np.array(found)


def mean_squared_distance(rows):
    differences = rows[:, None] - rows[None]
    n = len(rows)
    return (differences**2).sum() / (n * (n - 1))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("weight", "metric"), [(1.0, "euclidean"), (0.3, "cosine")])
def test_rows_are_those_of_literal_refits(data, form, weight, metric):
    X, Y = data[0][:60], data[1][:60].toarray()
    model = nl.LabelSpace("linear", weight=weight, metric=metric)
    rows = model.fit_transform(form(X), Y)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    L = literal_left_out(model, X, Y)
    wanted = L / np.sqrt(mean_squared_distance(L)) * np.sqrt(weight)
    if weight < 1:
        plain = X / np.sqrt(mean_squared_distance(X)) * np.sqrt(1 - weight)
        wanted = np.hstack([wanted, plain])
    if metric == "cosine":
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, wanted, atol=1e-8)


def test_principal_axes_keep_distances(data):
    """With as many axes as there can be, distances of new rows are those of all predictions."""
    X, Y = data
    Y = sparse.csr_array(sparse.hstack([Y] * 3))
    whole = nl.LabelSpace("linear", weight=1, metric="euclidean")
    few = clone(whole).set_params(n_components=6)
    left_out, on_axes = whole.fit_transform(X, Y), few.fit_transform(X, Y)
    assert (left_out.shape[1], on_axes.shape[1]) == (18, 5)  # 18 labels, 5 features
    new = X[:20] + 0.1
    scale = few._joining.learned / whole._joining.learned
    wanted = nl.neighbor_graph(whole.transform(new), 5)
    found = nl.neighbor_graph(few.transform(new), 5)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_allclose(found.distances, wanted.distances * scale, rtol=1e-8)
    # Three axes are those that the predictions vary along most.
    three = clone(whole).set_params(n_components=3).fit(X, Y)
    rows = three.transform(X) / three._joining.learned
    predictions = whole.transform(X) / whole._joining.learned
    greatest = np.linalg.svd(predictions - predictions.mean(axis=0), compute_uv=False)[:3]
    found = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(found, greatest, rtol=1e-8)


def test_left_out_rows_are_unbiased():
    """With random labels, ML-kNN does as well on left-out rows as on new ones, within the noise.

    With the means of the other rows they do not, by .1 to .4; docs/label_space.md has the little
    that remains and that 20 draws do not always show.
    """
    differences, advantages = [], []
    share = np.linspace(0.2, 0.5, 4)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(2, 400, 8)), rng.random((2, 400, 4)) < share
        n = 100
        space = nl.LabelSpace(random_state=seed)
        rows = space.fit_transform(X[0, :n], Y[0, :n].astype(int))
        truth = canonical_csr(Y[0, :n].astype(np.int8))
        graph = nl.neighbor_graph(rows, 10)
        model = nl.MLkNN(10).fit_graph(graph, truth, rows)
        left_out = model._left_out_scores(graph, rows, np.arange(n))
        seen = nl.metrics.average_precision(truth, left_out)
        fresh = model.label_scores(space.transform(X[1]))
        unseen = nl.metrics.average_precision(Y[1].astype(int), fresh)
        prior = nl.metrics.average_precision(Y[1].astype(int), np.tile(share, (400, 1)))
        differences.append(seen - unseen)
        advantages.append(seen - prior)
    assert abs(np.mean(differences)) <= 3 * np.std(differences, ddof=1) / np.sqrt(20)
    assert np.mean(advantages) <= 3 * np.std(advantages, ddof=1) / np.sqrt(20)


def test_choices_are_the_best_candidates(data):
    model = nl.LabelSpace(spread="auto").fit(*data)
    assert len(model.candidates_) == 8
    best = max(model.candidates_, key=lambda one: one["score"])
    assert (model.spread_, model.weight_, model.metric_) == (
        *(best["spread"], best["weight"], best["metric"]),
    )
    assert model.kernel_scores_[model.kernel_] == max(model.kernel_scores_.values())
    # The score of a candidate is that of ML-kNN with this candidate only.
    given = nl.LabelSpace(
        model.kernel_, spread=best["spread"], weight=best["weight"], metric=best["metric"]
    )
    rows = given.fit_transform(*data)
    assert given.candidates_ == []
    graph = nl.neighbor_graph(rows, 30)
    learned = nl.MLkNN(30).fit_graph(graph, data[1])
    scores = learned._left_out_scores(graph, None, np.arange(len(rows)))
    assert best["score"] == pytest.approx(nl.metrics.average_precision(data[1], scores))


@examples(15)
@given(data=st.data(), X=vectors(), kernel=st.sampled_from(["linear", "rbf"]))
def test_any_rows_and_labels(data, X, kernel):
    """Duplicates, constant columns, two rows, labels of none or all: finite, dense as CSR."""
    Y = data.draw(label_matrices(len(X)))
    X = X.astype(np.float64) / (np.abs(X).max() or 1)
    space = nl.LabelSpace(kernel, weight=0.5, metric="euclidean", alpha=1.0)
    rows = space.fit_transform(X, Y)
    assert np.isfinite(rows).all()
    new = space.transform(X)
    assert rows.shape == new.shape == (len(X), space.get_feature_names_out().size)
    from_sparse = clone(space)
    again = from_sparse.fit_transform(sparse.csr_array(X), sparse.csr_array(Y))
    np.testing.assert_allclose(again.toarray(), rows, atol=1e-6)
    np.testing.assert_allclose(from_sparse.transform(X), new, atol=1e-6)
    np.testing.assert_allclose(space.transform(sparse.csr_array(X)).toarray(), new, atol=1e-6)


def test_forms_of_labels(data):
    X, Y = data[0], data[1].toarray()
    wanted = nl.LabelSpace(weight=1).fit_transform(X, Y)
    tags = [[f"tag {label}" for label in np.flatnonzero(row)] for row in Y]
    for form in (data[1], tags, pd.DataFrame(Y), Y.astype(bool), Y.tolist()):
        np.testing.assert_array_equal(nl.LabelSpace(weight=1).fit_transform(X, form), wanted)
    one = nl.LabelSpace(weight=1).fit(X, Y[:, 0])
    assert one.transform(X).shape == (len(X), 1)
    words = nl.LabelSpace(weight=1).fit_transform(X, np.where(Y[:, 0], "yes", "no"))
    np.testing.assert_array_equal(words, nl.LabelSpace(weight=1).fit_transform(X, Y[:, 0]))
    classes = np.arange(len(X)) % 3
    three = nl.LabelSpace(weight=1).fit_transform(X, classes)
    np.testing.assert_array_equal(
        three, nl.LabelSpace(weight=1).fit_transform(X, np.eye(3, dtype=int)[classes])
    )


def test_repeated_fits_threads_and_types(data):
    X, Y = data
    space = nl.LabelSpace()
    rows = space.fit_transform(X, Y)
    np.testing.assert_array_equal(space.fit_transform(X, Y), rows)
    np.testing.assert_array_equal(nl.LabelSpace(n_jobs=2).fit_transform(X, Y), rows)
    np.testing.assert_array_equal(
        space.transform(X), nl.LabelSpace().fit(X.tolist(), Y.toarray().tolist()).transform(X)
    )
    small = nl.LabelSpace().fit_transform(X.astype(np.float32), Y)
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, rows, atol=1e-4)
    with pytest.raises(ValueError, match="4 features"):
        space.transform(X[:, :4])


def test_pipelines_learn_from_left_out_rows(data):
    X, Y = data
    for make in (make_pipeline, nl.make_pipeline):
        model = make(nl.LabelSpace(), nl.MLkNN()).fit(X, Y)
        step = nl.LabelSpace()
        alone = nl.MLkNN().fit(step.fit_transform(X, Y), Y)
        np.testing.assert_array_equal(
            model.predict_proba(X), alone.predict_proba(step.transform(X))
        )
    frames = nl.LabelSpace(weight=0.5).set_output(transform="pandas").fit_transform(X, Y)
    assert frames.columns[0] == "labelspace0"
    assert frames.shape == (len(X), 11)


TEXTS = np.array(["sea and sand", "the sea at night", "a city at night", "city lights"] * 8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_files(data, kernel, weight, tmp_path):
    X, Y = data
    cases = [
        (nl.make_pipeline(nl.LabelSpace(kernel, weight=weight), nl.MLkNN(5)), X, Y),
        (
            nl.make_pipeline(TfidfVectorizer(), nl.LabelSpace(kernel, weight=weight), nl.MLkNN(5)),
            *(TEXTS, np.array([[1, 0], [1, 1], [0, 1], [0, 1]] * 8)),
        ),
    ]
    for model, items, labels in cases:
        model.fit(items, labels)
        nl.save(model, tmp_path / "model")
        for mmap in (False, True):
            again = nl.load(tmp_path / "model", mmap=mmap)
            np.testing.assert_array_equal(again.predict_proba(items), model.predict_proba(items))
        step, stored = model[-2], again[-2]
        assert stored.get_params() == step.get_params()
        for name in ("kernel", "alpha", "weight", "metric", "spread", "candidates", "gamma"):
            assert getattr(stored, f"{name}_") == getattr(step, f"{name}_")
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.predict_proba(items), model.predict_proba(items))


WRONG = (
    *(None, -1, 0, 10**30, 0.5, "x", "auto", [], {}, [1.0, 2.0], np.zeros(0), np.zeros(5)),
    *(np.full(6, np.nan), np.zeros((5, 6), np.float32), np.zeros((9, 9)), np.arange(6)),
)


@pytest.fixture(scope="module")
def trees(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "space"
    found = []
    for kernel, form in (("linear", np.asarray), ("rbf", np.asarray), ("rbf", sparse.csr_array)):
        frame = pd.DataFrame(data[0]).add_prefix("f") if form is np.asarray else form(data[0])
        nl.save(nl.LabelSpace(kernel).fit(frame, data[1]), path)
        found.append(read_stored(path).tree)
    return found


@pytest.mark.filterwarnings("ignore")
@examples(100)
@given(data=st.data())
def test_a_file_with_any_wrong_value_is_refused_or_answers(tmp_path_factory, trees, data):
    path = tmp_path_factory.mktemp("wrong") / "space"
    tree = data.draw(st.sampled_from(trees))
    place = data.draw(st.sampled_from([place for place in paths(tree) if place]))
    write_tree(path, replaced(tree, place, data.draw(st.sampled_from(WRONG))))
    try:
        space = nl.load(path)
    except nl.FileError:
        return
    rows = space.transform(np.zeros((2, 5)))
    assert np.isfinite(rows.toarray() if sparse.issparse(rows) else rows).all()


def test_an_unfitted_transformer_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        nl.save(nl.LabelSpace(), tmp_path / "space")


# Average precision of PositivekNN on test rows in a trial of this distance, and what may miss.
TRIAL = [
    ("scene", 0.892, 0.005),
    pytest.param("yeast", 0.775, 0.005, marks=pytest.mark.slow),
    pytest.param("slashdot", 0.687, 0.005, marks=pytest.mark.slow),
]


@pytest.mark.data
@pytest.mark.usefixtures("all_penalties")
@pytest.mark.parametrize(("name", "trial", "missing"), TRIAL)
def test_quality_on_test_rows(load, name, trial, missing):
    found = load(name)
    if sparse.issparse(found.X):
        view = TfidfTransformer()
    elif name == "yeast":  # where ranks are worse on the training rows, left out
        view = MinMaxScaler()
    else:
        view = QuantileTransformer(n_quantiles=200)
    train, test = found.train, found.test
    method = nl.PositivekNN(random_state=0)
    model = nl.make_pipeline(view, nl.LabelSpace(), method).fit(found.X[train], found.Y[train])
    scores = model.label_scores(found.X[test])
    assert nl.metrics.average_precision(found.Y[test], scores) >= trial - missing
