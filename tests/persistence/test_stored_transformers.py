"""Pipelines with scikit-learn's preprocessing: the same output to the last bit after a load."""

import re
from collections import namedtuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from strategies import examples
from tree_paths import paths, read_tree, replaced

import nearlabel as nl
from nearlabel.common.files import FORMAT, write_tree
from nearlabel.common.validation import check_integer
from nearlabel.persistence.models import OWN
from nearlabel.persistence.values import as_stored

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(40, 5)).round(2)
GAPS = np.where(RNG.random((40, 5)) < 0.2, np.nan, NUMBERS)
EMPTY = np.where(np.arange(5) == 3, np.nan, GAPS)
WHOLE = RNG.integers(0, 5, (40, 3))
WORDS = RNG.choice(np.array(["red", "green", "été", "b\u0000x", "0"], object), (40, 3))
SOME_WORDS = np.where(RNG.random((40, 3)) < 0.2, None, WORDS)
MIXED = np.hstack([WORDS, np.where(WHOLE > 3, np.nan, WHOLE).astype(object)])
TEXTS = np.array(
    [" ".join(RNG.choice(["sea", "Sand", "night", "łódź", "x1"], 6)) for _ in range(40)]
)
EMPTY_TEXT_IS_RARE = np.array([*zip("aaabb", "pqrpq", strict=True), ("", "r")], dtype=object)
MEDIAN_0 = np.tile([[-1, 0], [1, 5], [-1, 3], [1, 2]], (2, 1)).astype(float)
NOTHING_IN_0 = MEDIAN_0.astype(int) * [0, 1]
SPARSE = sparse.csr_array(np.where(NUMBERS > 0.5, NUMBERS, 0))


class OwnScaler(StandardScaler):
    """A class of a user's own."""


