"""The interface that all methods inherit, beyond scikit-learn's checks."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.labels import counts as statistics
from nearlabel.methods import answers
from nearlabel.methods.registry import METHODS, estimator

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(200, 5, 7)


@pytest.fixture(scope="module")
def model(data):
    return nl.MLkNN(n_neighbors=6).fit(data.X, data.Y)


def test_too_many_neighbors_are_lowered_with_a_warning(f6):
    X, Y, t = f6
    with pytest.warns(UserWarning, match="n_neighbors=10 .* using 5"):
        model = nl.MLkNN().fit(X, Y)
    assert model.n_neighbors_ == 5
    exact = nl.MLkNN(n_neighbors=5).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(t), exact.predict_proba(t))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([[1, 2], [0, 1], [0, 0]]), "2 at row 0, column 1"),
        (np.array([[1, 0], [0, -1], [0, 0]]), "-1 at row 1, column 1"),
        (np.array([[0.5, 0], [0, 1], [0, 0]]), "0.5 at row 0, column 0"),
        (sparse.csr_array([[1, 0], [0, 3], [0, 0]]), "3 at row 1, column 1"),
        (sparse.csr_array(([1, 1], ([0, 0], [1, 1])), shape=(3, 2)), "2 at row 0, column 1"),
        (np.array([[1, np.nan], [0, 1], [0, 0]]), "Input y contains NaN"),
        ([[1, 0], [0, 1]], "X .*3.*y .*2"),
        (np.array([1, "a", 1], dtype=object), "Unknown label type"),
        (np.array(["a", 1, "a"], dtype=object), r"\by\b.*classes.*type"),
        (np.array([["1", 0], [0, 1], [0, 1]], dtype=object), r"\by\b.*'1'"),
        (np.array([[None, 0], [0, 1], [0, 1]], dtype=object), "Input y contains NaN"),
        ([0, 1, 2], "Only binary classification is supported"),
        ([1, 1, 1], r"\by\b.*two classes.*one"),
        (None, "requires y to be passed"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
    ],
)
def test_invalid_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        nl.MLkNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], y)


def test_classes(f6):
    X, Y, t = f6
    assert [c.tolist() for c in nl.MLkNN(3).fit(X, Y).classes_] == [[0, 1]] * 4
    model = nl.MLkNN(3).fit(X, np.where(Y[:, 0], "warm", "cold"))
    assert model.classes_.tolist() == ["cold", "warm"]
    assert model.predict(t).tolist() == ["warm"]
    np.testing.assert_allclose(model.predict_proba(t), [[0.2, 0.8]])
    assert model.rank(t).names.tolist() == [["warm"]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float16, np.float32, ">i4", ">f8", object])
def test_labels_of_any_number_type(data, dtype):
    Y = data.Y.toarray()
    expected = nl.MLkNN().fit(data.X, Y).predict(data.X)
    np.testing.assert_array_equal(nl.MLkNN().fit(data.X, Y.astype(dtype)).predict(data.X), expected)
    assert nl.metrics.hamming_loss(Y.astype(dtype), Y) == 0


def test_as_many_names_as_labels(data):
    with pytest.raises(ValueError, match="label_names.*7.*2"):
        nl.MLkNN().fit(data.X, data.Y, label_names=["sea", "sky"])


def test_missing_labels_of_a_data_frame_are_refused(data):
    pd = pytest.importorskip("pandas")
    Y = pd.DataFrame(data.Y.toarray()).astype("Int64")
    Y.iloc[3, 2] = pd.NA
    with pytest.raises(ValueError, match=r"\by\b.*missing"):
        nl.MLkNN().fit(data.X, Y)


def test_leave_one_out_neighbors_of_the_training_rows(data, model):
    distances, indices = model.kneighbors()
    graph = nl.neighbor_graph(data.X, 6)
    np.testing.assert_array_equal(indices, graph.indices)
    np.testing.assert_array_equal(distances, graph.distances)
    assert model.kneighbors(data.X[:3], 200, return_distance=False).shape == (3, 200)
    for X, wrong in ((None, 200), (data.X, 201)):
        with pytest.raises(ValueError, match=f"n_neighbors.*integer.*{wrong}"):
            model.kneighbors(X, wrong)


def test_explain_takes_one_item_in_any_form_and_reads_well(data, model):
    x = data.X[3] + np.float32(0.1)
    forms = [x, x[None, :], x.tolist(), sparse.csr_array(x[None, :])]
    if hasattr(sparse.coo_array(x), "reshape") and sparse.coo_array(x).ndim == 1:
        forms.append(sparse.coo_array(x))  # the type of a row of a csr_array in current SciPy
    forms.append(pytest.importorskip("polars").Series(x))
    texts = {str(model.explain(form)) for form in forms}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith("+ ")
    assert "of 6 neighbors carry it" in text
    assert "without any one of them 0." in text  # votes are only counted
    weighted = nl.BRkNN(6, weights="distance").fit(data.X, data.Y)
    assert "; without it 0." in str(weighted.explain(x))
    assert len(model.explain(x, top=2)) == 2
    assert [a.label for a in model.explain(x, labels=[5, 0])] == [5, 0]
    assert [a.label for a in model.explain(x, labels=5)] == [5]
    with pytest.raises(ValueError, match="labels.*integer.*7"):
        model.explain(x, labels=[7])


def test_explain_takes_names_and_series(data):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(data.X, columns=list("abcde"))
    names = [f"tag {column}" for column in range(7)]
    model = nl.MLkNN(n_neighbors=6).fit(X, data.Y, label_names=names)
    assert model.explain(X.iloc[3], labels="tag 5")[0].label == 5
    explained = model.explain(X.iloc[3], labels=["tag 5", 0])
    assert [(a.label, a.name) for a in explained] == [(5, "tag 5"), (0, "tag 0")]
    json.dumps([v.id for a in explained for v in a.neighbors])
    with pytest.raises(ValueError, match="labels.*'sea'"):
        model.explain(X.iloc[3], labels=["sea"])


def test_explain_says_when_a_precomputed_graph_is_too_short(data):
    graph = nl.neighbor_graph(data.X, 6).to_csr()
    model = nl.MLkNN(n_neighbors=6, metric="precomputed").fit(graph, data.Y)
    asked = nl.neighbor_graph(data.X, 6, data.X[:1]).to_csr()
    model.predict(asked)
    with pytest.raises(ValueError, match="explain.* 7 .*n_neighbors.* 6"):
        model.explain(asked)
    longer = nl.neighbor_graph(data.X, 7, data.X[:2]).to_csr()
    with pytest.raises(ValueError, match="explain.* 7 .*row 2 .* 6"):
        model.explain(sparse.vstack([longer, asked], format="csr"))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "label_scores", "rank", "retrieve"])
def test_only_kneighbors_takes_no_queries(model, method):
    with pytest.raises(ValueError, match="Expected 2D array"):
        getattr(model, method)(None)


def test_a_graph_without_vectors_forgets_the_features_of_an_earlier_fit(data):
    model = nl.MLkNN(n_neighbors=6).fit(data.X, data.Y)
    model.fit_graph(nl.neighbor_graph(data.X, 6), data.Y)
    assert not hasattr(model, "n_features_in_")
    scores = model.scores_from_graph(nl.neighbor_graph(data.X, 6, data.X[:5]))
    assert scores.shape == (5, 7)


def test_vectors_beside_a_graph_are_checked(data, model):
    graph = nl.neighbor_graph(data.X, 8, data.X[:5])
    assert model.scores_from_graph(graph, data.X[:5]).shape == (5, 7)
    with pytest.raises(ValueError, match="graph .*5.*X .*4"):
        model.scores_from_graph(graph, data.X[:4])
    with pytest.raises(ValueError, match="X has 2 features"):
        model.scores_from_graph(graph, data.X[:5, :2])


def test_a_model_of_a_graph_without_vectors_answers_by_graphs(data):
    graph = nl.neighbor_graph(data.X, 8)
    model = nl.MLkNN(n_neighbors=6).fit_graph(graph, data.Y)
    asked = nl.neighbor_graph(data.X, 8, data.X[:5])
    assert model.scores_from_graph(asked).shape == (5, 7)
    for search in (model.predict, model.rank, model.retrieve, model.kneighbors):
        with pytest.raises(ValueError, match="graph without X"):
            search(data.X)


@pytest.mark.parametrize(
    ("k", "rows", "error", "message"),
    [
        (5, None, ValueError, "graph .*5.*n_neighbors=6"),
        (8, 150, ValueError, "graph.*square.*150.*200"),
    ],
)
def test_graphs_that_do_not_fit(data, k, rows, error, message):
    graph = nl.neighbor_graph(data.X, k)
    graph = graph if rows is None else graph.rows(0, rows)
    with pytest.raises(error, match=message):
        nl.MLkNN(n_neighbors=6).fit_graph(graph, data.Y)


def test_arguments_that_are_not_graphs(data, model):
    with pytest.raises(TypeError, match="graph.*NeighborGraph.*sparse matrix"):
        nl.MLkNN().fit_graph(data.X, data.Y)
    with_self = nl.neighbor_graph(data.X, 8, data.X)
    with pytest.raises(ValueError, match="graph.*row.*own neighbor"):
        nl.MLkNN(n_neighbors=6).fit_graph(with_self, data.Y)
    with pytest.raises(ValueError, match="graph .*200.*y .*10"):
        nl.MLkNN(n_neighbors=6).fit_graph(nl.neighbor_graph(data.X, 8), data.Y[:10])
    with pytest.raises(ValueError, match="X .*10.*y .*200"):
        nl.MLkNN(n_neighbors=6).fit_graph(nl.neighbor_graph(data.X, 8), data.Y, data.X[:10])
    with pytest.raises(ValueError, match="graph .*100.*200"):
        model.scores_from_graph(nl.neighbor_graph(data.X[:100], 8))


def test_rows_with_names(f6):
    X, Y, query = f6
    names = ["north", "n2", "n3", "south", "s2", "s3"]
    model = nl.MLkNN(n_neighbors=3).fit(X, Y, ids=names)
    voters = [voter.id for voter in model.explain(query, labels=[3])[0].neighbors]
    assert voters == [names[row] for row in model.kneighbors(query)[1][0]]
    graph = nl.neighbor_graph(X, 3)
    other = nl.MLkNN(n_neighbors=3).fit_graph(graph, Y, X, ids=names)
    assert str(other.explain(query)) == str(model.explain(query))
    with pytest.raises(ValueError, match="ids.*'n2'"):
        model.fit(X[:, :1], Y, ids=["n2", *names[1:]])
    assert [voter.id for voter in model.explain(query, labels=[3])[0].neighbors] == voters


def test_ranking_from_a_graph(data, model, monkeypatch):
    graph = nl.neighbor_graph(data.X, model.n_neighbors_ + 1, data.X[:40])
    expected = model.rank(data.X[:40], top=3)
    monkeypatch.setattr(statistics, "_VOTES_AT_ONCE", 100)
    for asked in (graph, graph.to_csr()):
        found = model.rank_from_graph(asked, top=3)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.scores, expected.scores)
        np.testing.assert_array_equal(found.names, expected.names)
    assert model.rank_from_graph(graph, data.X[:40], 99).labels.shape == (40, 7)
    with pytest.raises(ValueError, match="graph .*40.*X .*39"):
        model.rank_from_graph(graph, data.X[:39])
    with pytest.raises(ValueError, match="top.*1.*0"):
        model.rank_from_graph(graph, top=0)


@pytest.mark.parametrize("cut", [0.0, 1e-9, 0.3, 0.5, 0.7, 1.0])
def test_probabilities_keep_their_order_on_the_side_of_the_decision(cut):
    P = np.concatenate([[0.0], np.logspace(-9, -1, 50), np.linspace(0.115, 0.895, 79), [1.0]])
    told = answers.beside_half(P.copy(), cut <= P)
    np.testing.assert_array_equal(told > 0.5, cut <= P)
    assert (np.diff(told) > 0).all()
    right = (P > 0.5) == (cut <= P)
    np.testing.assert_array_equal(told[right], P[right])
    np.testing.assert_allclose(told[~right], 0.5, atol=1e-6)
    half = answers.beside_half(np.array([0.5, 0.5]), np.array([True, False]))
    assert half.tolist() == [np.nextafter(0.5, 1), 0.5]


def test_a_first_fit_that_fails_leaves_an_unfitted_model(data):
    model = nl.LAMLkNN(n_neighbors=3, cluster_centers=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="cluster_centers.*X.*5"):
        model.fit(data.X, data.Y)
    with pytest.raises(NotFittedError):
        model.predict(data.X)


@pytest.mark.parametrize(
    "model",
    [nl.LAMLkNN(6), nl.MLCWkNN(6), nl.IBLR(6, keep_features=True), nl.BalancedkNN(6)],
    ids=lambda model: type(model).__name__,
)
def test_methods_of_vectors_need_them(data, model):
    name = type(model).__name__
    graph, asked = nl.neighbor_graph(data.X, 6), nl.neighbor_graph(data.X, 6, data.X[:5])
    with pytest.raises(ValueError, match=f"X .*{name}"):
        model.fit_graph(graph, data.Y)
    with pytest.raises(ValueError, match=f"metric='precomputed'.*{name}"):
        clone(model).set_params(metric="precomputed").fit(np.zeros((200, 200)), data.Y)
    model.fit_graph(graph, data.Y, data.X)
    with pytest.raises(ValueError, match=f"X .*{name}.*queries"):
        model.scores_from_graph(asked)
    found, expected = model.predict_from_graph(asked, data.X[:5]), model.predict(data.X[:5])
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


FEW = 500  # NumPy solves the small programs of reconstructions one after the other


@pytest.mark.parametrize(
    ("model", "n", "q", "widest", "most"),
    [
        (nl.MLkNN(10), 10_000, 100_000, 5, 200e6),
        (nl.MLkNN(10), 10_000, 100_000, 5000, 200e6),
        (nl.MLCWkNN(10), 10_000 if engine.core() else FEW, 100_000, 5, 100e6),
        (nl.PositivekNN(10, random_state=0), 10_000, 100_000, 5000, 200e6),
        (nl.PositivekNN(10, fit_by="gradient", random_state=0), 10_000, 100_000, 5000, 200e6),
    ],
)
def test_memory_follows_the_labels_present(model, n, q, widest, most):
    """Nothing of size rows x labels: scores would be 8 GB, and even one byte each 1 GB."""
    rng = np.random.default_rng(0)
    sizes = np.full(n, 5)
    sizes[123] = widest
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    labels = [np.sort(rng.choice(q, size, replace=False)) for size in sizes]
    Y = sparse.csr_array((np.ones(indptr[-1], np.int8), np.concatenate(labels), indptr), (n, q))
    X, indices = rng.normal(size=(n, 8)), (np.arange(n)[:, None] + np.arange(1, 11)) % n
    graph = nl.NeighborGraph(indices, np.tile(np.arange(1, 11) / 10, (n, 1)), n)
    tracemalloc.start()
    scores = model.fit_graph(graph, Y, X).scores_from_graph(graph, X)
    ranked, predicted = scores.rank(top=10), model.predict_from_graph(graph, X, scores=scores)
    found = nl.metrics.evaluate(Y, scores, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ranked.labels.shape == (n, 10)
    assert predicted.shape == (n, q)
    assert found["hamming_loss"] == 0
    assert peak < most


def test_scores_of_other_rows_are_refused(f6):
    X, Y, t = f6
    model = nl.BRkNN(n_neighbors=3, fill="cardinality").fit(X, Y)
    graph = nl.neighbor_graph(X, 3)
    with pytest.raises(ValueError, match="graph .*6.*scores .*1"):
        model.predict_from_graph(graph, scores=model.label_scores(t))
    with pytest.raises(NotFittedError):
        nl.BRkNN().predict_from_graph(graph)


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_no_method_depends_on_the_blocks(size, monkeypatch):
    data = nl.datasets.make_local_labels(90, 3, 8)
    asked = nl.neighbor_graph(data.X, 10, data.X[:20] + 0.1)
    for name in METHODS:
        model = estimator(name, 4, random_state=0).fit(data.X, data.Y)
        whole = model.predict_proba(data.X[:20]), model.predict(data.X[:20]).toarray()
        ranked = model.rank(data.X[:20])
        by_graph = model.predict_from_graph(asked, data.X[:20] + 0.1).toarray()
        with monkeypatch.context() as patch:
            patch.setattr(answers, "_SCORES_AT_ONCE", size)
            patch.setattr(answers, "_NEIGHBORS_AT_ONCE", size)
            patch.setattr(statistics, "_VOTES_AT_ONCE", size)
            np.testing.assert_array_equal(model.predict_proba(data.X[:20]), whole[0])
            np.testing.assert_array_equal(model.predict(data.X[:20]).toarray(), whole[1])
            np.testing.assert_array_equal(model.rank(data.X[:20]).labels, ranked.labels)
            again = model.predict_from_graph(asked, data.X[:20] + 0.1).toarray()
            np.testing.assert_array_equal(again, by_graph)


def test_dense_scores_that_do_not_fit_are_refused_before_the_work(monkeypatch):
    data = nl.datasets.make_local_labels(90, 3, 8)
    monkeypatch.setattr("nearlabel.common.validation.physical_memory", lambda: 5000)
    for model in (nl.DMLkNN(4), nl.IBLR(4), nl.BalancedkNN(4), nl.PositivekNN(None)):
        with pytest.raises(MemoryError, match="dense.* 90 x .*GiB"):
            nl.LabelThresholds(model).fit(data.X, data.Y)
