"""Model files: the same scores after loading, and a clear error for every invalid file."""

import mmap
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, StandardScaler
from strategies import examples
from tree_paths import paths, read_tree, replaced

import nearlabel as nl
from nearlabel.common import files
from nearlabel.common.files import FileError, write_tree
from nearlabel.methods.registry import METHODS, estimator

FILES = Path(__file__).parents[1] / "files"
ESTIMATORS = [
    *(estimator(name, 3, random_state=0) for name in METHODS),
    nl.IBLR(n_neighbors=3, keep_features=True),
    nl.LabelThresholds(nl.MLkNN(n_neighbors=3)),
    nl.BlendedNeighbors(3),
]


@pytest.fixture
def made():
    return nl.datasets.make_local_labels(80, 5, 7)


@pytest.fixture(params=[False, True])
def is_mapped(request, monkeypatch):
    """Whether files are mapped, in blocks so small that nearly all of their arrays are."""
    monkeypatch.setattr(files, "BLOCK", 64)
    return request.param


def assert_same(model, again, X):
    ours, theirs = model.label_scores(X), again.label_scores(X)
    np.testing.assert_array_equal(theirs.toarray(), ours.toarray())
    np.testing.assert_array_equal(again.rank(X, 3).names, model.rank(X, 3).names)
    left, right = model.predict(X), again.predict(X)
    assert type(left) is type(right)
    if sparse.issparse(left):
        left, right = left.toarray(), right.toarray()
    np.testing.assert_array_equal(left, right)
    ours, theirs = ({k: str(v) for k, v in m.get_params().items()} for m in (model, again))
    assert ours == theirs


@pytest.mark.parametrize("y", ["sparse", "dense", "words", "booleans"])
@pytest.mark.parametrize("X", ["dense", "float32", "integers", "sparse", "bytes", "truths"])
def test_a_model_round_trip(tmp_path, made, is_mapped, y, X):
    vectors = {
        "dense": made.X.astype(np.float64),
        "float32": made.X,
        "integers": (made.X * 10).astype(np.int16),
        "sparse": sparse.csr_array(made.X * (made.X > 0)),
        "bytes": sparse.csr_array((made.X * 10).astype(np.int8)),  # of the labels' own type
        "truths": made.X > 0,
    }[X]
    one = made.Y.toarray()[:, 0]
    labels = {
        "sparse": made.Y,
        "dense": made.Y.toarray(),
        "words": np.array(["no", "yes"])[one],
        "booleans": one == 1,
    }[y]
    names = made.label_names if y in ("sparse", "dense") else None
    ids = [f"item {row}" for row in range(80)]
    model = nl.MLkNN(n_neighbors=4, smoothing=0.5).fit(vectors, labels, label_names=names, ids=ids)
    model.save(tmp_path / "model")
    again = nl.load(tmp_path / "model", mmap=is_mapped)
    assert_same(model, again, vectors)
    assert str(again.explain(vectors[[3]])) == str(model.explain(vectors[[3]]))
    assert again.retrieve(vectors[[3]], 1)[0][0].ids[0].startswith("item ")
    np.testing.assert_array_equal(again.kneighbors()[1], model.kneighbors()[1])


def test_a_mapped_model_is_not_copied(tmp_path, made, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 64)
    nl.MLkNN().fit(made.X, made.Y).save(tmp_path / "model")
    model = nl.load(tmp_path / "model", mmap=True)
    for array in (model.items_.vectors, model._labels.indices, model._labels.indptr):
        base = array
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base, mmap.mmap)
    assert model.items_.index is None  # nothing is prepared before the first prediction


def test_mapped_vectors_are_checked_when_something_is_asked(tmp_path, made, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 64)
    path = tmp_path / "model"
    nl.MLkNN().fit(made.X, made.Y).save(path)
    content = path.read_bytes()
    place = content.index(made.X[40].tobytes())
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    model = nl.load(path, mmap=True)
    for ask in (
        lambda: model.rank(made.X[:1]),
        lambda: model.retrieve(made.X[:1]),
        lambda: model.save(tmp_path / "again"),
        lambda: pickle.dumps(model),
    ):
        with pytest.raises(FileError, match=f"{re.escape(str(path))} is altered"):
            ask()
    place = content.index(model._labels.indices.tobytes())  # all else is checked at once
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(FileError, match=f"^{re.escape(str(path))} is altered"):
        nl.load(path, mmap=True)