CASES = [
    (MaxAbsScaler(), NUMBERS),
    (MaxAbsScaler(), SPARSE),
    (MinMaxScaler(feature_range=(-1, 2), clip=True), NUMBERS.astype(np.float32)),
    (StandardScaler(), GAPS),
    (StandardScaler(with_mean=False), SPARSE),
    (StandardScaler(with_std=False), NUMBERS),
    (RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True), NUMBERS),
    (RobustScaler(with_centering=False), NUMBERS),
    (Normalizer(norm="l1"), SPARSE),
    (QuantileTransformer(n_quantiles=7), NUMBERS),
    (QuantileTransformer(n_quantiles=9, subsample=None), abs(SPARSE)),
    (QuantileTransformer(n_quantiles=40, output_distribution="normal"), NUMBERS),
    (TruncatedSVD(3, random_state=0), SPARSE),
    (PCA(2, whiten=True), NUMBERS),
    (PCA(0.9), NUMBERS.astype(np.float32)),
    (TfidfTransformer(sublinear_tf=True), sparse.csr_array(WHOLE)),
    (TfidfTransformer(use_idf=False), sparse.csr_array(WHOLE)),
    # What scikit-learn learns need not be finite.
    *((scaler, EMPTY) for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler())),
    *((scaler, EMPTY) for scaler in (RobustScaler(), QuantileTransformer(n_quantiles=5))),
    (StandardScaler(), NUMBERS * 1e200),
    (RobustScaler(quantile_range=(0.0, 100.0), unit_variance=True), NUMBERS),
    (PCA(1), np.ones((8, 3))),
    (TfidfTransformer(smooth_idf=False), sparse.csr_array(WHOLE * [1, 0, 1])),
    (TfidfVectorizer(vocabulary=["sea", "zebra"], smooth_idf=False), TEXTS),
    (SimpleImputer(), GAPS),
    (SimpleImputer(strategy="median", add_indicator=True), GAPS),
    (SimpleImputer(keep_empty_features=True), EMPTY),
    (SimpleImputer(add_indicator=True), EMPTY),
    (SimpleImputer(strategy="most_frequent", missing_values=None), SOME_WORDS),
    (SimpleImputer(strategy="constant", fill_value="none", missing_values=None), SOME_WORDS),
    (SimpleImputer(strategy="constant", missing_values=2), WHOLE),
    (SimpleImputer(strategy="most_frequent", missing_values=0, add_indicator=True), WHOLE),
    (SimpleImputer(strategy="constant", fill_value=-1.5), GAPS.astype(np.float32)),
    (SimpleImputer(strategy="constant"), EMPTY),
    (SimpleImputer(strategy="constant", keep_empty_features=True), EMPTY),
    # A column is indicated for its gaps, also where what fills them is like a gap.
    (SimpleImputer(missing_values=0, strategy="median", add_indicator=True), MEDIAN_0),
    (SimpleImputer(missing_values=-1, strategy="most_frequent", add_indicator=True), MEDIAN_0),
    (SimpleImputer(missing_values=0, strategy="constant", fill_value=0), MEDIAN_0),
    (SimpleImputer(missing_values=0, add_indicator=True), NOTHING_IN_0),
    (SimpleImputer(missing_values=0, keep_empty_features=True), NOTHING_IN_0),
    (SimpleImputer(missing_values=0, strategy="constant", fill_value=7), NOTHING_IN_0),
    (SimpleImputer(missing_values=2, add_indicator=True), WHOLE),
    (
        SimpleImputer(missing_values="", strategy="constant", fill_value="", add_indicator=True),
        EMPTY_TEXT_IS_RARE,
    ),
    (SimpleImputer(missing_values=-1), SPARSE.astype(np.float32)),
    (OneHotEncoder(), WORDS),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.int8), WHOLE),
    (OneHotEncoder(drop="first"), MIXED),
    (OneHotEncoder(drop="if_binary"), (WHOLE > 2)),
    (OneHotEncoder(drop=["red", "green", "0"]), WORDS),
    (OneHotEncoder(handle_unknown="infrequent_if_exist"), MIXED),
    (OneHotEncoder(categories=[[*range(5)]] * 3, handle_unknown="warn"), WHOLE),
    (OneHotEncoder(drop="first"), EMPTY_TEXT_IS_RARE),
    (OrdinalEncoder(), EMPTY_TEXT_IS_RARE),
    (OrdinalEncoder(), MIXED),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), WORDS),
    (OrdinalEncoder(encoded_missing_value=-3), MIXED),
    (CountVectorizer(), TEXTS),
    (CountVectorizer(ngram_range=(1, 2), stop_words=["sea"], binary=True, dtype=np.int8), TEXTS),
    (CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), strip_accents="unicode"), TEXTS),
    (CountVectorizer(vocabulary=["night", "sea"]), TEXTS),
    (CountVectorizer(vocabulary={"sea": 1, "night": 0}, lowercase=False), TEXTS),
    (TfidfVectorizer(min_df=2, stop_words="english", sublinear_tf=True), TEXTS),
    (TfidfVectorizer(use_idf=False, norm="l1"), TEXTS),
    (TfidfVectorizer(dtype=np.float32, max_features=3, token_pattern=r"\w"), TEXTS),
    (HashingVectorizer(n_features=64, alternate_sign=False), TEXTS),
    (make_pipeline(SimpleImputer(), StandardScaler(), "passthrough"), GAPS),
    (
        FeatureUnion([("a", StandardScaler()), ("b", PCA(2))], transformer_weights={"b": 2.0}),
        NUMBERS,
    ),
    (
        FeatureUnion([("a", "passthrough"), ("b", PCA(1))], verbose_feature_names_out=False),
        NUMBERS,
    ),
    (FunctionTransformer(), NUMBERS),
    (make_pipeline(StandardScaler(), PCA(2)).set_output(transform="pandas"), NUMBERS),
    (make_column_transformer((StandardScaler(), [0, 2]), ("passthrough", [1])), NUMBERS),
    (make_column_transformer((SimpleImputer(), [3])), EMPTY),  # no column is left
    (make_column_transformer((StandardScaler(), slice(0, 3)), remainder=PCA(1)), NUMBERS),
    (
        make_column_transformer(
            (OneHotEncoder(), np.array([False, True, False])), remainder="passthrough"
        ),
        WHOLE,
    ),
]


