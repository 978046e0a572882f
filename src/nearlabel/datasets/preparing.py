"""How the features of a data set become vectors: missing values, categories, text and scaling.

This affects results more than the method does. Everything is fitted to training rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.choices import IMPUTES, SCALES
from nearlabel.common.messages import shown
from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.datasets.frames import is_frame, number_columns

_CHOSEN = tuple(scale for scale in SCALES if scale != "auto")
_OF_NUMBERS = ("none", "minmax", "standard", "rank")  # what "auto" chooses from
_OF_WORDS = ("none", "tfidf")  # the same for sparse features
_SAMPLE, _NEIGHBORS = 1000, 10  # of the comparison of scales
_QUANTILES = 200  # of "rank"


@dataclass(frozen=True)
class Preparing:
    """How features become vectors.

    Parameters
    ----------
    scale : {"none", "minmax", "standard", "rank", "tfidf", "auto"}
        Of numbers: unchanged; from 0 to 1; with mean 0 and variance 1; by rank among the training
        rows, from 0 to 1; counts of words weighted by their rarity, in rows of length 1; or
        whichever of these `scale_scores` finds best.
    impute : {"none", "mean", "median", "zero"}
        What replaces a missing number. A missing category is a category of its own.
    text : tuple of str
        The columns of a frame with free text.
    learn_distance : bool
        Whether to transform the vectors by `LabelSpace` in the end, which is fitted to the labels.
    """

    scale: str = "none"
    impute: str = "none"
    text: tuple[str, ...] = ()
    learn_distance: bool = False

    def __post_init__(self) -> None:
        check_choice(self.scale, "scale", SCALES)
        check_choice(self.impute, "impute", IMPUTES)

    def is_needed(self, X: Any) -> bool:
        """Whether X has to be transformed."""
        is_scaled = self.scale != "none" or self.impute != "none"
        return is_frame(X) or is_scaled or self.learn_distance

    def chosen(self, X: Any, Y: Any, metric: Any = "euclidean") -> Preparing:
        """The same, with scale "auto" replaced by the best for training rows with labels Y."""
        if self.scale != "auto":
            return self
        scores = scale_scores(X, Y, self, metric)
        best = max(scores, key=scores.__getitem__) if scores else "none"  # the first of equal ones
        return replace(self, scale=best)

    def transformer(self, X: Any) -> Any:
        """An unfitted scikit-learn transformer for training rows; None if none is needed."""
        if self.impute == "none" and (self.scale == "tfidf" or self.learn_distance):
            self._refuse_gaps(X)
        if is_frame(X):
            return _in_turn(self._of_columns(X), self._label_space())
        imputer = None if sparse.issparse(X) else self._imputer()
        return _in_turn(imputer, scaler(self.scale, X), self._label_space())

    def _refuse_gaps(self, X: Any) -> None:
        """Raise an error for missing numbers that a step would not accept."""
        if has_gaps(X):
            what, name = "learn_distance=True", "learn_distance"
            if self.scale == "tfidf":
                what, name = "scale='tfidf'", "scale"
            raise ArgumentError(f"{what} takes no missing values; pass impute='median'", name)

    def _label_space(self) -> Any:
        if not self.learn_distance:
            return None
        from nearlabel.blend.label_space import LabelSpace

        return LabelSpace()

    def _of_columns(self, X: Any) -> Any:
        """A transformer that selects columns of a frame by name."""
        from sklearn.compose import ColumnTransformer
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import OneHotEncoder

        from nearlabel.methods.filled_texts import FilledTexts

        numbers = number_columns(X)
        words = [name for name in X.columns if name not in {*numbers, *self.text}]
        steps: list[tuple[str, Any, Any]] = []
        if numbers:
            of_numbers = _in_turn(self._imputer(), scaler(self.scale, np.empty((len(X), 0))))
            steps.append(("numbers", "passthrough" if of_numbers is None else of_numbers, numbers))
        if words:  # a gap is a word of its own
            encoder = OneHotEncoder(handle_unknown="ignore")
            steps.append(("words", _in_turn(FilledTexts(), encoder), words))
        for place, name in enumerate(self.text, 1):
            if not X[name].str.contains(r"\w\w").any():
                raise ArgumentError(f"text: column {shown(name)} has no words", "text")
            steps.append((f"text{place}", _in_turn(FilledTexts(), TfidfVectorizer()), name))
        return ColumnTransformer(steps)

    def _imputer(self) -> Any:
        """The imputer of numbers; a column without any values becomes zeros."""
        if self.impute == "none":
            return None
        from sklearn.impute import SimpleImputer

        strategy = "constant" if self.impute == "zero" else self.impute
        return SimpleImputer(strategy=strategy, fill_value=0, keep_empty_features=True)


def has_gaps(X: Any) -> bool:
    """Whether a number is missing."""
    if is_frame(X):
        return any(X[name].is_nan().any() for name in number_columns(X))
    values = X.data if sparse.issparse(X) else X
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _in_turn(*steps: Any) -> Any:
    """Transformers one after the other; those that are None are left out."""
    there = [step for step in steps if step is not None]
    if len(there) < 2:
        return there[0] if there else None
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*there)


def scale_scores(
    X: Any, Y: Any, preparing: Preparing, metric: Any = "euclidean", seed: int = 0
) -> dict[str, float]:
    """The score of each scale: leave-one-out average precision of BRkNN with ten neighbors.

    It is measured on at most 1,000 rows. Empty if there is nothing to compare: fewer than three
    rows, or precomputed distances. Sparse features are counts or weights of words, which are on the
    same scale already; dividing each by its spread would let the rarest words decide. So they are
    compared with "tfidf" only, or with nothing if some are negative. Missing values that will be
    left as they are count as medians here.
    """
    n = X.shape[0]
    if n < 3 or not isinstance(metric, str) or metric == "precomputed":
        return {}
    candidates: tuple[str, ...] = _OF_NUMBERS
    if sparse.issparse(X):
        if X.nnz and not X.data.min() >= 0:  # negative, or missing
            return {}
        candidates = _OF_WORDS
    if is_frame(X) and not number_columns(X):
        return {}
    from nearlabel.methods.brknn import BRkNN
    from nearlabel.metrics import average_precision
    from nearlabel.search import neighbor_graph

    if n > _SAMPLE:
        rows = np.sort(np.random.default_rng(seed).choice(n, _SAMPLE, replace=False))
        X, Y, n = X[rows], Y[rows], _SAMPLE
    k, scores = min(_NEIGHBORS, n - 1), {}
    impute = "median" if preparing.impute == "none" and has_gaps(X) else preparing.impute
    for scale in candidates:
        plain = replace(preparing, scale=scale, impute=impute, learn_distance=False)
        transformer = plain.transformer(X)
        vectors = X if transformer is None else transformer.fit_transform(X)
        graph = neighbor_graph(vectors, k, metric=metric, search="exact")
        left_out = BRkNN(k).fit_graph(graph, Y).scores_from_graph(graph)  # it learns nothing else
        score = average_precision(Y, left_out)
        scores[scale] = 0.0 if np.isnan(score) else score
    return scores


def scaler(scale: str, X: Any) -> Any:
    """An unfitted scikit-learn transformer suitable for X; None for "none".

    Parameters
    ----------
    scale : {"none", "minmax", "standard", "rank", "tfidf"}
        Unchanged; each feature from 0 to 1; each feature with mean 0 and variance 1; each feature
        by its rank among the training rows, from 0 to 1. Ranks are interpolated between 200
        quantiles, or as many as there are rows. A repeated value has the middle of its ranks, but
        the least value always has 0 and the greatest 1; a constant feature is 0. "tfidf" is for
        counts: each is multiplied by the logarithm of its feature's rarity, and rows get length 1.
    X : ndarray or csr_array
        The rows that it will be fitted to. Sparse rows stay sparse: "minmax" divides each feature
        by its maximum, which is the same if the minimum is 0, and raises an error otherwise;
        "standard" does not subtract the mean, which changes no difference between rows; "rank" is
        the same, since 0 is the minimum, and raises an error if a value is negative.
    """
    check_choice(scale, "scale", _CHOSEN)
    if scale == "none":
        return None
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if scale == "standard":
        return StandardScaler(with_mean=not sparse.issparse(X))
    if scale == "rank":
        return _ranks(X)
    if scale == "tfidf":
        return _word_weights(X)
    if not sparse.issparse(X):
        return MinMaxScaler()
    if X.nnz and np.any(X.min(axis=0).toarray() != 0):
        raise ArgumentError(
            "scale='minmax' needs dense features here: one of the sparse features has no zeros or "
            "a negative value; use 'standard', or make X dense",
            "scale",
        )
    return MaxAbsScaler()


def _word_weights(X: Any) -> Any:
    """The transformer of scale "tfidf"."""
    from sklearn.feature_extraction.text import TfidfTransformer

    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ArgumentError(
            "scale='tfidf' is for counts, but a feature has a negative value; use another scale",
            "scale",
        )
    return TfidfTransformer()


def _ranks(X: Any) -> Any:
    """The transformer of scale "rank"."""
    from sklearn.preprocessing import QuantileTransformer

    if sparse.issparse(X) and X.nnz and X.data.min() < 0:
        raise ArgumentError(
            "scale='rank' needs dense features here: one of the sparse features has a negative "
            "value; use 'standard', or make X dense",
            "scale",
        )
    # Use all rows: a random sample would differ from run to run.
    return QuantileTransformer(n_quantiles=min(_QUANTILES, X.shape[0]), subsample=None)
