"""Learned coordinates joined with plain features, in the way that serves ML-kNN best."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs import mean_variance_axis

from nearlabel.blend.label_axes import LabelAxes
from nearlabel.blend.projections import Projection
from nearlabel.blend.ridge import LabelRidge
from nearlabel.blend.rows import drawn_rows, row_blocks
from nearlabel.common.arrays import Csr, Floats, Matrix, canonical_csr
from nearlabel.common.threads import one_blas_thread
from nearlabel.methods.mlknn import MLkNN
from nearlabel.metrics.ranking import Ranking
from nearlabel.search import neighbor_graph

_NEIGHBORS = 30
_ROWS = 4_000  # on which candidates are compared


class Joining(NamedTuple):
    """How learned coordinates L and plain features X are joined: [L learned, X plain].

    Attributes
    ----------
    learned, plain : float
        Factors of the two parts; with a factor of 0 the plain part is left out.
    metric : {"euclidean", "cosine"}
        "cosine": rows get length 1, so that Euclidean distances rank as cosine distances do.
    """

    learned: float
    plain: float
    metric: str

    def rows(self, L: Floats, X: Matrix) -> Matrix:
        """Joined rows: an array, or a ``csr_array`` if they include a sparse X."""
        joined: Matrix = L * self.learned
        if self.plain:
            plain = X.astype(L.dtype) * self.plain
            if sparse.issparse(plain):
                parts = [sparse.csr_array(joined), plain]
                joined = canonical_csr(sparse.hstack(parts, format="csr"))
            else:
                joined = np.hstack([joined, plain])
        return normalize(joined, copy=False) if self.metric == "cosine" else joined


class Candidate(NamedTuple):
    """A way to turn the scores of a regression into a distance.

    Attributes
    ----------
    spread : float
        The exponent with which labels are scaled by their spread.
    weight : float
        Share of the learned coordinates in the squared distance.
    metric : {"euclidean", "cosine"}
    """

    spread: float
    weight: float
    metric: str


class JoinedSpace(NamedTuple):
    """The best of some candidates.

    Attributes
    ----------
    candidate : Candidate
    scores : list of dict
        The candidates, each with its score; empty if there is only one.
    projection : Projection
        Learned coordinates of new rows.
    joining : Joining
        How they are joined with the features.
    left_out : ndarray
        Learned coordinates of the training rows, each left out.
    """

    candidate: Candidate
    scores: list[dict[str, object]]
    projection: Projection
    joining: Joining
    left_out: Floats


def joined_space(
    ridge: LabelRidge,
    X: Matrix,
    Y: Csr,
    options: tuple[list[float], list[float], list[str]],
    n_components: int,
    n_jobs: int | None,
) -> JoinedSpace:
    """The combination of spread, weight and metric with the best leave-one-out score of ML-kNN."""
    axes, left_out, scales = {}, {}, {}
    for spread in options[0]:
        with one_blas_thread:
            axes[spread] = LabelAxes(ridge.form_, ridge.choice_.alpha, spread, n_components)
            left_out[spread] = axes[spread].left_out(float_type(X))
        scales[spread] = unit_scale(left_out[spread])
    plain_scale, sample = unit_scale(X), drawn_rows(X.shape[0], _ROWS, ridge.random_state)

    def joining(candidate: Candidate) -> Joining:
        spread, weight, metric = candidate
        learned, plain = math.sqrt(weight) * scales[spread], math.sqrt(1 - weight) * plain_scale
        return Joining(learned, plain, metric)

    candidates = [Candidate(*values) for values in product(*options)]
    scores: list[dict[str, object]] = []
    best = candidates[0]
    if len(candidates) > 1:
        values = []
        for candidate in candidates:
            rows = joining(candidate).rows(left_out[candidate.spread][sample], X[sample])
            values.append(left_out_quality(rows, Y[sample], n_jobs))
            scores.append({**candidate._asdict(), "score": values[-1]})
        best = candidates[int(np.argmax(values))]
    projection = axes[best.spread].projection
    return JoinedSpace(best, scores, projection, joining(best), left_out[best.spread])


def unit_scale(rows: Matrix) -> float:
    """The factor that scales the mean squared distance between different rows to 1."""
    n, d = rows.shape
    if sparse.issparse(rows):
        variance = mean_variance_axis(rows.astype(np.float64), axis=0)[1].sum()
    else:
        blocks = row_blocks(d, n, 16)
        variance = sum(rows[:, block].var(axis=0, dtype=np.float64).sum() for block in blocks)
    variance *= 2 * n / (n - 1)
    return float(variance**-0.5) if variance > np.finfo(np.float64).tiny else 1.0


def left_out_quality(rows: Matrix, Y: Csr, n_jobs: int | None) -> float:
    """Leave-one-out average precision of ML-kNN with k = 30.

    With a single label, where there is nothing to rank, the negative squared error.
    """
    n, q = Y.shape
    k = min(_NEIGHBORS, n - 1)
    graph = neighbor_graph(rows, k, search="exact", n_jobs=n_jobs)
    model = MLkNN(k).fit_graph(graph, Y)
    scores = model._left_out_scores(graph, None, np.arange(n))
    if q == 1:
        return -float(np.mean((scores.toarray() - Y.toarray()) ** 2))
    value = Ranking(Y, scores).average_precision()
    return 0.0 if np.isnan(value) else value  # nan: no row can be ranked


def float_type(X: Matrix) -> type[np.floating[Any]]:
    """The type of learned coordinates: that of the features if these are small floats."""
    return np.float32 if X.dtype in (np.float16, np.float32) else np.float64
