"""scikit-learn's pipelines with the answers of a method."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import nearlabel as nl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = (RNG.random((30, 4)) < 0.4).astype(int)
NAMES = ["a", "b", "c", "d"]
IDS = [f"item {row}" for row in range(30)]


def by_hand(method=None):
    """The same without a pipeline: scaled vectors, and a method on them."""
    scaled = StandardScaler().fit_transform(X)
    return scaled, (method or nl.MLkNN(5)).fit(scaled, Y, label_names=NAMES, ids=IDS)


def piped(method=None, **params):
    return nl.make_pipeline(StandardScaler(), method or nl.MLkNN(5), **params)


def assert_answers(model):
    """The methods beyond scikit-learn's give the same as by hand."""
    scaled, method = by_hand()
    assert model.rank(X).labels.tolist() == method.rank(scaled).labels.tolist()
    ours, theirs = model.label_scores(X), method.label_scores(scaled)
    np.testing.assert_array_equal(ours.toarray(), theirs.toarray())
    assert str(model.explain(X[3])) == str(method.explain(scaled[3]))
    (_, (found, *_)), (_, (expected, *_)) = model.retrieve(X[:2]), method.retrieve(scaled[:2])
    assert found.ids.tolist() == expected.ids.tolist()
    np.testing.assert_array_equal(model.kneighbors(X)[1], method.kneighbors(scaled)[1])
    np.testing.assert_array_equal(model.kneighbors()[1], method.kneighbors()[1])


@pytest.mark.parametrize("prefix", ["", "mlknn__"])
def test_keywords_of_fit_go_to_the_method(prefix):
    seen = []
    keywords = {"label_names": NAMES, "ids": IDS, "progress": lambda *steps: seen.append(steps)}
    model = piped().fit(X, Y, **{f"{prefix}{key}": value for key, value in keywords.items()})
    assert_answers(model)
    assert seen
    assert model.rank(X[:1]).names is not None


def test_keywords_of_other_steps_keep_their_prefix():
    weights = np.arange(30.0)
    model = piped().fit(X, Y, standardscaler__sample_weight=weights, label_names=NAMES)
    np.testing.assert_array_equal(model[0].mean_, StandardScaler().fit(X, None, weights).mean_)
    for wrong in ("sample_weight", "labels"):
        with pytest.raises(ValueError, match=wrong):
            piped().fit(X, Y, **{wrong: weights})


def test_keywords_with_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        method = nl.MLkNN(5).set_fit_request(label_names=True, ids=True)
        assert_answers(piped(method).fit(X, Y, label_names=NAMES, ids=IDS))


def test_keywords_of_a_search_for_parameters():
    search = GridSearchCV(piped(), {"mlknn__n_neighbors": [5]}, cv=2)
    search.fit(X, Y, label_names=NAMES, ids=IDS)  # ids are split into folds like the rows
    assert_answers(search.best_estimator_)


@pytest.mark.parametrize(
    "made",
    [
        lambda model: model,
        lambda model: clone(model).fit(X, Y, label_names=NAMES, ids=IDS),
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: nl.Pipeline(sklearn_pipeline(*model).steps),
        lambda model: nl.Pipeline([("none", None), ("pass", "passthrough"), *model.steps]),
        lambda model: model.set_output(transform="pandas").fit(X, Y, label_names=NAMES, ids=IDS),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_the_same_answers_by_any_way(made):
    assert_answers(made(piped().fit(X, Y, label_names=NAMES, ids=IDS)))


def test_transformers_are_kept_in_memory(tmp_path):
    assert_answers(piped(memory=str(tmp_path)).fit(X, Y, label_names=NAMES, ids=IDS))
    assert list(tmp_path.iterdir())


def test_slices():
    model = piped().fit(X, Y)
    np.testing.assert_array_equal(model[:-1].transform(X), StandardScaler().fit_transform(X))
    with pytest.raises(AttributeError, match="rank"):
        model[:-1].rank(X)


def test_a_row_of_a_frame_and_a_text():
    frame = pd.DataFrame(
        {"size": X[:, 0], "gaps": np.where(X[:, 1] > 1, np.nan, X[:, 1]), "color": ["r", "g"] * 15}
    )
    steps = make_column_transformer(
        (sklearn_pipeline(SimpleImputer(), StandardScaler()), ["size", "gaps"]),
        (OneHotEncoder(), ["color"]),
    )
    model = nl.make_pipeline(steps, nl.MLkNN(5)).fit(frame, Y)
    for row in (0, int(frame["gaps"].isna().argmax())):
        best = model.rank(frame.iloc[[row]], 1).scores[0, 0]
        assert model.explain(frame.iloc[[row]], 1)[0].score == best
        assert model.explain(frame.iloc[row], 1)[0].score == best
    texts = ["sea and sand", "the sea at night", "city lights"]
    model = nl.make_pipeline(TfidfVectorizer(), nl.BRkNN(1)).fit(texts, np.eye(3, dtype=int))
    assert [model.explain(text, 1)[0].label for text in texts] == [0, 1, 2]


def test_a_pipeline_that_was_not_fitted():
    with pytest.raises(NotFittedError, match="MLkNN"):
        piped().rank(X)


def test_a_slice_without_a_method_has_no_predictions():
    pipeline = nl.make_pipeline(StandardScaler(), nl.MLkNN())
    for name in ("label_scores", "rank", "retrieve", "explain", "kneighbors"):
        assert hasattr(pipeline, name)
        assert not hasattr(pipeline[:-1], name)