def transformed(transformer, X):
    made = transformer.transform(X)
    return made.toarray() if sparse.issparse(made) else np.asarray(made)


@pytest.mark.filterwarnings("ignore:Found unknown categories", "ignore:Skipping features without")
@pytest.mark.filterwarnings("ignore:Currently, when `keep_empty_feature", "ignore::RuntimeWarning")
@pytest.mark.parametrize("is_mapped", [False, True])
@pytest.mark.parametrize(("transformer", "X"), CASES, ids=lambda case: str(case)[:60])
def test_round_trip(transformer, X, is_mapped, tmp_path):
    transformer.fit(X)
    nl.save(transformer, tmp_path / "file")
    again = nl.load(tmp_path / "file", mmap=is_mapped)
    assert isinstance(again, type(transformer))
    left, right = transformer.transform(X), again.transform(X)
    assert type(left) is type(right)
    assert np.asarray(left).dtype == np.asarray(right).dtype
    np.testing.assert_array_equal(transformed(transformer, X), transformed(again, X))
    if hasattr(transformer, "get_feature_names_out"):
        ours, theirs = transformer.get_feature_names_out(), again.get_feature_names_out()
        np.testing.assert_array_equal(ours, theirs)
    assert str(again) == str(transformer)
    nl.save(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "file").read_bytes()
    np.testing.assert_array_equal(transformed(again.fit(X), X), transformed(transformer, X))


@pytest.mark.parametrize(
    ("transformer", "X"),
    [
        (CountVectorizer(stop_words=list(np.array(["sea", "night"]))), TEXTS),
        (CountVectorizer(vocabulary=list(np.array(["sea", "night"]))), TEXTS),
        (CountVectorizer(vocabulary={np.str_("sea"): 0}), TEXTS),
        (OneHotEncoder(drop=[np.str_("red")]), WORDS[:, :1]),
        (OneHotEncoder(categories=[[*np.unique(WORDS.astype(str))]] * 3), WORDS),
        (OrdinalEncoder(), np.array([[np.str_("b")], [np.str_("a")]], dtype=object)),
        (SimpleImputer(strategy=np.str_("median")), GAPS),
    ],
)
def test_texts_of_numpy_are_kept_as_plain_ones(transformer, X, tmp_path):
    nl.save(transformer.fit(X), tmp_path / "file")
    again = nl.load(tmp_path / "file")
    np.testing.assert_array_equal(transformed(again, X), transformed(transformer, X))
    assert "np.str_" not in str(again)


@pytest.mark.parametrize(
    "columns",
    [
        *(("b", "a"), (1, 0), pd.Index(["b", "a"]), pd.Series(["b", "a"]), np.array(["b", "a"])),
        *(slice(None, "b"), slice("b", None), slice(None, 2), slice(1, None), slice(None)),
    ],
    ids=repr,
)
def test_columns_of_all_forms(columns, tmp_path):
    frame = pd.DataFrame(NUMBERS[:, :3], columns=["a", "b", "c"])
    model = ColumnTransformer([("some", StandardScaler(), columns)], remainder="passthrough")
    nl.save(model.fit(frame), tmp_path / "file")
    again = nl.load(tmp_path / "file")
    np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


FOR_SPARSE = [
    *(PCA(count, svd_solver="arpack", random_state=0) for count in (1, 2)),
    *(PCA(count, svd_solver="covariance_eigh") for count in (1, 3)),
    *(TruncatedSVD(count, algorithm="arpack", random_state=0) for count in (1, 2)),
    *(TruncatedSVD(count, random_state=0) for count in (1, 3)),
]
FOR_DENSE = [
    *FOR_SPARSE,
    *(PCA(count, svd_solver="randomized", random_state=0) for count in (1, 2)),
    *(PCA(count, svd_solver="full") for count in (1, 2, 0.5)),
]


