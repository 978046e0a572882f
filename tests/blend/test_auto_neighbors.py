"""AutoNeighbors: its choices, predictions and files."""

import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from scipy import sparse

import nearlabel as nl
from nearlabel.features.scales import scaler

# Answers are those of the blend on the chosen scale, which has all checks in test_common.py.
OF_THE_BLEND = (
    "check_classifier_data_not_an_array",
    "check_classifier_multioutput",
    "check_classifiers_classes",
    "check_classifiers_multilabel_output_format_decision_function",
    "check_classifiers_multilabel_output_format_predict",
    "check_classifiers_multilabel_output_format_predict_proba",
    "check_classifiers_multilabel_representation_invariance",
    "check_estimators_dtypes",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_pipeline_consistency",
    "check_supervised_y_2d",
)


@pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning")
@parametrize_with_quick_checks([nl.AutoNeighbors()], slow=OF_THE_BLEND)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(160, 4, 3, labels_per_sample=2, random_state=0)


def far_apart(n=160, seed=0):
    """One feature that decides everything, and one that is a million times as wide."""
    random = np.random.default_rng(seed)
    X = np.column_stack([random.normal(size=n), 1e6 * random.normal(size=n)])
    return X, np.column_stack([X[:, 0] > 0, X[:, 0] < 0.5, X[:, 0] > 1]).astype(int)


def test_it_is_the_blend_on_the_chosen_scale(tmp_path):
    X, Y = far_apart()
    model = nl.AutoNeighbors().fit(X[:120], Y[:120], label_names=["up", "low", "high"])
    assert set(model.scale_scores_) == {"none", "minmax", "standard", "rank"}
    assert model.scale_ == max(model.scale_scores_, key=model.scale_scores_.get) != "none"
    step = scaler(model.scale_, X)
    blend = nl.BlendedNeighbors(objective="micro_f1").fit(step.fit_transform(X[:120]), Y[:120])
    queries = step.transform(X[120:])
    assert (model.predict_proba(X[120:]) == blend.predict_proba(queries)).all()
    assert (model.predict(X[120:]) == blend.predict(queries)).all()
    left_out = model.left_out_scores([5]).toarray()
    assert (left_out == blend.left_out_scores([5]).toarray()).all()
    assert model.rank(X[120:], 2).names.shape == (40, 2)
    assert [group.name for group in model.retrieve(X[120:121], 1)[0]] == model.rank(
        X[120:121], 1
    ).names[0].tolist()
    assert f"scale: {model.scale_} (average precision by leave-one-out: none" in model.summary()
    assert "largest weights in the blend: " in model.summary()
    assert model.explain(X[120])[0].name in ("up", "low", "high")
    model.save(tmp_path / "auto.model")
    again = nl.load(tmp_path / "auto.model")
    assert (again.predict_proba(X[120:]) == model.predict_proba(X[120:])).all()


def test_a_given_scale_is_kept():
    X, Y = far_apart()
    model = nl.AutoNeighbors(scale="none", objective="hamming").fit(X, Y)
    assert (model.scale_, model.scale_scores_, len(model.pipeline_)) == ("none", {}, 1)
    assert model.blend_.cuts_.tolist() == [0.5]


def test_counts_of_words_are_weighted():
    """Each label has its own words; all rows have many uninformative words."""
    random = np.random.default_rng(0)
    Y = random.random((150, 4)) < 0.4
    own = random.poisson(np.repeat(Y, 3, axis=1) * 0.8)
    common = random.poisson(20, (150, 6))
    X = sparse.csr_array(np.hstack([own, common]).astype(float))
    model = nl.AutoNeighbors().fit(X, Y.astype(int))
    assert set(model.scale_scores_) == {"none", "tfidf"}
    assert model.scale_ == "tfidf"
    assert model.scale_scores_["tfidf"] > model.scale_scores_["none"]


def test_at_the_end_of_a_pipeline(data, tmp_path):
    from sklearn.impute import SimpleImputer

    X = np.array(data.X[:120], np.float64)
    X[20, 1] = np.nan
    model = nl.make_pipeline(SimpleImputer(), nl.AutoNeighbors()).fit(X, data.Y[:120])
    scores = model.label_scores(data.X[120:]).toarray()
    assert model.rank(data.X[120:], top=2).labels.shape == (len(data.X) - 120, 2)
    assert model.kneighbors(data.X[120:122], 3)[0].shape == (2, 3)
    nl.save(model, tmp_path / "auto.model")
    again = nl.load(tmp_path / "auto.model")
    assert (again.label_scores(data.X[120:]).toarray() == scores).all()
    nl.save(model[-1], tmp_path / "alone.model")
    alone = nl.load(tmp_path / "alone.model").predict_proba(X[:3])
    assert (alone == model[-1].predict_proba(X[:3])).all()


def test_scores_of_tags(data):
    tags = [[f"t{label}" for label in np.flatnonzero(row)] for row in data.Y[:120].toarray()]
    model = nl.AutoNeighbors().fit(data.X[:120], tags)
    assert 0 <= model.score(data.X[:120], tags) <= 1
    counts = model.label_matrix(tags[:5]).toarray().sum(axis=1)
    assert counts.tolist() == [len(one) for one in tags[:5]]


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_are_all_constant(data, value):
    model = nl.AutoNeighbors().fit(data.X[:60], np.full((60, 3), value))
    assert (model.predict(data.X[60:70]) == value).all()
    assert (np.abs(model.predict_proba(data.X[60:70]) - value) < 0.1).all()
