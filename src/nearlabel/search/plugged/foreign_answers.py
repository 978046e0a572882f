"""Results of an external search: validated, sorted, completed, and their recall measured.

A result has base rows and distances for a block of queries, in any order. It may contain a row as
its own neighbor, which is removed by its number, and -1 where nothing was found.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing
from typing import Any, ClassVar, Self

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph, Recall, index_type
from nearlabel.search.approximate.recall import ROWS_MEASURED, recall_of, sample_rows
from nearlabel.search.exact.distances import SLOW, SPACES, Metric, space
from nearlabel.search.exact.index import ExactSearch, matching
from nearlabel.search.interfaces import Index

ROWS_AT_ONCE = 4096  # queries per block: interrupts and progress are handled in between
_WORTH_MEASURING = 8 * ROWS_MEASURED  # for fewer queries, recall would cost more than the search
_MANY = 1 / 100  # share of incomplete rows above which a warning is issued
_SUSPICIOUS = 0.1  # below this recall the search probably has other rows
_AGREE = 1e-3  # relative difference of distances due to rounding in float32

Answer = tuple[Array, Array]  # base rows, -1 for none, and distances: both (m, at least k)
Answers = Generator[Answer, None, None]


class PluggedIndex(ABC):
    """Base rows searched by external code.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
    metric : str or callable
    source : object
        The object that searches.
    name : str, optional
        The name of the search in messages; by default the class of the source.
    """

    # Whether `_answers` returns canonical distances by the metric; a search that found too few
    # neighbors is then completed.
    _by_metric: ClassVar[bool] = False

    def __init__(self, vectors: Any, metric: Metric, source: Any, name: str | None = None) -> None:
        self._vectors, self._metric, self._source = vectors, metric, source
        self._name = type(source).__name__ if name is None else name
        self._space = space(vectors, metric)
        self._exact: Index | None = None

    @property
    def has_own_distances(self) -> bool:
        """Whether only this search knows its distances."""
        return not self._by_metric

    def over(self, vectors: Any) -> Self:
        """Other base rows, searched in the same way."""
        return type(self)(vectors, self._metric, self._source)

    @abstractmethod
    def _answers(self, rows: Any, k: int, alone: bool, n_jobs: int) -> Answers:
        """Results for blocks of at most `ROWS_AT_ONCE` rows, one after another.

        The rows are queries or, if `alone`, the base rows themselves.
        """

    def graph(
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """Find k near base rows of each query.

        Without queries, of each base row, excluding itself.
        """
        alone = queries is None
        rows = self._vectors if alone else matching(queries, self._vectors)
        n, n_base = rows.shape[0], self._vectors.shape[0]
        indices = np.empty((n, k), index_type(n_base))
        distances = np.empty((0, k))
        done, warned = 0, False
        with closing(self._answers(rows, k, alone, n_jobs)) as answers:
            for answer in answers:
                near, far, missing = self._whole(answer, rows, done, k, alone, n_jobs)
                if not done:  # the first answer determines whether distances are float32
                    distances = np.empty((n, k), far.dtype)
                place = slice(done, done + len(near))
                indices[place], distances[place] = near, far
                done = place.stop
                if not warned and missing > _MANY * len(near):
                    self._warn_of_missing(missing, len(near), k)
                    warned = True
                if progress is not None:
                    progress(done, n)
        found = NeighborGraph.unchecked(indices, distances, n_base)
        found.recall = self._recall(found, rows, alone, n_jobs)
        return found

    def _whole(
        self, answer: Answer, rows: Any, first: int, k: int, alone: bool, n_jobs: int
    ) -> tuple[Array, Array, int]:
        """A result for the rows from `first` on, as in a graph; how many were incomplete."""
        near, far = self._checked(answer, first)
        itself = np.arange(first, first + len(near)) if alone else None
        near, far, missing = _nearest(near, far, k, itself)
        if len(missing) and not self._by_metric:
            raise ValueError(
                f"search={self._name} found fewer than k={k} neighbors of row {first + missing[0]}"
                f"{' other than itself' if alone else ''}"
            )
        if len(missing):
            some = first + missing
            again = self._exactly(rows, some, k, alone, n_jobs)
            near[missing], far[missing] = again.indices, again.distances
        ordered = np.sort(near, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if twice.any():
            raise ValueError(
                f"search={self._name} returned a neighbor twice for row {first + twice.argmax()}"
            )
        return near, far, len(missing)

    def _exactly(self, rows: Any, some: Array, k: int, alone: bool, n_jobs: int) -> NeighborGraph:
        """The true neighbors of some rows."""
        if self._exact is None:
            self._exact = ExactSearch().build(self._vectors, self._metric)
        found = self._exact.graph(k + alone, rows[some], n_jobs=n_jobs)
        return found.without(some) if alone else found

    def _check_shape(self, answer: Answer, m: int, k: int, needed: int) -> None:
        """Refuse a result without enough neighbors for each of m rows."""
        indices, distances = answer
        right = indices.ndim == 2 and len(indices) == m and indices.shape[1] >= needed
        if not right or indices.shape != distances.shape:
            raise ValueError(
                f"search={self._name} must return indices and distances of shape ({m}, {k}); "
                f"got {indices.shape} and {distances.shape}"
            )

    def _checked(self, answer: Answer, first: int) -> Answer:
        """A result of integers and real numbers, none of them out of range."""
        indices, distances = answer
        if indices.dtype.kind not in "iu" or distances.dtype.kind not in "biuf":
            raise TypeError(
                f"search={self._name} must return integer indices and real "
                f"distances; got {indices.dtype} and {distances.dtype}"
            )
        if distances.dtype not in (np.float32, np.float64):
            distances = distances.astype(np.float64)
        n_base = self._vectors.shape[0]
        for wrong, what in (
            ((indices < -1) | (indices >= n_base), f"an index outside 0 to {n_base - 1}"),
            (
                (indices >= 0) & ~((distances >= 0) & np.isfinite(distances)),
                "a distance that is negative or not finite",
            ),
        ):
            bad = wrong.any(axis=1)
            if bad.any():
                raise ValueError(
                    f"search={self._name} returned {what} for row {first + bad.argmax()}"
                )
        return indices.astype(np.int64, copy=False), distances

    def _warn_of_missing(self, missing: int, of: int, k: int) -> None:
        from sklearn.exceptions import EfficiencyWarning

        warnings.warn(
            f"search={self._name} found fewer than k={k} neighbors of {missing} of {of} rows; "
            "these rows are searched exactly, which is slow: increase nprobe or efSearch",
            EfficiencyWarning,
            stacklevel=3,
        )

    def _recall(self, found: NeighborGraph, rows: Any, alone: bool, n_jobs: int) -> Recall | None:
        """The share of the true neighbors that was found; None if not measured."""
        known = isinstance(self._metric, str) and self._metric in SPACES
        if len(found) <= _WORTH_MEASURING or not known or self._metric in SLOW:
            return None
        some = sample_rows(len(found), seed=0)
        part = found.take(some)
        distances: Floats = part.distances
        if not self._by_metric:
            row = np.repeat(np.arange(len(some)), found.k)
            distances = self._space.distances(rows[some], row, part.indices.ravel())
            distances = distances.reshape(part.indices.shape)
            if not _agree(part.distances, distances):
                return None
        recall = recall_of(distances, self._exactly(rows, some, found.k, alone, n_jobs))
        if recall.value < _SUSPICIOUS:
            warnings.warn(
                f"search={self._name} found only {100 * recall.value:.1f} % of the nearest rows; "
                "are its rows those of X, in their order, and is its metric that of the model?",
                UserWarning,
                stacklevel=3,
            )
        return recall


def _nearest(
    indices: Array, distances: Array, k: int, itself: Array | None
) -> tuple[Array, Array, Array]:
    """The k nearest that were found, by (distance, index), without the row itself.

    Returns
    -------
    indices, distances : ndarray of shape (m, k)
    missing : ndarray of int
        Rows for which fewer were found; their entries are not to be used.
    """
    order = np.lexsort((indices, distances), axis=1)
    indices = np.take_along_axis(indices, order, axis=1)
    distances = np.take_along_axis(distances, order, axis=1)
    kept = indices >= 0
    if itself is not None:
        kept &= indices != itself[:, None]
    place = np.cumsum(kept, axis=1)
    missing = np.flatnonzero(place[:, -1] < k)
    kept &= place <= k
    kept[missing] = np.arange(kept.shape[1]) < k
    shape = (len(indices), k)
    return indices[kept].reshape(shape), distances[kept].reshape(shape), missing


def _agree(given: Array, canonical: Floats) -> bool:
    """Whether distances agree with the metric, up to rounding, in most places.

    Not in all: near zero, a distance computed from a product is mostly rounding error.
    """
    return bool(np.mean(np.abs(given - canonical) <= _AGREE * canonical) > 0.5)
