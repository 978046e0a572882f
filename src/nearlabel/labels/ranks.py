"""Ranks of labels by their scores, counted without sorting rows x labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, kernel_array, row_numbers
from nearlabel.common.validation import check_choice

Ties = Literal["max", "min", "higher", "lower"]


@dataclass(frozen=True)
class Places:
    """Positions of p labels, given by row and column, in the order of the scores of their rows."""

    above: Array  # (p,): labels of the row with a larger score
    tied_lower: Array  # (p,): labels with the same score in a lower column
    tied_higher: Array  # (p,): and in a higher one

    def ranks(self, ties: Ties) -> Array:
        """Ranks from 1; tied labels get the worst or the best rank, or are ordered by column."""
        check_choice(ties, "ties", get_args(Ties))
        ranks: Array = self.above + 1
        if ties in ("max", "lower"):
            ranks += self.tied_lower
        if ties in ("max", "higher"):
            ranks += self.tied_higher
        return ranks


def standing(
    pattern: Csr, values: Floats, row: Array, score: Floats, label: Array
) -> tuple[Array, Array, Array]:
    """The positions of labels with given scores among the `values` at `pattern` in the same row.

    Numbers of larger values, and of equal ones in lower and in higher columns.
    """
    # Ranks instead of values, so that row, value and column fit into one integer key.
    distinct, code = np.unique(np.concatenate([values, score]), return_inverse=True)
    v, q = len(distinct), pattern.shape[1]
    keys = np.sort((row_numbers(pattern) * v + code[: len(values)]) * q + pattern.indices)
    base = (row * v + code[len(values) :]) * q
    first, end = np.searchsorted(keys, base), np.searchsorted(keys, base + q)
    before = np.searchsorted(keys, base + label, side="left")
    upto = np.searchsorted(keys, base + label, side="right")
    return pattern.indptr[row + 1] - end, before - first, end - upto


def at_or_above(ranks: Array, matrix: Csr) -> Array:
    """How many entries of the same row of a CSR matrix have the rank of each or a better one."""
    core = engine.core()
    if core is not None:
        counts = np.empty(len(ranks), np.int64)
        indptr = kernel_array(matrix.indptr, np.int64)
        core.at_or_above(indptr, kernel_array(ranks, np.int64), counts)
        return counts
    row = row_numbers(matrix)
    keys = row * (matrix.shape[1] + 1) + ranks
    return np.asarray(np.searchsorted(np.sort(keys), keys, side="right") - matrix.indptr[row])
