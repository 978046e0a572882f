"""Learned coordinates joined with plain features, and how good a way to join them is."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from nearlabel.blend.spectra import row_blocks
from nearlabel.common.arrays import Csr, Floats, canonical_csr
from nearlabel.methods.mlknn import MLkNN
from nearlabel.metrics.ranking import Ranking
from nearlabel.search import neighbor_graph

_NEIGHBORS = 30
METRICS = ("euclidean", "cosine")


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

    @classmethod
    def of(cls, weight: float, scales: tuple[float, float], metric: str) -> Joining:
        """Both parts scaled to mean squared distance 1, times `weight` and 1 - `weight`."""
        learned, plain = scales
        return cls(math.sqrt(weight) * learned, math.sqrt(1 - weight) * plain, metric)

    def rows(self, L: Floats, X: Any) -> Any:
        """Joined rows: an array, or a ``csr_array`` if they include a sparse X."""
        joined: Any = L * self.learned
        if self.plain:
            plain = X.astype(L.dtype) * self.plain
            if sparse.issparse(plain):
                parts = [sparse.csr_array(joined), plain]
                joined = canonical_csr(sparse.hstack(parts, format="csr"))
            else:
                joined = np.hstack([joined, plain])
        return normalize(joined, copy=False) if self.metric == "cosine" else joined


def unit_scale(rows: Any) -> float:
    """The factor that scales the mean squared distance between different rows to 1."""
    n = rows.shape[0]
    if sparse.issparse(rows):
        mean = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel() / n
        squares = rows.data.astype(np.float64) ** 2
        variance = float(squares.sum()) / n - float(mean @ mean)
    else:
        near = np.mean(rows[:1024], axis=0, dtype=np.float64)  # against cancellation
        total, squared = np.zeros(rows.shape[1]), 0.0
        for some in row_blocks(n, rows.shape[1]):
            part = rows[some] - near
            total += part.sum(axis=0)
            squared += float(np.vdot(part, part))
        variance = (squared - float(total @ total) / n) / n
    variance = 2 * variance * n / (n - 1)
    return float(variance**-0.5) if variance > np.finfo(np.float64).tiny else 1.0


def left_out_quality(rows: Any, Y: Csr, n_jobs: int | None) -> float:
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
