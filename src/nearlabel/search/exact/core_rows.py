"""Rows in the form in which the compiled core measures canonical distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import kernel_array
from nearlabel.search.exact.row_arithmetic import (
    as_float,
    chunks,
    float_kind,
    typical_length,
    unit_scales,
)

METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")
_FEW = 2**18  # differences of features; measured
_SPARSE_COST = 8  # a stored feature takes as long as this many dense ones


def core_rows(vectors: Any, metric: str, copied_bytes: float = np.inf) -> Any:
    """Rows in the form in which the core measures canonical distances.

    None if their type or layout requires a copy that takes too much memory.
    """
    if not sparse.issparse(vectors):
        step, feature = vectors.strides
        is_plain = (  # floats in C order: read without a copy
            vectors.dtype in (np.float32, np.float64)
            and vectors.dtype.isnative
            and feature == vectors.itemsize
            and step % vectors.itemsize == 0
            and vectors.flags.aligned
        )
        if not is_plain:
            if 8 * vectors.size > copied_bytes:
                return None
            vectors = kernel_array(vectors, float_kind(vectors))
    exponents, lengths = np.empty(0, np.int32), np.empty(0)
    if metric == "cosine":
        parts = [unit_scales(rows) for _, rows in chunks(vectors, typical_length(vectors))]
        exponents, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not sparse.issparse(vectors):
        return engine.core().dense_rows(np.asarray(vectors), metric, exponents, lengths)
    return engine.core().sparse_rows(
        vectors.indptr.astype(np.int64, copy=False),
        vectors.indices.astype(np.int32, copy=False),
        as_float(vectors).data,
        vectors.shape[1],
        metric,
        exponents,
        lengths,
    )


def are_few(vectors: Any, count: int) -> bool:
    """Whether measuring all distances of `count` queries is as fast as preparing bounds."""
    n, d = vectors.shape
    terms = _SPARSE_COST * (1 + vectors.nnz // n) if sparse.issparse(vectors) else d
    return bool(count * n * terms <= _FEW)