@pytest.mark.parametrize(
    ("reducer", "form"),
    [*((one, np.asarray) for one in FOR_DENSE), *((one, sparse.csr_array) for one in FOR_SPARSE)],
    ids=str,
)
def test_components_are_kept_as_they_lie_in_memory(reducer, form, tmp_path):
    """The last bits of a product follow the order of the numbers, backwards or with gaps too."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = form(np.maximum(0, rng.normal(size=(30, rng.integers(3, 8 * seed + 4)))))
        nl.save(reducer.fit(X), tmp_path / "file")
        again = nl.load(tmp_path / "file")
        for other in (X, X[:1], X.astype(np.float32)):
            assert again.transform(other).tobytes() == reducer.transform(other).tobytes()


@pytest.fixture
def columns():
    return {
        "size": GAPS[:, 0],
        "weight": GAPS[:, 1],
        "color": SOME_WORDS[:, 0],
        "made in": WORDS[:, 1],
        "text": TEXTS,
        "note": ["unused"] * 40,
    }


@pytest.fixture
def frame(columns):
    return pd.DataFrame(columns)


def need(library):
    """Skip a test where this scikit-learn does not know frames of a library yet."""
    try:
        frame = library.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        scaler = StandardScaler().set_output(transform=library.__name__)
        make_column_transformer((scaler, ["b"])).fit_transform(frame)
    except (ValueError, AttributeError):
        pytest.skip(f"scikit-learn {sklearn.__version__} does not support {library.__name__}")


def preprocessing(select, missing=np.nan):
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent", missing_values=missing),
        OneHotEncoder(handle_unknown="ignore"),
    )
    numbers = ColumnTransformer(
        [("gaps", make_pipeline(SimpleImputer(), StandardScaler()), slice("size", "weight"))]
    )
    return make_column_transformer(
        (numbers, select), (words, ["color", "made in"]), (TfidfVectorizer(), "text")
    )


@pytest.mark.parametrize(
    ("library", "select", "missing"),
    [
        (pd, ["size", "weight"], np.nan),
        (pd, make_column_selector(dtype_include=float), np.nan),
        (pl, ["size", "weight"], None),
    ],
)
def test_a_table_of_numbers_words_texts_and_gaps(columns, library, select, missing, tmp_path):
    need(library)
    frame = library.DataFrame(columns)
    Y = (RNG.random((40, 4)) < 0.4).astype(int)
    model = nl.make_pipeline(preprocessing(select, missing), nl.MLkNN(5)).fit(frame, Y)
    nl.save(model, tmp_path / "model")
    again = nl.load(tmp_path / "model")
    assert isinstance(again, nl.Pipeline)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    # Columns are found by name, whatever their order and the other columns.
    other = frame[["text", "note", "made in", "color", "weight", "size"]]
    np.testing.assert_array_equal(again.predict_proba(other), model.predict_proba(frame))
    np.testing.assert_array_equal(again.rank(frame).labels, model.rank(frame).labels)
    assert again[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="color"):
        again.predict(frame[["size", "weight", "made in", "text"]])


UNCOMMON = namedtuple("Uncommon", ["low", "high"])


@pytest.mark.parametrize(
    ("transformer", "X", "named"),
    [
        (FunctionTransformer(np.log1p), WHOLE, "FunctionTransformer's func=.*log1p"),
        (OwnScaler(), WHOLE, "OwnScaler.*TfidfVectorizer.*skops"),
        (make_pipeline(KBinsDiscretizer(2, strategy="uniform")), WHOLE, "KBinsDiscretizer"),
        (FeatureUnion([("a", OwnScaler())]), WHOLE, "OwnScaler"),
        (make_column_transformer((OwnScaler(), [0])), WHOLE, "OwnScaler"),
        (CountVectorizer(preprocessor=str.lower), TEXTS, "CountVectorizer's preprocessor"),
        (
            CountVectorizer(tokenizer=str.split, token_pattern=None),
            TEXTS,
            "CountVectorizer's token",
        ),
        (CountVectorizer(token_pattern="(a+)+"), ["aa"], "CountVectorizer's token_pattern=.*a.*"),
        (CountVectorizer(input="filename"), [__file__], "input='filename'"),
        (HashingVectorizer(ngram_range=(1, 99)), TEXTS, "HashingVectorizer's ngram_range=.*99"),
        (HashingVectorizer(n_features=2**25), TEXTS, "HashingVectorizer's n_features=33554432"),
        (CountVectorizer(vocabulary=["sea", "\ud800"]), TEXTS, r"unpaired surrogate.*\\ud800"),
        (ColumnTransformer([("a", "drop", [0])]), WHOLE, "ColumnTransformer.*drops all"),
        (PCA(1, tol=np.longdouble(0)), NUMBERS, "PCA's tol=.*longdouble"),
        (MinMaxScaler(feature_range=UNCOMMON(0, 1)), NUMBERS, "MinMaxScaler.*'Uncommon'"),
    ],
)
def test_estimators_that_could_not_be_loaded_are_not_saved(transformer, X, named, tmp_path):
    transformer.fit(X)
    for model in (transformer, make_pipeline(transformer)):
        with pytest.raises((TypeError, ValueError), match=named):
            nl.save(model, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_constants_of_another_type_than_this_scikit_learn_keeps(tmp_path):
    """As in files of scikit-learn 1.6, which kept them in the type of the data."""
    imputer = SimpleImputer(strategy="constant", fill_value=-1.5).fit(GAPS)
    nl.save(imputer, tmp_path / "file")
    tree, _ = read_tree(tmp_path / "file")
    for dtype in (np.float32, object):
        statistics = as_stored(np.full(5, -1.5).astype(dtype), "statistics_")
        write_tree(tmp_path / "file", {**tree, "statistics": statistics})
        again = nl.load(tmp_path / "file")
        np.testing.assert_array_equal(again.transform(GAPS), imputer.transform(GAPS))


@pytest.mark.parametrize("library", [pd, pl])
def test_set_output_is_kept(library, tmp_path):
    # The second table finds its columns by the names that the first gives them.
    first = make_column_transformer((StandardScaler(), [0, 2]), ("passthrough", [1]))
    need(library)
    first.set_output(transform=library.__name__)
    names = first.fit(NUMBERS).get_feature_names_out().tolist()
    second = make_column_transformer((PCA(1), names[:2]), ("drop", names[2:]))
    model = make_pipeline(first, second).fit(NUMBERS)
    nl.save(model, tmp_path / "file")
    again = nl.load(tmp_path / "file")
    assert again[0].transform(NUMBERS).equals(first.transform(NUMBERS))
    np.testing.assert_array_equal(again.transform(NUMBERS), model.transform(NUMBERS))


def test_caches_of_fit_are_not_stored(tmp_path):
    """A folder in which joblib keeps pickles must not come from a file."""
    model = make_pipeline(StandardScaler(), memory=str(tmp_path / "cache"), verbose=True)
    nl.save(model.fit(NUMBERS), tmp_path / "file")
    again = nl.load(tmp_path / "file")
    assert again.memory is None
    assert not again.verbose


def nested(depth):
    model = StandardScaler()
    for _ in range(depth):
        model = make_pipeline(model)
    return model.fit(NUMBERS)


def test_nesting_is_limited(tmp_path):
    nl.save(nested(8), tmp_path / "file")
    again = nl.load(tmp_path / "file")
    np.testing.assert_array_equal(again.transform(NUMBERS), nested(8).transform(NUMBERS))
    with pytest.raises(ValueError, match="8 levels deep"):
        nl.save(nested(9), tmp_path / "file")
    tree, _ = read_tree(tmp_path / "file")
    write_tree(tmp_path / "file", {"class": "Pipeline", "steps": [["a", tree]]})
    with pytest.raises(nl.FileError, match="8 levels deep"):
        nl.load(tmp_path / "file")


class Doubling(TransformerMixin, BaseEstimator):
    """A transformer of our own, stored by the two methods that model files ask for."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return 2 * X

    def _tree(self):
        return {"class": "Doubling", "features": self.n_features_in_}

    @classmethod
    def _from_tree(cls, tree, version):
        assert version == FORMAT
        made = cls()
        made.n_features_in_ = check_integer(tree["features"], "features", low=1)
        return made


