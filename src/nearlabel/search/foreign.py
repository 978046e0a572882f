"""External searches as ``search=``: an index of the user's own, a transformer, a function.

Their results are validated, sorted and completed, and their recall is measured. A result has base
rows and distances for a block of queries, in any order. It may contain a row as its own neighbor,
which is removed by its number, and -1 where nothing was found. No package is imported here: what is
given is recognized by its attributes. See `faiss_index.py` for faiss.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.common.progress import Progress
from nearlabel.graph import ROWS_MEASURED, NeighborGraph, Recall, recall_of, sample_rows
from nearlabel.search.exact.distances import SLOW, SPACES, Metric, space
from nearlabel.search.exact.index import exact_index, matching
from nearlabel.search.interfaces import Index, Search
from nearlabel.search.restricted import first_visible

ROWS_AT_ONCE = 4096  # queries per block: interrupts and progress are handled in between
_WORTH_MEASURING = 8 * ROWS_MEASURED  # for fewer queries, recall would cost more than the search

Answer = tuple[Array, Array]  # base rows, -1 for none, and distances: both (m, at least k)
Answers = Generator[Answer, None, None]


class UserIndex(Index):
    """What the `build` of a user's search returned, of any class; see `Search`."""

    def __init__(self, vectors: Matrix, metric: Metric, search: Search, index: Any) -> None:
        self.vectors, self._metric, self._search, self._index = vectors, metric, search, index

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,  # noqa: ARG002
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """The result of the user's index, which is trusted."""
        how = {} if progress is None else {"progress": progress}
        graph: NeighborGraph = self._index.graph(k, queries, n_jobs=n_jobs, **how)
        return graph

    def renewal(self, added: int, removed: int) -> Callable[[Matrix, Array], Index] | None:
        """Build anew with every change: only the user's search knows its distances."""

        def build(vectors: Matrix, numbers: Array) -> Index:  # noqa: ARG001
            index = self._search.build(vectors, self._metric)
            return UserIndex(vectors, self._metric, self._search, index)

        return build if added or removed else None


