"""A transformer in the style of scikit-learn's `KNeighborsTransformer` as a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Csr
from nearlabel.search.exact.distances import Metric
from nearlabel.search.plugged.foreign_answers import ROWS_AT_ONCE, Answer, Answers, PluggedIndex


def is_transformer(search: Any) -> bool:
    """Whether an object has `fit` and `transform`."""
    return callable(getattr(search, "fit", None)) and callable(getattr(search, "transform", None))


class TransformerIndex(PluggedIndex):
    """Base rows searched by a transformer, whose distances are kept as they are.

    So it uses its own metric, whatever it is; the `metric` of the estimator is then only used by
    `retrieve`. It also uses its own `n_jobs`.

    For example scikit-learn's `KNeighborsTransformer`, pynndescent's `PyNNDescentTransformer`, or a
    pipeline that ends in one; a copy is fitted at the first search. `fit_transform` returns the
    neighbors of the rows among themselves, possibly including the row itself, and `transform` those
    of queries: sparse matrices of distances.
    """

    def __init__(self, vectors: Any, metric: Metric, source: Any) -> None:
        super().__init__(vectors, metric, _copy(source))
        if getattr(source, "mode", "distance") != "distance":
            raise ValueError(
                f"search={self._name} must return distances: set its mode to 'distance'; "
                f"got {source.mode!r}"
            )
        self._fitted: Any = None

    def _answers(self, rows: Any, k: int, alone: bool, n_jobs: int) -> Answers:  # noqa: ARG002
        self._check_reach(k)
        n = rows.shape[0]
        if alone or self._fitted is None:
            fitted = _copy(self._source)
            if alone and hasattr(fitted, "fit_transform"):
                whole = fitted.fit_transform(rows)
            else:
                fitted.fit(self._vectors)
                whole = fitted.transform(rows) if alone else None
            self._fitted = fitted
        if alone:
            whole = self._checked_graph(whole, n)
        for start in range(0, n, ROWS_AT_ONCE):
            place = slice(start, min(start + ROWS_AT_ONCE, n))
            if alone:
                yield _as_arrays(whole, place, k)
            else:
                m = place.stop - place.start
                part = self._checked_graph(self._fitted.transform(rows[place]), m)
                yield _as_arrays(part, slice(0, m), k)

    def _check_reach(self, k: int) -> None:
        """Refuse more neighbors than the transformer declares, before it is fitted."""
        reach = getattr(self._source, "n_neighbors", None)
        if isinstance(reach, int) and reach < k:
            raise ValueError(
                f"search={self._name} has n_neighbors={reach}; {k} neighbors are needed (for "
                "changes of a model, one more than its n_neighbors, since a row finds itself)"
            )

    def _checked_graph(self, graph: Any, n: int) -> Csr:
        shape = (n, self._vectors.shape[0])
        if not sparse.issparse(graph) or graph.shape != shape:
            got = f"a {type(graph).__name__} of shape {np.shape(graph)}"
            raise TypeError(
                f"search={self._name} must return a sparse matrix of shape {shape}; got {got}"
            )
        return sparse.csr_array(graph)


def _copy(transformer: Any) -> Any:
    """An unfitted copy of the transformer, so that the user's own is not modified."""
    from sklearn.base import clone

    return clone(transformer, safe=False)


def _as_arrays(graph: Csr, run: slice, k: int) -> Answer:
    """The stored entries of some rows of a sparse graph, padded with -1 and infinity."""
    ends = graph.indptr[run.start : run.stop + 1]
    lengths = np.diff(ends)
    width = max(k, int(lengths.max()))
    stored = np.arange(width) < lengths[:, None]
    indices = np.full(stored.shape, -1, graph.indices.dtype)
    distances = np.full(stored.shape, np.inf, np.result_type(graph.dtype, np.float32))
    indices[stored] = graph.indices[ends[0] : ends[-1]]
    distances[stored] = graph.data[ends[0] : ends[-1]]
    return indices, distances
