"""A faiss index of any kind as a search; faiss itself is not imported."""

from __future__ import annotations

import sys
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.common.threads import run_blocks
from nearlabel.graph import sample_rows
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.row_arithmetic import chunks, unit_rows
from nearlabel.search.foreign import ROWS_AT_ONCE, Answers, ForeignIndex

# faiss's constants for our metrics, and their names.
_METRICS = {"euclidean": 1, "sqeuclidean": 1, "cosine": 0, "manhattan": 2}
_NAMES = {0: "METRIC_INNER_PRODUCT", 1: "METRIC_L2", 2: "METRIC_L1"}
_MORE = 8  # neighbors requested beyond k: float32 may have misplaced some around the k-th
# Squared errors of these rows, relative to the squared distances of unrelated rows.
_EQUAL, _NEARER = 1e-6, 0.5


class FaissIndex(ForeignIndex):
    """Base rows searched by a faiss index; distances are recomputed in float64.

    An empty index is left as it is: at the first search a copy is trained, if necessary, on a
    random sample of the rows, and filled with them. A filled one must contain the rows of X in
    their order; for cosine, rows of length one.
    """

    has_own_distances = False

    @staticmethod
    def recognizes(search: object) -> bool:
        """Whether an object has the attributes of faiss's indexes."""
        names = ("d", "ntotal", "is_trained", "metric_type", "train", "add", "search")
        return all(hasattr(search, name) for name in names)

    def __init__(self, vectors: Matrix, metric: Metric, source: Any) -> None:
        super().__init__(vectors, metric, source)
        n, d = vectors.shape
        if any(base.__name__ == "IndexBinary" for base in type(source).__mro__):
            raise TypeError(
                f"search={self._name} is a binary index; an index for vectors is required"
            )
        if sparse.issparse(vectors):
            raise TypeError(f"search={self._name} only supports dense rows; X is sparse")
        if source.d != d:
            raise ValueError(f"search={self._name} has {source.d} features; X has {d}")
        if source.metric_type != _METRICS.get(str(metric)):
            ours = [repr(name) for name, number in _METRICS.items() if number == source.metric_type]
            name_of_metric = _NAMES.get(source.metric_type, f"metric {source.metric_type}")
            raise ValueError(
                f"metric={metric!r} does not match search={self._name}, which has faiss's "
                f"{name_of_metric}: this matches {' and '.join(ours) or 'no metric of nearlabel'}"
            )
        if source.ntotal not in (0, n):
            raise ValueError(
                f"search={self._name} has {source.ntotal} rows; it must be empty, or contain the "
                f"{n} rows of X in their order"
            )
        self._source = source if source.ntotal else self._copy(source)
        if source.ntotal:
            self._check_rows_held()

    def _copy(self, index: Any) -> Any:
        """An empty index like this one.

        faiss has two ways to copy, and each supports kinds that the other does not.
        """
        package = sys.modules.get(type(index).__module__.partition(".")[0])
        for copy in (getattr(package, "clone_index", deepcopy), deepcopy):
            try:
                return copy(index)
            except (RuntimeError, TypeError, AttributeError):
                continue
        raise ValueError(
            f"search={self._name} cannot be copied, and must not be modified: "
            "add the rows of X to it yourself"
        )

    def _check_rows_held(self) -> None:
        """Refuse an index with other rows, as far as its rows can be reconstructed."""
        # Some rows suffice to recognize others.
        sample = sample_rows(self.vectors.shape[0], seed=0, rows=64)
        try:
            held = np.array([self._source.reconstruct(int(row)) for row in sample], np.float64)
        except (RuntimeError, AttributeError):  # many kinds cannot, or not without a map
            return
        rows = self._float32(self.vectors[sample])
        others = np.roll(rows, len(rows) // 2, axis=0)
        # Most kinds store an approximation of the rows, far from other rows; a flat one the rows.
        limit = _EQUAL if "Flat" in self._name else _NEARER
        if np.mean((held - rows) ** 2) > limit * np.mean((held - others) ** 2):
            raise ValueError(
                f"search={self._name} does not contain the rows of X in their order"
                f"{', each of length one' if self._metric == 'cosine' else ''}"
            )

    def _answers(self, rows: Matrix, k: int, alone: bool, n_jobs: int) -> Answers:
        n = rows.shape[0]
        wanted = min(k + alone + _MORE, self.vectors.shape[0])
        with self._openmp.limit(limits=n_jobs):
            index = self._filled_index
            for start in range(0, n, ROWS_AT_ONCE):
                block = rows[start : start + ROWS_AT_ONCE]
                _, indices = index.search(self._float32(block), wanted)
                yield indices, self._distances(block, indices, n_jobs)

    @cached_property
    def _openmp(self) -> Any:
        """Sets the number of threads of OpenMP only, since that of BLAS is global.

        Finding the library takes longer than the search of a query.
        """
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController().select(user_api="openmp")

    def __getstate__(self) -> dict[str, object]:  # belongs to the process
        return {name: value for name, value in vars(self).items() if name != "_openmp"}

    @cached_property
    def _filled_index(self) -> Any:
        """The index with all rows."""
        if self._source.ntotal:
            return self._source
        index = self._copy(self._source)
        n, d = self.vectors.shape
        try:
            if not index.is_trained:
                sample = sample_rows(n, seed=0, rows=max(1, KEPT_BYTES // (4 * d)))
                index.train(self._float32(self.vectors[sample]))
            for place, rows in chunks(self.vectors, d):
                if hasattr(index, "id_map"):  # its add() cannot be used
                    index.add_with_ids(self._float32(rows), np.arange(place.start, place.stop))
                else:
                    index.add(self._float32(rows))
        except RuntimeError as error:
            reason = str(error).rpartition("failed: ")[2]
            raise ValueError(
                f"search={self._name} cannot be trained on the rows of X or filled with them: "
                f"{reason}"
            ) from error
        return index

    def _float32(self, rows: Array) -> Array:
        """Rows in faiss's format, of length one for cosine."""
        rows = unit_rows(rows) if self._metric == "cosine" else rows
        with np.errstate(over="ignore"):
            block = np.ascontiguousarray(rows, np.float32)
        if not np.isfinite(block).all():
            raise ValueError(
                f"search={self._name} computes in float32, for which a number is too large; "
                "rescale X"
            )
        return block

    def _distances(self, rows: Matrix, indices: Array, n_jobs: int) -> Floats:
        """Canonical distances of what was found; infinite for -1 and invalid rows."""
        distances = np.full(indices.shape, np.inf)

        def measure(block: slice) -> None:
            part = indices[block]
            row, column = np.nonzero((part >= 0) & (part < self.vectors.shape[0]))
            measured = self._space.distances(rows[block], row, part[row, column])
            distances[block][row, column] = measured

        m, width = indices.shape
        # Pairs of rows in float64 fit into the cache of a core.
        step = max(1, 2**17 // (width * rows.shape[1]))
        run_blocks(measure, m, min(step, -(-m // n_jobs)), n_jobs, None)
        return distances