class ForeignIndex(Index):
    """Base rows searched by an object that returns neighbors of blocks of rows.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
    metric : str or callable
    source : object
        The object that searches.
    """

    # A search with canonical distances by the metric is completed where it finds too few neighbors.
    has_own_distances = True

    def __init__(self, vectors: Matrix, metric: Metric, source: Any) -> None:
        self.vectors, self._metric, self._source = vectors, metric, source
        self._name = getattr(source, "__qualname__", type(source).__name__)  # in messages
        self._space = space(vectors, metric)

    @staticmethod
    @abstractmethod
    def recognizes(search: object) -> bool:
        """Whether an object is a search of this kind."""

    @abstractmethod
    def _answers(self, rows: Matrix, k: int, alone: bool, n_jobs: int) -> Answers:
        """Results for blocks of at most `ROWS_AT_ONCE` rows, one after another.

        The rows are queries or, if `alone`, the base rows themselves.
        """

    def renewal(self, added: int, removed: int) -> Callable[[Matrix, Array], Index] | None:
        """Index all rows anew with every change if only this search knows its distances."""
        if not (self.has_own_distances and (added or removed)):
            return None
        return lambda vectors, _: type(self)(vectors, self._metric, self._source)

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,  # noqa: ARG002
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find k near base rows of each query.

        Without queries, of each base row, excluding itself.
        """
        alone = queries is None
        rows = self.vectors if alone else matching(queries, self.vectors)
        n, done, warned = rows.shape[0], 0, False
        indices, distances = np.empty((0, k), np.int64), np.empty((0, k))
        with closing(self._answers(rows, k, alone, n_jobs)) as answers:
            for answer in answers:
                numbers = np.arange(done, min(done + ROWS_AT_ONCE, n))
                near, far = self._checked(answer, numbers, k, alone)
                if not done:  # the first answer determines the types
                    indices, distances = (np.empty((n, k), part.dtype) for part in (near, far))
                order = np.lexsort((near, far), axis=1)
                near, far = (np.take_along_axis(part, order, axis=1) for part in (near, far))
                is_wanted = near != -1
                if alone:
                    is_wanted &= near != numbers[:, None]
                near, far, short = first_visible(near, far, is_wanted, k)
                if len(short) and self.has_own_distances:
                    raise ValueError(
                        f"search={self._name} found fewer than k={k} neighbors of row "
                        f"{numbers[short[0]]}{' other than itself' if alone else ''}"
                    )
                if len(short):
                    again = self._exactly(rows, numbers[short], k, alone, n_jobs)
                    near[short], far[short] = again.indices, again.distances
                # A few incomplete rows do not take long.
                if not warned and len(short) > 1 / 100 * len(near):
                    from sklearn.exceptions import EfficiencyWarning

                    warnings.warn(
                        f"search={self._name} found fewer than k={k} neighbors of {len(short)} "
                        f"of {len(near)} rows; these rows are searched exactly, which is slow: "
                        "increase nprobe or efSearch",
                        EfficiencyWarning,
                        stacklevel=2,
                    )
                    warned = True
                indices[numbers], distances[numbers] = near, far
                done += len(numbers)
                if progress is not None:
                    progress(done, n)
        try:
            graph = NeighborGraph(indices, distances, self.vectors.shape[0])
        except ValueError as error:
            raise ValueError(f"search={self._name}: {error}") from None
        graph.recall = self._recall(graph, rows, alone, n_jobs)
        return graph

    def _checked(self, answer: Answer, numbers: Array, k: int, alone: bool) -> Answer:
        """A result for some rows, of enough integers, none out of range, and real numbers."""
        (indices, distances), m, n_base = answer, len(numbers), self.vectors.shape[0]
        right = indices.ndim == 2 and len(indices) == m and indices.shape[1] >= k
        if not right or indices.shape != distances.shape:
            raise ValueError(
                f"search={self._name} must return indices and distances of shape "
                f"({m}, {k + alone}); got {indices.shape} and {distances.shape}"
            )
        if indices.dtype.kind not in "iu" or distances.dtype.kind not in "biuf":
            raise TypeError(
                f"search={self._name} must return integer indices and real "
                f"distances; got {indices.dtype} and {distances.dtype}"
            )
        is_outside = ((indices < -1) | (indices >= n_base)).any(axis=1)
        if is_outside.any():
            raise ValueError(
                f"search={self._name} returned an index outside 0 to {n_base - 1} for row "
                f"{numbers[is_outside.argmax()]}"
            )
        return indices.astype(np.int64, copy=False), distances

    @cached_property
    def _exact(self) -> Index:
        """The same rows, searched exactly."""
        return exact_index(self.vectors, self._metric)

    def _exactly(
        self, rows: Matrix, numbers: Array, k: int, alone: bool, n_jobs: int
    ) -> NeighborGraph:
        """The true neighbors of some rows."""
        if alone:
            return self._exact.left_out(numbers, k, n_jobs=n_jobs)
        return self._exact.graph(k, rows[numbers], n_jobs=n_jobs)

    def _recall(
        self, found: NeighborGraph, rows: Matrix, alone: bool, n_jobs: int
    ) -> Recall | None:
        """The share of the true neighbors that was found; None if not measured."""
        known = isinstance(self._metric, str) and self._metric in SPACES
        if len(found) <= _WORTH_MEASURING or not known or self._metric in SLOW:
            return None
        sample = sample_rows(len(found), seed=0)
        part = found.take(sample)
        row = np.repeat(np.arange(len(sample)), found.k)
        distances: Floats = self._space.distances(rows[sample], row, part.indices.ravel())
        distances = distances.reshape(part.indices.shape)
        # Distances that are those of the metric agree with them in most places, up to rounding in
        # float32: near zero, a distance computed from a product is mostly rounding error.
        if np.mean(np.abs(part.distances - distances) <= 1e-3 * distances) <= 0.5:
            return None
        recall = recall_of(distances, self._exactly(rows, sample, found.k, alone, n_jobs))
        # So few are found only in other rows.
        if recall.value < 0.1:
            warnings.warn(
                f"search={self._name} found only {100 * recall.value:.1f} % of the nearest rows; "
                "are its rows those of X, in their order, and is its metric that of the model?",
                UserWarning,
                stacklevel=3,
            )
        return recall


class FunctionIndex(ForeignIndex):
    """Base rows searched by a user's function, whose distances are kept as they are.

    So it can use its own metric, a learned one for instance. The `metric` of the estimator is then
    only used by `retrieve`.

    It is called as ``function(X, queries, k)``, and returns the indices and distances of k rows of
    X near each query, two arrays of shape (m, k) in any order. Queries come in blocks of at most
    4,096 rows. None means the rows of X themselves, all at once; k is then one more than needed,
    since a row may find itself. It may also be left out.
    """

    @staticmethod
    def recognizes(search: object) -> bool:
        """Whether an object is called to search."""
        return callable(search)

    def _answers(self, rows: Matrix, k: int, alone: bool, n_jobs: int) -> Answers:  # noqa: ARG002
        step = rows.shape[0] if alone else ROWS_AT_ONCE
        for start in range(0, rows.shape[0], step):
            queries = None if alone else rows[start : start + step]
            answer = self._source(self.vectors, queries, k + alone)
            try:
                indices, distances = map(np.asarray, answer)
            except (TypeError, ValueError):
                raise TypeError(
                    f"search={self._name} must return two arrays, (indices, distances); "
                    f"got {type(answer).__name__}"
                ) from None
            for first in range(0, step, ROWS_AT_ONCE):
                part = slice(first, first + ROWS_AT_ONCE)
                yield indices[part], distances[part]


class TransformerIndex(ForeignIndex):
    """Base rows searched by a transformer, whose distances are kept as they are.

    So it uses its own metric, whatever it is; the `metric` of the estimator is then only used by
    `retrieve`. It also uses its own `n_jobs`.

    For example scikit-learn's `KNeighborsTransformer`, pynndescent's `PyNNDescentTransformer`, or a
    pipeline that ends in one; a copy is fitted at the first search. `fit_transform` returns the
    neighbors of the rows among themselves, possibly including the row itself, and `transform` those
    of queries: sparse matrices of distances.
    """

    def __init__(self, vectors: Matrix, metric: Metric, source: Any) -> None:
        super().__init__(vectors, metric, _copy(source))
        if getattr(source, "mode", "distance") != "distance":
            raise ValueError(
                f"search={self._name} must return distances: set its mode to 'distance'; "
                f"got {source.mode!r}"
            )
        self._fitted: Any = None

    @staticmethod
    def recognizes(search: object) -> bool:
        """Whether an object has `fit` and `transform`."""
        return all(callable(getattr(search, name, None)) for name in ("fit", "transform"))

    def _answers(self, rows: Matrix, k: int, alone: bool, n_jobs: int) -> Answers:  # noqa: ARG002
        reach = getattr(self._source, "n_neighbors", None)
        if isinstance(reach, int) and reach < k:
            raise ValueError(
                f"search={self._name} has n_neighbors={reach}; {k} neighbors are needed (for "
                "changes of a model, one more than its n_neighbors, since a row finds itself)"
            )
        fitted, whole = self._fitted, None
        if alone or fitted is None:
            fitted = _copy(self._source)
            if alone and hasattr(fitted, "fit_transform"):
                whole = fitted.fit_transform(rows)
            else:
                fitted.fit(self.vectors)
            self._fitted = fitted
        step = rows.shape[0] if alone else ROWS_AT_ONCE
        for start in range(0, rows.shape[0], step):
            queries = rows[start : start + step]
            graph = fitted.transform(queries) if whole is None else whole
            shape = (queries.shape[0], self.vectors.shape[0])
            if not sparse.issparse(graph) or graph.shape != shape:
                got = f"a {type(graph).__name__} of shape {np.shape(graph)}"
                raise TypeError(
                    f"search={self._name} must return a sparse matrix of shape {shape}; got {got}"
                )
            graph = sparse.csr_array(graph)
            for first in range(0, step, ROWS_AT_ONCE):
                yield _as_arrays(graph[first : first + ROWS_AT_ONCE], k)


def _copy(transformer: Any) -> Any:
    """An unfitted copy of the transformer, so that the user's own is not modified."""
    from sklearn.base import clone

    return clone(transformer, safe=False)


def _as_arrays(graph: Csr, k: int) -> Answer:
    """The stored entries of a sparse graph, padded with -1 and infinity."""
    lengths = np.diff(graph.indptr)
    stored = np.arange(max(k, int(lengths.max()))) < lengths[:, None]
    indices = np.full(stored.shape, -1, graph.indices.dtype)
    distances = np.full(stored.shape, np.inf, np.result_type(graph.dtype, np.float32))
    indices[stored], distances[stored] = graph.indices, graph.data
    return indices, distances