def test_a_transformer_of_our_own_is_stored_once_it_is_registered(tmp_path, monkeypatch):
    Y = np.eye(40, 3, dtype=int)
    model = nl.make_pipeline(make_column_transformer((Doubling(), [0, 1])), nl.BRkNN(3))
    model.fit(NUMBERS, Y)
    with pytest.raises(TypeError, match="Doubling"):
        nl.save(model, tmp_path / "file")
    monkeypatch.setitem(OWN, "Doubling", Doubling.__module__)
    nl.save(model, tmp_path / "file")
    again = nl.load(tmp_path / "file")
    np.testing.assert_array_equal(again.predict_proba(NUMBERS), model.predict_proba(NUMBERS))
    tree, _ = read_tree(tmp_path / "file")
    tree["steps"][0][1]["steps"][0]["transformer"]["features"] = -1
    write_tree(tmp_path / "file", tree)
    with pytest.raises(nl.FileError, match="features.*-1"):
        nl.load(tmp_path / "file")


@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(min_frequency=8), OrdinalEncoder(max_categories=2)]
)
def test_infrequent_categories_are_refused_with_what_to_do(encoder, tmp_path):
    with pytest.raises(ValueError, match="Encoder's m.*=[82] cannot be saved; fit it again"):
        nl.save(encoder.fit(WORDS), tmp_path / "file")
    nl.save(
        clone(encoder).set_params(min_frequency=None, max_categories=None).fit(WORDS),
        tmp_path / "file",
    )
    tree, _ = read_tree(tmp_path / "file")
    write_tree(tmp_path / "file", {**tree, "infrequent": [np.array([0])] * 3})  # of version 1.0.0
    with pytest.raises(nl.FileError, match="infrequent categories of .*Encoder.*fit it again"):
        nl.load(tmp_path / "file")