def test_parameters_metrics_and_searches(tmp_path, made):
    for parameters in (
        {"metric": "cosine", "n_jobs": 2, "n_neighbors": np.int64(3)},
        {"search": nl.ExactSearch(block_bytes=1000)},
        {"search": nl.InvertedLists(recall=0.9, random_state=3)},
        {"search": "approximate"},
        {"metric": "precomputed"},
    ):
        X = made.X
        if parameters.get("metric") == "precomputed":
            X = nl.MLkNN(n_neighbors=79).fit(X, made.Y).kneighbors(X, 80)
            X = np.take_along_axis(X[0], np.argsort(X[1], axis=1), axis=1)
        model = nl.MLkNN(**parameters).fit(X, made.Y)
        model.save(tmp_path / "model")
        assert_same(model, nl.load(tmp_path / "model"), X)


def test_a_model_of_a_graph_without_vectors(tmp_path, made):
    graph = nl.neighbor_graph(made.X, 10)
    model = nl.MLkNN().fit_graph(graph, made.Y)
    model.save(tmp_path / "model")
    again = nl.load(tmp_path / "model")
    ours, theirs = model.scores_from_graph(graph), again.scores_from_graph(graph)
    np.testing.assert_array_equal(ours.toarray(), theirs.toarray())
    with pytest.raises(ValueError, match="graph without X"):
        again.predict(made.X)


def test_a_graph(tmp_path, made, is_mapped):
    graph = nl.neighbor_graph(made.X, 5)
    graph.save(tmp_path / "graph")
    again = nl.load(tmp_path / "graph", mmap=is_mapped)
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.distances, graph.distances)
    assert repr(again) == repr(graph)


BASELINES = [
    *(nl.AdaBoostMH(5), nl.ADTBoostMH(5), nl.C45Tree()),
    *(nl.PMM(xi=1.5), nl.PMM(2), nl.RankSVM(degree=3, C=2.0)),
]
WITH_OTHERS = [*ESTIMATORS, *BASELINES, nl.MLkNN(3, counts="even"), nl.PositivekNN(None)]
OTHERS = [
    *(("n_neighbors", 5), ("per_class", 5), ("metric", "manhattan"), ("smoothing", 7.0)),
    *(("tolerance", 3), ("denominator", "counts"), ("estimate", "mle"), ("rate", 7.0)),
    *(("fit_by", "gradient"), ("weights", "distance"), ("fill", "cardinality")),
    *(("bandwidth", 0.1), ("ridge", 7.0), ("keep_features", False), ("n_clusters", 2)),
    *(("counts", "even"), ("n_rounds", 9), ("min_leaf", 3), ("xi", 3.0), ("C", 1.0)),
]


def answers(model, X):
    given = [model.label_scores(X).toarray(), model.predict(X), model.predict_proba(X)]
    given += [model.rank(X, 3).names]
    given += [str(model.explain(X[[3]]))] if hasattr(model, "explain") else []
    return [*given, model.tree_text(0)] if hasattr(model, "tree_text") else given


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("estimator", WITH_OTHERS, ids=lambda e: type(e).__name__)
def test_every_method_round_trip(tmp_path, made, estimator, form, is_mapped):
    """Parameters that are changed after a fit count from the next one on, in the file, too."""
    X, Y = form(made.X * (made.X > 0)), made.Y.toarray()
    Y[:, 2], Y[:, 4] = 0, 1
    model = clone(estimator).fit(X, Y, label_names=made.label_names)
    expected, known = answers(model, X), model.get_params()
    before = str(known)
    model.save(tmp_path / "before")
    inner = "estimator__" if "estimator__n_neighbors" in known else ""
    others = {inner + name: value for name, value in OTHERS if inner + name in known}
    for name, kind in (("smoothing", str), ("ridge", bool)):  # no numbers in these methods
        if isinstance(known.get(name), kind):
            del others[name]
    model.set_params(**others)
    np.testing.assert_equal(answers(model, X), expected)
    model.save(tmp_path / "after")
    for path, parameters in (("before", before), ("after", str(model.get_params()))):
        again = nl.load(tmp_path / path, mmap=is_mapped)
        assert str(again.get_params()) == parameters
        np.testing.assert_equal(answers(again, X), expected)
        assert vars(again).keys() - {"items_"} == vars(model).keys() - {"items_"}
        learned = [name for name in vars(model) if name.endswith("_") and name != "items_"]
        for name in learned:
            if not (hasattr(getattr(model, name), "get_params") or name == "support_vectors_"):
                np.testing.assert_equal(getattr(again, name), getattr(model, name))


