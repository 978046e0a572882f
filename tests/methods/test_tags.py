"""Labels given as tags: the same model as with their 0/1 matrix, and predictions in tags."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from strategies import examples

import nearlabel as nl
from nearlabel.methods.registry import METHODS, estimator

MADE = nl.datasets.make_local_labels(120, 4, 5, random_state=3)
NAMES = np.array(["beach", "city", "night", "sea", "sky"])
TAGS = [[str(tag) for tag in NAMES[row == 1]] for row in MADE.Y.toarray()]
FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture(params=[*METHODS, "LabelThresholds"])
def model(request):
    if request.param == "LabelThresholds":
        return nl.LabelThresholds(nl.MLkNN(5))
    return estimator(request.param, 5, random_state=0)


def test_the_first_call_of_a_newcomer():
    X = [[0, 0], [0, 1], [5, 5], [5, 6]]
    y = [["sea", "sunset"], ["sea"], ["city"], ["city", "night"]]
    model = nl.MLkNN(n_neighbors=1).fit(X, y)
    assert model.predict([[0, 0.4], [5, 5.4]]) == [["sea"], ["city"]]
    assert model.label_names_.tolist() == ["city", "night", "sea", "sunset"]
    assert [one.tolist() for one in model.classes_] == [[0, 1]] * 4


def test_tags_give_the_model_of_their_matrix(model, tmp_path):
    matrix = clone(model).fit(MADE.X, MADE.Y, label_names=NAMES)
    tags = clone(model).fit(MADE.X, TAGS)
    assert tags.label_names_.tolist() == matrix.label_names_.tolist()
    decided = matrix.predict(MADE.X).toarray()
    assert tags.predict(MADE.X) == [[str(tag) for tag in NAMES[row == 1]] for row in decided]
    assert np.array_equal(tags.predict_proba(MADE.X), matrix.predict_proba(MADE.X))
    assert tags.rank(MADE.X, 3).names.tolist() == matrix.rank(MADE.X, 3).names.tolist()
    assert tags.explain(MADE.X[0]) == matrix.explain(MADE.X[0])
    assert tags.score(MADE.X, TAGS) == matrix.score(MADE.X, MADE.Y)
    tags.save(tmp_path / "model")
    for again in (nl.load(tmp_path / "model"), pickle.loads(pickle.dumps(tags))):
        assert again.predict(MADE.X) == tags.predict(MADE.X)
        assert type(again.predict(MADE.X)) is type(tags.predict(MADE.X))


def test_cross_validation(model):
    """A cv of its own is needed: for a number of folds scikit-learn reads y, and refuses lists."""
    found = cross_val_predict(model, MADE.X, TAGS, cv=FOLDS)
    matrix = cross_val_predict(model, MADE.X, MADE.Y.toarray(), cv=FOLDS)
    assert found.tolist() == [[str(tag) for tag in NAMES[row == 1]] for row in matrix]
    scoring = {name: nl.metrics.scorer(name) for name in ("hamming_loss", "ranking_loss")}
    scoring["own"] = check_scoring(model)
    of_tags = cross_validate(model, MADE.X, TAGS, cv=FOLDS, scoring=scoring)
    of_matrix = cross_validate(model, MADE.X, MADE.Y.toarray(), cv=FOLDS, scoring=scoring)
    for name in scoring:
        assert of_tags[f"test_{name}"].tolist() == of_matrix[f"test_{name}"].tolist()


@pytest.mark.parametrize("make", [list, pd.Series, lambda y: pd.Series(";".join(row) for row in y)])
def test_searches_for_parameters(make):
    y, grid = make(TAGS), {"n_neighbors": [3, 7, 20]}
    scoring = nl.metrics.scorer("ranking_loss")
    theirs = GridSearchCV(nl.MLkNN(), grid, scoring=scoring, cv=FOLDS).fit(MADE.X, y)
    matrix = GridSearchCV(nl.MLkNN(), grid, scoring=scoring, cv=FOLDS)
    matrix.fit(MADE.X, MADE.Y.toarray())
    assert theirs.best_params_ == matrix.best_params_
    assert theirs.score(MADE.X, y) == matrix.score(MADE.X, MADE.Y)
    ours = nl.GraphSearchCV(nl.MLkNN(), grid, cv=FOLDS).fit(MADE.X, y)
    assert ours.best_params_ == theirs.best_params_
    assert list(ours.predict(MADE.X)) == list(theirs.predict(MADE.X))
    assert ours.score(MADE.X, y) == theirs.score(MADE.X, y)


def test_within_a_pipeline(tmp_path):
    texts = [" ".join(row) or "nothing" for row in TAGS]
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = nl.make_pipeline(TfidfVectorizer(), nl.BRkNN(1)).fit(texts, TAGS)
    nl.save(model, tmp_path / "model")
    assert nl.load(tmp_path / "model").predict(texts) == model.predict(texts)
    assert model.predict(["sky sea", "city"]) == [["sea", "sky"], ["city"]]
    scaled = nl.make_pipeline(StandardScaler(), nl.MLkNN(5))
    assert len(cross_val_predict(scaled, MADE.X, TAGS, cv=FOLDS)) == len(TAGS)


def test_metrics_of_tags():
    model = nl.MLkNN(5).fit(MADE.X, TAGS)
    scores, decided = model.label_scores(MADE.X), model.predict(MADE.X)
    dense = model.label_matrix(decided)
    expected = nl.metrics.evaluate(MADE.Y, scores, dense)
    assert nl.metrics.evaluate(TAGS, scores, decided) == expected
    assert nl.metrics.one_error(TAGS, scores) == expected["one_error"]
    for name in ("hamming_loss", "macro_f1", "jaccard"):
        value = getattr(nl.metrics, name)(TAGS, decided, label_names=NAMES)
        assert value == expected[name]
    with pytest.raises(ValueError, match=r"Y contains tags.*label_names="):
        nl.metrics.hamming_loss(TAGS, decided)
    with pytest.raises(ValueError, match=r"Y contains tags.*label_names="):
        nl.metrics.one_error(TAGS, scores.toarray())
    with pytest.warns(UserWarning, match=r"\bY\b.*tags.*: 'fog'$"):
        nl.metrics.one_error([*TAGS[:-1], ["fog"]], scores)


def test_a_row_with_an_unknown_tag_is_not_right():
    model = nl.BRkNN(1).fit([[0.0], [1.0]], [["a"], ["b"]])
    assert model.score([[0.0], [1.0]], [["a"], ["b", "new"]]) == 0.5
    assert model.score([[0.0], [1.0]], [["a"], ["b", "new"]], sample_weight=[3, 1]) == 0.75
    assert model.score([[0.0], [1.0]], [[1, 0], [0, 1]]) == 1


def test_arguments_that_are_not_labels():
    for y in ("ab", iter([["a"], ["b"]])):
        with pytest.raises(TypeError, match=r"\by\b must be"):
            nl.MLkNN(1).fit([[0.0], [1.0]], y)
    with pytest.raises(ValueError, match="separator="):
        nl.MLkNN(1).fit([[0.0], [1.0], [2.0]], ["a b", "b", "c"])
    with pytest.raises(TypeError, match="scores.*RankedLabels"):
        nl.metrics.one_error(MADE.Y, nl.MLkNN(5).fit(MADE.X, MADE.Y).rank(MADE.X))


def test_a_search_in_a_pipeline_has_all_answers():
    search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [3, 7]})
    model = nl.make_pipeline(StandardScaler(), search).fit(MADE.X, TAGS)
    assert model.rank(MADE.X, 2).names.shape == (120, 2)
    assert model.label_scores(MADE.X).shape == (120, 5)
    assert len(model.explain(MADE.X[:3])) == len(model.retrieve(MADE.X[:3])) == 3
    assert np.array_equal(model.label_matrix(TAGS).toarray(), MADE.Y.toarray())
    scaled = nl.make_pipeline(StandardScaler(), nl.MLkNN(5)).fit(MADE.X, TAGS)
    assert scaled.label_names_.tolist() == NAMES.tolist()


def test_ids_of_a_frame():
    ids = pd.Series([f"item {row}" for row in range(120)], dtype=object)
    for names in (ids, pd.Index(ids), ids.to_numpy()):
        model = nl.MLkNN(5).fit(MADE.X, TAGS, ids=names)
        assert model.explain(MADE.X[7]).labels[0].neighbors[0].id.startswith("item ")
    with pytest.raises(TypeError, match="ids"):
        nl.MLkNN(5).fit(MADE.X, TAGS, ids=[None] * 120)


def test_a_matrix_of_labels_in_any_form():
    model = nl.MLkNN(5).fit(MADE.X, [";".join(row) for row in TAGS], separator=";")
    for y in (TAGS, [";".join(row) for row in TAGS], MADE.Y, MADE.Y.toarray(), model.predict):
        y = y(MADE.X) if callable(y) else y
        assert model.label_matrix(y).shape == (120, 5)
    assert np.array_equal(model.label_matrix(TAGS).toarray(), MADE.Y.toarray())
    assert model.label_matrix(["city", "sea"]).toarray().sum() == 2
    two = nl.MLkNN(5).fit(MADE.X, np.where(MADE.Y.toarray()[:, 0], "yes", "no"))
    assert two.label_matrix(["no", "yes"]).toarray().ravel().tolist() == [0, 1]


def test_label_names_define_the_labels():
    names = [*NAMES[::-1], "fog"]
    model = nl.MLkNN(5).fit(MADE.X, TAGS, label_names=names)
    assert model.label_names_.tolist() == names
    assert model.predict_proba(MADE.X).shape == (120, 6)
    with pytest.raises(ValueError, match=r"label_names.*'sky'"):
        nl.MLkNN(5).fit(MADE.X, TAGS, label_names=NAMES[:4])


def test_names_are_unique():
    for y in (MADE.Y, TAGS):
        with pytest.raises(ValueError, match=r"label_names.*'sea'.*twice"):
            nl.MLkNN(5).fit(MADE.X, y, label_names=[*NAMES, "sea"][-5:] + ["sea"] * (y is TAGS))
    frame = pd.DataFrame(MADE.Y.toarray(), columns=["a", "b", "c", "b", "d"])
    with pytest.raises(ValueError, match=r"label_names.*'b'.*twice"):
        nl.MLkNN(5).fit(MADE.X, frame)


def test_integers_as_tags_are_names_of_labels():
    numbers = [[10 * (1 + NAMES.tolist().index(tag)) for tag in row] for row in TAGS]
    model = nl.MLkNN(5).fit(MADE.X, numbers)
    assert model.label_names_.tolist() == [10, 20, 30, 40, 50]
    assert model.explain(MADE.X[0], labels=[20]).labels[0].name == 20
    assert model.explain(MADE.X[0], labels=20).labels[0].label == 1
    with pytest.raises(ValueError, match="labels.*3"):
        model.explain(MADE.X[0], labels=3)
    assert all(type(tag) is int for row in model.predict(MADE.X) for tag in row)


def test_sample_weights_are_refused_with_one_sentence():
    for model in (nl.MLkNN(), nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": [3]})):
        with pytest.raises(TypeError, match="sample_weight is not supported"):
            model.fit(MADE.X, TAGS, sample_weight=np.ones(120))
        with pytest.raises(TypeError, match=r"fit\(\).*'weights'"):
            model.fit(MADE.X, TAGS, weights=np.ones(120))


@st.composite
def tables(draw):
    """Tags of rows: none, repeated, unusual texts, integers mixed with texts."""
    texts = st.text(min_size=1, max_size=4)
    vocabulary = draw(st.lists(texts | st.integers(-3, 10**20), min_size=1))
    rows = draw(st.lists(st.lists(st.sampled_from(vocabulary), max_size=5), min_size=3))
    return [{*row} for row in rows] + [{vocabulary[0]}]


@examples(150)
@given(y=tables(), name=st.sampled_from(METHODS), seed=st.integers(0, 5))
def test_any_table_of_tags_is_its_matrix(y, name, seed):
    X = np.random.default_rng(seed).integers(0, 3, (len(y), 2))
    distinct = sorted({tag for row in y for tag in row}, key=lambda t: (isinstance(t, str), t))
    matrix = MultiLabelBinarizer(classes=np.array(distinct, object)).fit_transform(y)
    tags = estimator(name, 2, random_state=0).fit(X, y)
    plain = estimator(name, 2, random_state=0).fit(X, matrix)
    assert tags.label_names_.tolist() == distinct
    decided = plain.predict(X)
    assert tags.predict(X) == [
        {tag for tag, one in zip(distinct, row, strict=True) if one} for row in decided.tolist()
    ]
    assert np.array_equal(tags.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(tags.label_matrix(y).toarray(), matrix)


def test_integer_tags_are_tags_to_the_model_that_learned_them():
    X, y = [[0.0], [1], [2]], [[0], [1], [0, 2]]
    model = nl.BRkNN(1).fit(X, y)
    assert model.label_names_.tolist() == [0, 1, 2]
    assert model.label_matrix([[0], [1]]).toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert model.score([[0.0], [1]], [[0], [1]]) == 1
    hamming = nl.metrics.hamming_loss
    assert hamming([[0], [1]], [[1], [1]], label_names=[0, 1, 2]) == pytest.approx(2 / 6)
    with pytest.raises(ValueError, match=r"\by\b.*matrix.*tags"):
        model.label_matrix([[0, 1, 2], [2, 1, 0]])  # three columns, or three tags
    numbers = [[10 * (1 + NAMES.tolist().index(tag)) for tag in row] for row in TAGS]
    scoring = nl.metrics.scorer("ranking_loss")
    of_numbers = cross_val_score(nl.MLkNN(3), MADE.X, numbers, cv=FOLDS, scoring=scoring)
    of_tags = cross_val_score(nl.MLkNN(3), MADE.X, TAGS, cv=FOLDS, scoring=scoring)
    assert of_numbers.tolist() == of_tags.tolist()


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda Y, columns: pl.DataFrame(Y, schema=columns)]
)
def test_columns_of_labels_are_found_by_name(frame):
    Y, names = MADE.Y.toarray(), NAMES.tolist()
    truth, turned = frame(Y, columns=names), frame(Y[:, ::-1], columns=names[::-1])
    model = nl.BRkNN(1).fit(MADE.X, truth)
    for y in (truth, turned):
        assert np.array_equal(model.label_matrix(y).toarray(), Y)
        assert model.score(MADE.X, y) == model.score(MADE.X, truth)
        assert nl.metrics.hamming_loss(y, truth) == nl.metrics.hamming_loss(truth, y) == 0
        scores = model.label_scores(MADE.X)
        assert nl.metrics.evaluate(y, scores) == nl.metrics.evaluate(Y, scores)
    for other in (frame(Y, columns=[*names[:4], "fog"]), Y[:, :3]):
        with pytest.raises(ValueError, match=r"\by\b.*column"):
            model.label_matrix(other)
    with pytest.raises(ValueError, match=r"\bY\b.*per label name, 2; got 5"):
        nl.metrics.hamming_loss(Y, Y, label_names=["a", "b"])


def test_unordered_sets_are_refused():
    for y in ({("a",), ("b", "z")}, {"a;b": 1, "c": 2}, frozenset({"a;b", "c"})):
        with pytest.raises(TypeError, match=r"\by\b.*order"):
            nl.MLkNN(1).fit([[0.0], [1.0]], y)
    for names in ({"a", "b", "c", "d", "e"}, "abcde", 3, dict.fromkeys("abcde")):
        for y in (MADE.Y, TAGS):
            with pytest.raises(TypeError, match="label_names"):
                nl.MLkNN(5).fit(MADE.X, y, label_names=names)
    for names in ([1.0, 2.0], [True, "a"], ["a", None]):
        with pytest.raises(TypeError, match="label_names.*strings or integers"):
            nl.MLkNN(5).fit(MADE.X, TAGS, label_names=names)


def test_metrics_do_not_guess_a_separator():
    with pytest.raises(ValueError, match=r"\bY\b.*strings.*split"):
        nl.metrics.hamming_loss(["a;b", "b", "c"], ["a", "b", "c"], label_names=["a", "b", "c"])
