"""Rows as the compiled core reads them, to measure canonical distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, kernel_array
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.row_arithmetic import (
    as_float,
    chunks,
    float_kind,
    typical_length,
    unit_scales,
)

METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")


def can_measure(vectors: Any, metric: Metric) -> bool:
    """Whether the core reads these rows as they stand, or as a copy that is not too large."""
    if engine.core() is None or metric not in METRICS or max(vectors.shape) >= 2**31:
        return False
    return bool(sparse.issparse(vectors) or _is_plain(vectors) or 8 * vectors.size <= KEPT_BYTES)


def core_rows(vectors: Any, metric: str) -> Any:
    """Rows as the core measures canonical distances of them."""
    exponents, lengths = np.empty(0, np.int32), np.empty(0)
    if metric == "cosine":
        parts = [unit_scales(rows) for _, rows in chunks(vectors, typical_length(vectors))]
        exponents, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    if sparse.issparse(vectors):
        return engine.core().sparse_rows(
            vectors.indptr.astype(np.int64, copy=False),
            vectors.indices.astype(np.int32, copy=False),
            as_float(vectors).data,
            vectors.shape[1],
            metric,
            exponents,
            lengths,
        )
    if not _is_plain(vectors):
        vectors = kernel_array(vectors, float_kind(vectors))
    return engine.core().dense_rows(np.asarray(vectors), metric, exponents, lengths)


def _is_plain(values: Array) -> bool:
    """Whether the core reads this array in its place: floats, those of a row side by side."""
    step, feature = values.strides
    is_known = values.dtype in (np.float32, np.float64) and values.dtype.isnative
    return bool(
        is_known
        and feature == values.itemsize
        and step % values.itemsize == 0
        and values.flags.aligned
    )