def test_another_process_gives_the_same(tmp_path, made):
    model = nl.MLkNN().fit(made.X, made.Y)
    model.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", made.X)
    code = (
        "import sys, numpy as np, nearlabel as nl; folder = sys.argv[1];"
        "model = nl.load(folder + '/model', mmap=True);"
        "np.save(folder + '/scores.npy', model.predict_proba(np.load(folder + '/X.npy')))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), model.predict_proba(made.X))


def test_a_file_of_the_first_format(f6):
    """Made by the version that wrote format 1: it kept the ids of all rows."""
    X, Y, query = f6
    tree, version = read_tree(FILES / "format-1.nearlabel")
    assert version == 1
    assert tree["ids"].tolist() == [0, 1, 2, 3, 4, 5]
    model = nl.MLkNN(n_neighbors=3).fit(X, Y, label_names=["east", "west", "never", "always"])
    for is_mapped in (False, True):
        again = nl.load(FILES / "format-1.nearlabel", mmap=is_mapped)
        assert again.search_recall_ is None
        assert_same(model, again, query)
        assert again.predict_proba(query).round(6).tolist() == [[0.8, 0.294118, 0.048544, 0.951456]]


def test_models_that_cannot_be_saved(tmp_path, made):
    def city_block(a, b):
        return float(np.abs(a - b).sum())

    with pytest.warns(UserWarning, match="metric.*slow"):
        model = nl.MLkNN(metric=city_block).fit(made.X, made.Y)
    own = make_pipeline(FunctionTransformer(np.abs), nl.MLkNN()).fit(made.X, made.Y)
    for wrong, message in (
        (model, "metric=<function "),
        (own, "FunctionTransformer.*func"),
        ("text", r"\bstr\b.*nearlabel"),
    ):
        with pytest.raises(TypeError, match=message):
            nl.save(wrong, tmp_path / "model")
    with pytest.raises(ValueError, match="not fitted"):
        nl.MLkNN().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


class Mine(nl.MLkNN):
    pass


def test_models_that_could_not_be_loaded_are_not_saved(tmp_path, made):
    mine = Mine().fit(made.X, made.Y)
    thresholds = nl.LabelThresholds(Mine()).fit(made.X, made.Y)
    for wrong in (mine, make_pipeline(MinMaxScaler().fit(made.X), mine), thresholds):
        with pytest.raises(TypeError, match="save.*class Mine"):
            nl.save(wrong, tmp_path / "model")
    with pytest.raises(TypeError, match="save.*class Mine"):
        mine.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_scaler_of_another_scikit_learn(tmp_path, made):
    """Only non-default parameters are stored, so that older versions know all of them."""
    nl.save(MaxAbsScaler().fit(made.X), tmp_path / "scaler")
    tree, _ = read_tree(tmp_path / "scaler")
    assert tree["parameters"] == {}
    assert nl.load(tmp_path / "scaler").n_samples_seen_ == 80
    write_tree(tmp_path / "scaler", {**tree, "parameters": {"shift": True}})
    with pytest.raises(FileError, match="scikit-learn.*'shift'"):
        nl.load(tmp_path / "scaler")


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda e: type(e).__name__)
def tree(request, tmp_path_factory):
    made = nl.datasets.make_local_labels(12, 2, 4)
    path = tmp_path_factory.mktemp("tree") / "model"
    pipeline = make_pipeline(StandardScaler(), clone(request.param))
    nl.save(pipeline.fit(made.X, made.Y), path)
    return read_tree(path)[0]


WRONG = (
    *(None, -1, 0, 1, 10**30, 0.5, "x", True, [], {}, [1, 2], [[1]], {"a": 1}),
    *(np.zeros(0), np.zeros(3), np.full(12, -1), np.arange(100, dtype=np.int32), np.zeros((9, 9))),
    np.full((12, 2), np.nan),
)