SLICES = ColumnTransformer([(f"s{at}", "passthrough", slice(0, None)) for at in range(20)])
# A transformer, a place in its tree, the value there, and what the error names.
HOSTILE = [
    (CountVectorizer(), TEXTS, ("parameters", "input"), "filename", "input='filename'"),
    (CountVectorizer(), TEXTS, ("parameters", "input"), "file", "input='file'"),
    (CountVectorizer(), TEXTS, ("parameters", "token_pattern"), "(a+)+$", "token_pattern"),
    (CountVectorizer(), TEXTS, ("parameters", "token_pattern"), "[z-a]", "range z-a"),
    (CountVectorizer(), TEXTS, ("parameters", "encoding"), "rot13", "rot13"),
    (CountVectorizer(), TEXTS, ("parameters", "encoding"), "none such", "none such"),
    (CountVectorizer(), TEXTS, ("parameters", "tokenizer"), {"type": "float64"}, "tokenizer"),
    (
        *(TfidfVectorizer(), TEXTS, ("parameters", "ngram_range"), {"tuple": [1, 10**9]}),
        "ngram_range",
    ),
    (TfidfVectorizer(), TEXTS, ("idf",), None, "idf"),
    (HashingVectorizer(), TEXTS, ("parameters", "n_features"), 2**31 - 2, "n_features"),
    (QuantileTransformer(n_quantiles=5), NUMBERS, ("features",), 2**40, "quantiles_"),
    (make_column_transformer((PCA(1), [0, 1])), NUMBERS, ("features",), 2**40, str(2**40)),
    (SLICES, NUMBERS, ("features",), 2**20, "1048576 features.*slices"),
    (make_pipeline(PCA(1)), NUMBERS, ("steps", 0, 0), "a__b", "__"),
    (make_pipeline(PCA(1)), NUMBERS, ("steps", 0, 0), None, "names"),
    (SLICES, NUMBERS, ("steps", 0, "name"), "s1", "two of its steps have the name 's1'"),
    (FeatureUnion([("a", PCA(1))]), NUMBERS, ("weights",), {"dict": [["b", 2]]}, "'b'"),
    (FeatureUnion([("a", PCA(1))]), NUMBERS, ("weights",), {"dict": [["a", "x"]]}, "'a'"),
    (StandardScaler(), NUMBERS, ("output",), "none", "output"),
]


