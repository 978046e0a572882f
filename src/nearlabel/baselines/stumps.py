"""What both methods of boosting share: weights of pairs of a row and a label, and the best stump.

Weights have the shape (n, 2q): a row that carries label l has its weight in column l, one that does
not in column q + l, and 0 in the other. The sums of a block of rows are thus W+ of all labels,
followed by W-.

Features are lists of rows in the order of their values, sorted once for all rounds of boosting.
Where most rows are zero, as in texts, these are left out of the list and stand in it as one block:
a round then costs what the column stores. Whether X is dense or CSR makes no difference to the
result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from nearlabel.baselines.baseline import Baseline
from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Booleans,
    Csr,
    Floats,
    Integers,
    Matrix,
    kernel_array,
    runs,
)
from nearlabel.common.validation import check_dense_size

LEFT, RIGHT, MISSING = 0, 1, 2  # where a row goes: value <= cut, value > cut, value is NaN
_VALUES_AT_ONCE = 2**22  # of the features of all stumps
LARGEST_OUTPUT = 50.0
"""No stump can say more of a label: half the logarithm of the number of pairs that memory holds."""


class Boosting(Baseline):
    """A sum of the outputs of conditions on features, which is above 0 for labels of a row."""

    takes_missing = True
    n_rounds: int
    _n_rounds: int
    features_: Integers
    cuts_: Floats
    outputs_: Floats

    def _prepare(self) -> None:
        if self.outputs_.shape[:2] != (self._n_rounds, 2):
            raise ValueError("its outputs are not those of two sides in each round")

    def _decide(self, scores: Floats) -> Booleans:
        return scores > 0

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(expit(2 * scores))

    def _start(self, Y: Csr, weight: float) -> Floats:
        """The same weight for every row and label, and room for what the rounds learn."""
        (n, q), rounds = Y.shape, self._n_rounds
        what = f"n_rounds={rounds}: what is learned"
        check_dense_size(what, (2 * rounds, q), 8, "fewer rounds")
        self.features_, self.cuts_ = np.empty(rounds, np.int64), np.empty(rounds)
        self.outputs_ = np.empty((rounds, 2, q))
        check_dense_size(f"the weights of {self.title}", (n, 2 * q), 8, "fewer rows or labels")
        return equal_weights(Y, weight)

    def _add(
        self, t: int, stump: Stump, sides: Array, exact: Floats, smoothing: float, weights: Floats
    ) -> None:
        """Add the stump of round t, whose outputs o are log ratios of the `exact` weights.

        W <- W exp(-Y o), in place; rows without a value have output 0.
        """
        self.features_[t], self.cuts_[t] = stump.feature, stump.cut
        sums = np.array([exact[sides == side].sum(axis=0) for side in (LEFT, RIGHT)])
        self.outputs_[t] = log_ratios(sums, smoothing)
        factors = np.ones((3, weights.shape[1]))
        factors[[LEFT, RIGHT]] = np.exp(np.hstack([-self.outputs_[t], self.outputs_[t]]))
        weights *= factors[sides]


def equal_weights(Y: Csr, weight: float) -> Floats:
    """The same weight for every row and label."""
    carries = Y.toarray() != 0
    return np.hstack([carries, ~carries]) * weight


def exact_weights(weights: Floats, total: float) -> Floats:
    """Weights rounded to multiples of one power of two, so that their sums are exact.

    They add up to at most `total`, but for rounding. Every partial sum then is a whole number below
    2**53 of such multiples: it does not depend on the order of the rows, the rest of a total is
    exact, and two stumps that divide the rows alike have the same loss to the last bit.
    """
    quantum = 2.0 ** (math.ceil(math.log2(total)) - 52)
    exact = weights / quantum
    np.rint(exact, out=exact)
    exact *= quantum
    return exact


def log_ratios(sums: Floats, smoothing: float) -> Floats:
    """1/2 ln((W+ + e) / (W- + e)) of sums of weights, shape (…, 2q)."""
    with_label, without = np.split(sums, 2, axis=-1)
    ratios: Floats = 0.5 * np.log((with_label + smoothing) / (without + smoothing))
    return ratios


@dataclass(frozen=True)
class SortedColumns:
    """Rows of d features, sorted by value, and the cuts between their values.

    Column f lists the rows from ``start[f]`` to ``start[f + 1]``: first those with values, in their
    order, then those whose value is missing. Its cuts stand from ``first[f]`` to ``first[f + 1]``.
    """

    n: int
    rows: Array  # int32, all lists one after the other
    start: Array  # int64, shape (d + 1,)
    known: Array  # int64, shape (d,): rows of the list that have values
    first: Array  # int64, shape (d + 1,)
    ends: Array  # int32, one per cut: how many rows of the list are left of it
    rest: Array  # int32, shape (d,): the first cut of the column that has the other rows, all
    # zero, to its left
    cuts: Floats  # one per cut; a value that is not above it is left

    @staticmethod
    def of(X: Matrix) -> SortedColumns:
        """The columns of vectors, an array or a canonical ``csr_array``."""
        n, d = X.shape
        column, row, value = _listed(X)
        listed = np.bincount(column, minlength=d)
        # Each block of zeros is one entry while the values are sorted, with -1 as its row.
        block = np.flatnonzero(listed < n)
        column = np.concatenate([column, block])
        row = np.concatenate([row, np.full(len(block), -1)])
        value = np.concatenate([value, np.zeros(len(block))])
        order = np.lexsort((row, value, column))  # NaN comes last
        column, row, value = column[order], row[order], value[order]
        start = np.concatenate([[0], np.cumsum(listed)])
        is_known = ~np.isnan(value)
        known = np.bincount(column[is_known & (row >= 0)], minlength=d)
        is_cut = (column[1:] == column[:-1]) & is_known[1:] & (value[1:] != value[:-1])
        place = np.flatnonzero(is_cut)
        low, high, of_column = value[place], value[place + 1], column[place]
        middle = low / 2 + high / 2  # the sum of both could overflow
        # Below the upper value even where there is no float between them.
        cuts = np.where((middle >= low) & (middle < high), middle, low)
        ends = np.cumsum(row >= 0)[place] - start[of_column]
        rest = np.zeros(d, np.int64)
        rest[block] = np.searchsorted(place, np.flatnonzero(row < 0))
        first = np.concatenate([[0], np.cumsum(np.bincount(of_column, minlength=d))])
        rest[block] -= first[block]
        if not len(cuts):  # nothing varies: one cut per column that has all values to its left
            first, ends, cuts = np.arange(d + 1), known, np.full(d, np.inf)
        return SortedColumns(
            n,
            row[row >= 0].astype(np.int32),
            start.astype(np.int64),
            known.astype(np.int64),
            first.astype(np.int64),
            ends.astype(np.int32),
            rest.astype(np.int32),
            cuts,
        )

    def sides(self, feature: int, cut: int) -> Array:
        """On which side of a cut of a feature each row is, an array of int8."""
        rows = self.rows[self.start[feature] : self.start[feature + 1]]
        left = self.ends[self.first[feature] + cut]
        sides = np.full(self.n, LEFT if cut >= self.rest[feature] else RIGHT, np.int8)
        sides[rows[:left]] = LEFT
        sides[rows[left : self.known[feature]]] = RIGHT
        sides[rows[self.known[feature] :]] = MISSING
        return sides


def _listed(X: Matrix) -> tuple[Integers, Integers, Floats]:
    """Column, row and value of all entries but the zeros of columns that are mostly zero."""
    n, d = X.shape
    row, column, value = sparse.find(X)
    is_full = 2 * np.bincount(column, minlength=d) >= n
    full, mostly_zero = np.flatnonzero(is_full), ~is_full[column]
    values = X[:, full] if isinstance(X, np.ndarray) else X[:, full].toarray()
    return (
        np.concatenate([column[mostly_zero], np.repeat(full, n)]),
        np.concatenate([row[mostly_zero], np.tile(np.arange(n), len(full))]),
        np.concatenate([value[mostly_zero], values.T.ravel()]),
    )


class Stump(NamedTuple):
    """A feature, one of its cuts and the place of that among them, and the loss Z."""

    feature: int
    place: int
    cut: float
    loss: float


def best_stump(columns: SortedColumns, weights: Floats, reached: Booleans | None = None) -> Stump:
    """The stump with the least loss; of equal ones the lowest feature, then the lowest cut.

    Weights (n, 2q) are as `exact_weights` gives them, and zero for rows that are not `reached`; by
    default all are.
    """
    losses, places = best_cuts(columns, weights, reached)
    feature = int(losses.argmin())
    place = int(places[feature])
    cut = float(columns.cuts[columns.first[feature] + place])
    return Stump(feature, place, cut, float(losses[feature]))


def best_cuts(
    columns: SortedColumns, weights: Floats, reached: Booleans | None = None
) -> tuple[Floats, Array]:
    """The least loss of each feature, and the place of its lowest cut with that loss.

    The loss is Z = W0 + 2 sum over both sides and all labels of sqrt(W+ W-), where W0 is the weight
    of rows without a value. A feature that has no cut has an infinite loss.
    """
    losses, places = np.full(len(columns.known), np.inf), np.zeros(len(columns.known), np.int64)
    core = engine.core()
    if core is not None:
        is_reached = np.ones(columns.n, bool) if reached is None else reached
        core.best_cuts(
            kernel_array(weights, np.float64),
            kernel_array(is_reached, bool).view(np.uint8),
            *(columns.rows, columns.start, columns.known),
            *(columns.first, columns.ends, columns.rest),
            *(losses, places),
        )
        return losses, places
    q = weights.shape[1] // 2
    total = weights.sum(axis=0)
    for feature in np.flatnonzero(np.diff(columns.first)):
        rows = columns.rows[columns.start[feature] : columns.start[feature + 1]]
        known = columns.known[feature]
        ends = columns.ends[columns.first[feature] : columns.first[feature + 1]]
        missing = weights[rows[known:]].sum(axis=0)
        sums = np.zeros((known + 1, 2 * q))
        np.cumsum(weights[rows[:known]], axis=0, out=sums[1:])
        left = sums[ends]
        left[columns.rest[feature] :] += total - missing - sums[-1]
        right = total - missing - left
        terms = np.sqrt(left[:, :q] * left[:, q:]) + np.sqrt(right[:, :q] * right[:, q:])
        # Every fourth label, one after the other, and then the four sums: as the kernel adds them.
        lanes = np.zeros((len(ends), -(-q // 4) * 4))
        lanes[:, :q] = terms
        lanes = np.cumsum(lanes.reshape(len(ends), -1, 4), axis=1)[:, -1]
        divided = (lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3])
        loss = missing.sum() + 2 * divided
        places[feature] = loss.argmin()
        losses[feature] = loss[places[feature]]
    return losses, places


def stump_sides(X: Matrix, features: Array, cuts: Floats) -> Array:
    """LEFT, RIGHT or MISSING for m rows of vectors and t stumps, an array of int8, shape (t, m)."""
    used, place = np.unique(features, return_inverse=True)
    sides = np.empty((len(features), X.shape[0]), np.int8)
    for run in runs(np.full(X.shape[0], len(features)), _VALUES_AT_ONCE):
        values = X[run][:, used]
        values = sparse.csr_array(values).toarray() if sparse.issparse(values) else values
        values = values.T[place]
        sides[:, run] = values > cuts[:, None]
        sides[:, run][np.isnan(values)] = MISSING
    return sides
