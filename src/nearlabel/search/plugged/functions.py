"""A function as a search: ``search(X, queries, k) -> (indices, distances)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nearlabel.search.exact.distances import Metric
from nearlabel.search.plugged.foreign_answers import ROWS_AT_ONCE, Answer, Answers, PluggedIndex


class FunctionIndex(PluggedIndex):
    """Base rows searched by a user's function, whose distances are kept as they are.

    So it can use its own metric, a learned one for instance. The `metric` of the estimator is then
    only used by `retrieve`.

    It is called as ``function(X, queries, k)``, and returns the indices and distances of k rows of
    X near each query, two arrays of shape (m, k) in any order. Queries come in blocks of at most
    4,096 rows. None means the rows of X themselves, all at once; k is then one more than needed,
    since a row may find itself. It may also be left out.
    """

    def __init__(self, vectors: Any, metric: Metric, source: Callable[..., Any]) -> None:
        named = getattr(source, "__qualname__", type(source).__name__)
        super().__init__(vectors, metric, source, named)

    def _answers(self, rows: Any, k: int, alone: bool, n_jobs: int) -> Answers:  # noqa: ARG002
        n = rows.shape[0]
        if alone:
            indices, distances = self._call(None, n, k, k + 1)
        for start in range(0, n, ROWS_AT_ONCE):
            place = slice(start, start + ROWS_AT_ONCE)
            if alone:
                yield indices[place], distances[place]
            else:
                some = rows[place]
                yield self._call(some, some.shape[0], k, k)

    def _call(self, queries: Any, m: int, needed: int, k: int) -> Answer:
        """The result of the function for m rows, in the expected shape."""
        answer = self._source(self._vectors, queries, k)
        try:
            indices, distances = map(np.asarray, answer)
        except (TypeError, ValueError):
            raise TypeError(
                f"search={self._name} must return two arrays, (indices, distances); "
                f"got {type(answer).__name__}"
            ) from None
        self._check_shape((indices, distances), m, k, needed)
        return indices, distances
