"""A transformer in the style of scikit-learn's `KNeighborsTransformer` as a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Csr
from nearlabel.search.exact.distances import Metric
from nearlabel.search.plugged.foreign_answers import ROWS_AT_ONCE, Answer, Answers, PluggedIndex


def is_transformer(search: Any) -> bool:
    """Whether an object can be fitted to rows and transforms others."""
    return callable(getattr(search, "fit", None)) and callable(getattr(search, "transform", None))


class TransformerIndex(PluggedIndex):
    """Base rows that a transformer searches; its distances stay as they are.

    So its metric counts, whatever it is. The `metric` of the estimator then only says how far apart
    the items are that `retrieve` finds. Its threads are those of its own `n_jobs`.

    It is one as scikit-learn's `KNeighborsTransformer` or pynndescent's `PyNNDescentTransformer`,
    or a pipeline that ends in one; a copy is fitted at the first search. `fit_transform` gives the
    neighbors of the rows among themselves, in which a row may hold itself, and `transform` those
    of queries: sparse matrices of distances.
    """

    def __init__(self, vectors: Any, metric: Metric, source: Any) -> None:
        super().__init__(vectors, metric, _copy(source))
        if getattr(source, "mode", "distance") != "distance":
            raise ValueError(
                f"search={self._name} must give distances: set its mode to 'distance', "
                f"which is {source.mode!r}"
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
        """Refuse more neighbors than the transformer says that it gives, before it is fitted."""
        reach = getattr(self._source, "n_neighbors", None)
        if isinstance(reach, int) and reach < k:
            raise ValueError(
                f"search={self._name} has n_neighbors={reach}; {k} neighbors are needed of it (for "
                "changes of a model one more than its n_neighbors, since a row finds itself, too)"
            )

    def _checked_graph(self, graph: Any, n: int) -> Csr:
        shape = (n, self._vectors.shape[0])
        if not sparse.issparse(graph) or graph.shape != shape:
            got = f"a {type(graph).__name__} of shape {np.shape(graph)}"
            raise TypeError(f"search={self._name} must give a sparse matrix of {shape}; got {got}")
        return sparse.csr_array(graph)


def _copy(transformer: Any) -> Any:
    """The transformer as it was before any fit, so that the user's own stays as it is."""
    from sklearn.base import clone

    return clone(transformer, safe=False)


def _as_arrays(graph: Csr, run: slice, k: int) -> Answer:
    """What some rows of a sparse graph store, side by side; -1 and infinity where one has less."""
    ends = graph.indptr[run.start : run.stop + 1]
    lengths = np.diff(ends)
    width = max(k, int(lengths.max()))
    stored = np.arange(width) < lengths[:, None]
    indices = np.full(stored.shape, -1, graph.indices.dtype)
    distances = np.full(stored.shape, np.inf, np.result_type(graph.dtype, np.float32))
    indices[stored] = graph.indices[ends[0] : ends[-1]]
    distances[stored] = graph.data[ends[0] : ends[-1]]
    return indices, distances
