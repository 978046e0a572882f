"""Scales of features, and which of them suits the labels best."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Csr, Matrix, with_data
from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.scores import LabelScores
from nearlabel.metrics import average_precision
from nearlabel.search import neighbor_graph

if TYPE_CHECKING:
    from sklearn.base import TransformerMixin

SCALES = ("none", "minmax", "standard", "rank", "tfidf", "auto")


def scaler(scale: str, X: Matrix) -> TransformerMixin | None:
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
    check_choice(scale, "scale", SCALES[:-1])
    if scale == "none":
        return None
    from sklearn import preprocessing

    is_sparse = sparse.issparse(X)
    if scale == "standard":
        return preprocessing.StandardScaler(with_mean=not is_sparse)
    if scale == "tfidf":
        from sklearn.feature_extraction.text import TfidfTransformer

        if _least(X) < 0:
            reason = "is for counts, but a feature has a negative value; use another scale"
            raise ArgumentError(f"scale='tfidf' {reason}", "scale")
        return TfidfTransformer()
    if scale == "rank":
        if is_sparse and _least(X) < 0:
            reason = "needs dense features here: one of the sparse features has a negative value"
            raise ArgumentError(f"scale='rank' {reason}; use 'standard', or make X dense", "scale")
        # Use all rows: a random sample would differ from run to run.
        quantiles = min(200, X.shape[0])
        return preprocessing.QuantileTransformer(n_quantiles=quantiles, subsample=None)
    if isinstance(X, np.ndarray):
        return preprocessing.MinMaxScaler()
    if X.nnz and np.any(X.min(axis=0).toarray() != 0):
        raise ArgumentError(
            "scale='minmax' needs dense features here: one of the sparse features has no zeros or "
            "a negative value; use 'standard', or make X dense",
            "scale",
        )
    return preprocessing.MaxAbsScaler()


def _least(X: Matrix) -> float:
    """The least of the values that are stored, 0 if none are."""
    values = X if isinstance(X, np.ndarray) else X.data
    return float(values.min()) if values.size else 0.0


def scale_scores(
    X: Matrix,
    Y: Csr,
    metric: object = "euclidean",
    *,
    transformer: Callable[[str, Matrix], TransformerMixin | None] = scaler,
) -> dict[str, float]:
    """The score of each scale: leave-one-out average precision of the votes of ten neighbors.

    It is measured on at most 1,000 rows, scaled by `transformer(scale, rows)`. Empty if there is
    nothing to compare: fewer than three rows, or precomputed distances. Sparse features are counts
    or weights of words, which are on the same scale already; dividing each by its spread would let
    the rarest words decide. So they are compared with "tfidf" only, or with nothing if some are
    negative.
    """
    n = X.shape[0]
    if n < 3 or not isinstance(metric, str) or metric == "precomputed":
        return {}
    if sparse.issparse(X) and not _least(X) >= 0:  # negative, or missing
        return {}
    if n > 1000:
        rows = np.sort(np.random.default_rng(0).choice(n, 1000, replace=False))
        X, Y, n = X[rows], Y[rows], 1000
    k, scores = min(10, n - 1), {}
    for scale in ("none", "tfidf") if sparse.issparse(X) else SCALES[:4]:
        step = transformer(scale, X)
        vectors = X if step is None else step.fit_transform(X)
        counts = neighbor_counts(neighbor_graph(vectors, k, metric=metric, search="exact"), Y)
        score = average_precision(Y, LabelScores.of(with_data(counts, counts.data / k)))
        scores[scale] = 0.0 if np.isnan(score) else score
    return scores


def best_scale(scores: dict[str, float]) -> str:
    """The first of the scales with the best score; "none" if there are none."""
    return max(scores, key=scores.__getitem__, default="none")