@pytest.mark.parametrize(("transformer", "X", "place", "value", "named"), HOSTILE)
def test_dangerous_values_in_a_file(transformer, X, place, value, named, tmp_path):
    nl.save(clone(transformer).fit(X), tmp_path / "file")
    tree, _ = read_tree(tmp_path / "file")
    node = tree
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    write_tree(tmp_path / "file", tree)
    with pytest.raises(nl.FileError, match=named):
        nl.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("transformer", "X", "parameters"),
    [
        (TruncatedSVD(2), NUMBERS, {"n_iter": 10**9}),
        (TruncatedSVD(2), NUMBERS, {"n_oversamples": 10**12}),
        (PCA(2), NUMBERS, {"iterated_power": 10**9, "svd_solver": "randomized"}),
        (QuantileTransformer(n_quantiles=5), NUMBERS, {"n_quantiles": 10**12}),
    ],
)
def test_nothing_is_computed_with_the_parameters_of_a_file(transformer, X, parameters, tmp_path):
    nl.save(transformer.fit(X), tmp_path / "file")
    tree, _ = read_tree(tmp_path / "file")
    tree["parameters"].update(parameters)
    write_tree(tmp_path / "file", tree)
    again = nl.load(tmp_path / "file")
    np.testing.assert_array_equal(again.transform(X), transformer.transform(X))


@pytest.mark.parametrize(
    "transformer", [Normalizer(), StandardScaler(with_mean=False, with_std=False)]
)
def test_features_that_a_file_only_declares_take_no_memory(transformer, tmp_path):
    nl.save(transformer.fit(NUMBERS), tmp_path / "file")
    tree, _ = read_tree(tmp_path / "file")
    write_tree(tmp_path / "file", {**tree, "features": 2**50})
    assert nl.load(tmp_path / "file").n_features_in_ == 2**50


def test_a_transformer_that_was_not_fitted(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        nl.save(StandardScaler(), tmp_path / "file")


WRONG = (
    *(None, -1, 0, 2, 10**30, 0.5, "x", True, [], {}, [1, 2], ["a"], {"dict": [["a", 1]]}),
    *({"slice": [0, None, None]}, {"type": "float64"}, {"objects": [None, 1]}, {"texts": ["a"]}),
    *({"tuple": [3, 1]}, {"float": "nan"}, np.zeros(0), np.zeros(5), np.full(40, -1)),
    *(np.arange(100, dtype=np.int32), np.zeros((9, 9)), np.full((2, 2), np.nan)),
)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Stored pipelines with all kinds of transformers, each with suitable data."""
    path = tmp_path_factory.mktemp("trees") / "model"
    Y = np.eye(40, 3, dtype=int)
    Y[:, 2] = 1
    found = []
    for transformer, X in CASES:
        made = transformed(clone(transformer).fit(X), X)
        if made.dtype.kind == "O" or not np.isfinite(made).all() or not made.size:
            continue  # words, missing values or no columns, which a method does not accept
        nl.save(make_pipeline(clone(transformer), nl.MLkNN(3)).fit(X, Y[: X.shape[0]]), path)
        found.append((read_tree(path)[0], X))
    return found


@pytest.mark.filterwarnings("ignore")
@examples(300)
@given(data=st.data())
def test_a_sealed_file_with_any_wrong_value_is_refused_or_answers(tmp_path_factory, trees, data):
    path = tmp_path_factory.mktemp("wrong") / "model"
    tree, X = data.draw(st.sampled_from(trees))
    step = tree["steps"][0][1]
    place = data.draw(st.sampled_from([place for place in paths(step) if place]))
    steps = [["first", replaced(step, place, data.draw(st.sampled_from(WRONG)))], tree["steps"][1]]
    write_tree(path, {**tree, "steps": steps})
    try:
        model = nl.load(path)
    except nl.FileError:
        return
    try:
        probabilities = model.predict_proba(X)
    except (ValueError, TypeError, re.error):  # for example, with wrong features
        return
    assert np.all((probabilities > 0) & (probabilities < 1))
