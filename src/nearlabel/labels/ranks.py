"""Where labels stand in an order of scores, counted without sorting rows x labels."""

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
    """Where p given labels, by row and column, stand in the order of the scores of their rows."""

    above: Array  # (p,): labels of the row with a greater score
    tied_lower: Array  # (p,): labels with the same score in a lower column
    tied_higher: Array  # (p,): and in a higher one

    def ranks(self, ties: Ties) -> Array:
        """Ranks from 1; of tied labels all the worst or best rank, or one column first."""
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
    """Where labels with given scores stand among the `values` at `pattern` in the same row.

    Numbers of greater values, and of equal ones in a lower and in a higher column.
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