@examples(100)  # of each estimator
@given(data=st.data())
def test_a_sealed_file_with_any_wrong_value_is_refused_or_right(tmp_path_factory, tree, data):
    """Checksums detect accidents, not attacks: everything is validated as well."""
    path = tmp_path_factory.mktemp("wrong") / "model"
    place = data.draw(st.sampled_from([place for place in paths(tree) if place]))
    wrong = data.draw(st.sampled_from(range(len(WRONG) + 1)))

    if wrong == len(WRONG) and isinstance(place[-1], int):
        return
    write_tree(path, replaced(tree, place, *WRONG[wrong : wrong + 1]))
    try:
        model = nl.load(path)
    except FileError:
        return
    if model[-1] is None or model[-1].items_.store is None:  # it was fitted from a graph alone
        return
    probabilities = model.predict_proba(np.zeros((2, 2)))
    assert np.all((probabilities > 0) & (probabilities < 1))


def test_the_recall_of_the_search_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("nearlabel.search.approximate.inverted_lists._FEWEST", 1024)
    made = nl.datasets.make_local_labels(1500, 5, 6)
    model = nl.MLkNN(search=nl.InvertedLists(recall=0.9)).fit(made.X, made.Y)
    recall = model.search_recall_
    assert recall.value >= 0.9
    for one in (model, nl.LabelThresholds(nl.MLkNN(search="approximate")).fit(made.X, made.Y)):
        one.save(tmp_path / "model")
        again = nl.load(tmp_path / "model")
        assert again.search_recall_ == one.search_recall_ is not None
    graph = nl.neighbor_graph(made.X, 10, search=nl.InvertedLists(recall=0.9))
    assert nl.MLkNN().fit_graph(graph, made.Y).search_recall_ == recall
    assert nl.MLkNN().fit(made.X, made.Y).search_recall_ is None
    assert nl.BRkNN(search="approximate").fit(made.X, made.Y).search_recall_ is None


@pytest.mark.parametrize("mmap", [False, True])
def test_lists_of_a_file_are_built_again(tmp_path, monkeypatch, mmap):
    """Their rows, in the order of the lists, are brought into their own."""
    monkeypatch.setattr("nearlabel.search.approximate.inverted_lists._FEWEST", 1024)
    made = nl.datasets.make_local_labels(1500, 5, 6)
    nl.MLkNN(search=nl.InvertedLists(recall=0.9)).fit(made.X, made.Y).save(tmp_path / "model")
    exact = nl.MLkNN(search="exact").fit(made.X, made.Y).kneighbors(made.X[:9])
    assert nl.load(tmp_path / "model", mmap=mmap).compact().verify()
    again = nl.load(tmp_path / "model", mmap=mmap).search_with("exact").kneighbors(made.X[:9])
    np.testing.assert_array_equal(again, exact)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search", {"InvertedLists": {"recall": 2.0}}),
        ("search", {"InvertedLists": {"recall": "0.9"}}),
        ("search", {"InvertedLists": {"random_state": 0.5}}),
        ("search", {"InvertedLists": {"other": 1}}),
        ("search", {"ExactSearch": {"block_bytes": 0}}),
        ("search", {"AutoSearch": {}}),
        ("search", {"ExactSearch": {}, "InvertedLists": {}}),
        ("search", {}),
        ("search_recall", {"value": 2, "standard_error": 0, "rows": 1, "k": 1}),
        ("search_recall", 3),
        ("search_recall", {}),
    ],
)
def test_searches_and_recalls_that_no_file_may_contain(name, value, tmp_path, made):
    tree = nl.MLkNN(n_neighbors=3).fit(made.X, made.Y)._tree()
    write_tree(tmp_path / "model", {**tree, name: value})
    with pytest.raises(nl.FileError, match="model .*damaged"):
        nl.load(tmp_path / "model")


def test_a_pipeline_whose_steps_do_not_fit_together_is_refused(tmp_path):
    X, Y = np.arange(12.0).reshape(4, 3), np.eye(4, 2, dtype=int)
    steps = ("scaler", StandardScaler().fit(X[:, :2])), ("knn", nl.MLkNN(2).fit(X, Y))
    nl.save(nl.Pipeline([*steps]), tmp_path / "model")
    with pytest.raises(FileError, match="step 'knn' takes 3 features, but is given 2"):
        nl.load(tmp_path / "model")
