"""The best split of a node by Quinlan's criteria, in bits, and the columns that it is found in.

A split is the one with the best gain ratio among those that gain at least the average.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtri

from nearlabel.common.arrays import Array, Floats, Matrix

TOLERANCE = 1e-6
"""J48 takes numbers for equal that are no further apart."""


class Columns:
    """Columns of an array or a CSR matrix of shape (n, d), each as a dense vector.

    `n_values` (d,) has how many values a nominal feature has, and 0 for a numeric one.
    """

    def __init__(self, X: Matrix, n_values: Array) -> None:
        self.n, self.d = X.shape
        self.n_values = n_values
        self._X = sparse.csc_array(X) if sparse.issparse(X) else X

    def __getitem__(self, feature: int) -> Floats:
        if isinstance(self._X, np.ndarray):
            return self._X[:, feature]
        start, end = self._X.indptr[feature : feature + 2]
        column = np.zeros(self.n)
        column[self._X.indices[start:end]] = self._X.data[start:end]
        return column

    def branches(self, feature: int, cut: float, rows: Array) -> Array:
        """The branch that each row takes at a split; -1 where the value is missing.

        A code that no training row has is as good as missing: there is no branch for it.
        """
        values = self[feature][rows]
        is_known = ~np.isnan(values)
        if not self.n_values[feature]:
            return np.where(is_known, values > cut, -1)
        is_known &= values < self.n_values[feature]
        return np.where(is_known, values, -1).astype(np.int64)

    def sorted_entries(self) -> Entries:
        """All entries, sorted for every tree that is grown on these rows."""
        row, column, value = sparse.find(self._X)
        with_zeros = np.flatnonzero(np.bincount(column, minlength=self.d) < self.n)
        is_gap = np.isnan(value)
        gap_row, gap_column = row[is_gap], column[is_gap]
        row = np.concatenate([row[~is_gap], np.full(len(with_zeros), self.n)])
        column = np.concatenate([column[~is_gap], with_zeros])
        value = np.concatenate([value[~is_gap], np.zeros(len(with_zeros))])
        order = np.lexsort((value, column))
        row, column = row[order].astype(np.int32), column[order].astype(np.int32)
        return Entries(row, column, value[order], gap_row, gap_column)


class Entries(NamedTuple):
    """Known values by (column, value), and the places of missing ones.

    All zeros of a column are one entry, whose row is n: most columns of texts are little else.
    """

    row: Array
    column: Array
    value: Floats
    gap_row: Array
    gap_column: Array

    def of_rows(self, is_inside: Array) -> Entries:
        """The entries of some rows; `is_inside` (n + 1,) is true of row n, too."""
        return self._where(is_inside[self.row], is_inside[self.gap_row])

    def varying(self, d: int) -> Entries:
        """Those of columns with two values at least: the others cannot split any node below."""
        is_wanted = np.zeros(d, bool)
        changes = (self.column[1:] == self.column[:-1]) & (self.value[1:] > self.value[:-1])
        is_wanted[self.column[1:][changes]] = True
        return self._where(is_wanted[self.column], is_wanted[self.gap_column])

    def _where(self, keep: Array, keep_gap: Array) -> Entries:
        known = self.row[keep], self.column[keep], self.value[keep]
        return Entries(*known, self.gap_row[keep_gap], self.gap_column[keep_gap])

    def without(self, places: Array) -> Entries:
        """All but the known values at some places."""
        row, column, value = (np.delete(part, places) for part in self[:3])
        return Entries(row, column, value, self.gap_row, self.gap_column)

    def largest_value(self, column: int, cut: float) -> float:
        """The largest value of a column that is at most `cut`."""
        start, end = np.searchsorted(self.column, [column, column + 1])
        return float(self.value[start + np.searchsorted(self.value[start:end], cut, "right") - 1])


def x_log_x(x: npt.ArrayLike) -> Floats:
    """Return x log2 x, and 0 for what is no weight at all."""
    x = np.asarray(x, np.float64)
    safe = np.where(x < TOLERANCE, 1.0, x)
    return np.asarray(safe * np.log2(safe))


def total_entropy(counts: Floats) -> Floats:
    """Weight times entropy of class weights, shape (classes, ...): N log N - sum of n log n."""
    return np.asarray(x_log_x(counts.sum(axis=0)) - x_log_x(counts).sum(axis=0))


def clearly_best(values: npt.ArrayLike, start: float = 0.0) -> int:
    """The place of the value that is left when each must clearly exceed the best before it.

    -1 if none exceeds `start` clearly. Among values that are equal but for rounding, the first one
    wins. Only a new maximum can exceed the best before it, so that few values are looked at.
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        return -1
    highest = np.maximum.accumulate(values)
    place = -1
    for at in (0, *(np.flatnonzero(values[1:] > highest[:-1]) + 1)):
        if values[at] - start > TOLERANCE:
            start, place = float(values[at]), int(at)
    return place


def majority(counts: Floats) -> int:
    """The class of most weight; of several the first one."""
    return max(clearly_best(counts), 0)


def errors(counts: Floats) -> float:
    """Weight of the rows that a leaf with these class weights gets wrong."""
    return float(counts.sum() - counts[majority(counts)])


def estimated_errors(counts: Floats, confidence: float) -> float:
    """Errors of a leaf on new rows: the upper limit of their binomial proportion, times its weight.

    Wilson's limit with a continuity correction; below one error, and within half an error of the
    weight, it is interpolated.
    """
    n, e = float(counts.sum()), errors(counts)
    return 0.0 if n < TOLERANCE else e + _added_errors(n, e, confidence)


def _added_errors(n: float, e: float, confidence: float) -> float:
    if e < 1:
        none: float = n * (1 - confidence ** (1 / n))
        return none if e == 0 else none + e * (_added_errors(n, 1.0, confidence) - none)
    if e + 0.5 >= n:
        return max(n - e, 0.0)
    z, f = float(ndtri(1 - confidence)), (e + 0.5) / n
    spread = z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))
    return n * (f + z * z / (2 * n) + spread) / (1 + z * z / n) - e


class Split(NamedTuple):
    """A feature, and the cut of a numeric one."""

    feature: int
    cut: float


class _Weighed(NamedTuple):
    """Entries of a node, with weights of classes; k columns, C classes."""

    entries: Entries
    weights: Floats  # (C, E): of each entry
    starts: Array  # (k,): the first entry of each column
    columns: Array  # (k,): their numbers
    known: Floats  # (C, k): of the rows whose value is known
    total: float  # of all rows


class _Splits(NamedTuple):
    """Splits of features, with all that they are compared by."""

    feature: Array
    gain: Floats
    ratio: Floats
    cut: Floats


def best_split(
    entries: Entries, of_class: Floats, counts: Floats, n_rows: int, n_values: Array, min_leaf: int
) -> Split | None:
    """The split that C4.5 chooses of a node with these entries and `n_rows` rows, or None.

    `of_class` (C, n + 1) has the weight of every training row in the node, in the line of its
    class, and `counts` (C,) their sums; `n_values` are those of `Columns`.
    """
    if not len(entries.row):
        return None
    weighed = _weighed(entries, of_class, counts, n_rows)
    numeric = _numeric_splits(weighed, n_values, min_leaf)
    nominal = _nominal_splits(weighed, n_values, min_leaf)
    parts = [np.concatenate(pair) for pair in zip(numeric, nominal, strict=True)]
    order = np.argsort(parts[0])
    splits = _Splits(*(part[order] for part in parts))
    n = of_class.shape[1] - 1
    # Features with a value for so many of the rows say little.
    is_small = n_values < 0.3 * n - TOLERANCE  # numeric ones, too: they have 0 values
    says = is_small[splits.feature] if is_small.any() else np.ones(len(splits.feature), bool)
    if not says.any():
        return None
    is_average = splits.gain >= splits.gain[says].mean() - 1e-3
    place = clearly_best(np.where(is_average, splits.ratio, 0.0))
    return None if place < 0 else Split(int(splits.feature[place]), float(splits.cut[place]))


def _weighed(entries: Entries, of_class: Floats, counts: Floats, n_rows: int) -> _Weighed:
    n = of_class.shape[1] - 1
    starts = _runs(entries.column)
    columns = entries.column[starts]
    gaps = np.searchsorted(columns, entries.gap_column)
    n_gaps = np.bincount(gaps, minlength=len(columns))
    zeros = np.flatnonzero(entries.row == n)
    at = np.searchsorted(columns, entries.column[zeros])
    n_zeros = n_rows - n_gaps[at] - (np.diff(np.append(starts, len(entries.row)))[at] - 1)
    if not n_zeros.all():  # no row of this node is zero there
        return _weighed(entries.without(zeros[n_zeros == 0]), of_class, counts, n_rows)
    weights = of_class.take(entries.row, axis=1)
    missing = [np.bincount(gaps, line[entries.gap_row], len(columns)) for line in of_class]
    known = np.maximum(counts[:, None] - np.array(missing), 0.0)
    stored = np.add.reduceat(weights, starts, axis=1)
    weights[:, zeros] = np.maximum(known - stored, 0.0)[:, at]
    return _Weighed(entries, weights, starts, columns, known, float(counts.sum()))


def _runs(column: Array) -> Array:
    """Where each run of equal numbers starts."""
    return np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))


def _numeric_splits(node: _Weighed, n_values: Array, min_leaf: int) -> _Splits:
    """The best cut of each numeric feature that has one."""
    value, starts = node.entries.value, node.starts
    column = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(value))))
    known = node.known.sum(axis=0)
    least = 0.1 * known / len(node.known)
    least = np.where(least < min_leaf + TOLERANCE, min_leaf, np.minimum(least, 25))
    is_numeric = n_values[node.columns] == 0
    cuts = np.flatnonzero(
        (column[1:] == column[:-1]) & (value[:-1] + 1e-5 < value[1:]) & is_numeric[column[:-1]]
    )
    below = node.weights.cumsum(axis=1)
    before = np.where(starts > 0, below.take(starts - 1, axis=1), 0.0)
    left = np.maximum(below.take(cuts, axis=1) - before.take(column[cuts], axis=1), 0.0)
    enough = least[column[cuts]] - TOLERANCE
    weight = left.sum(axis=0)
    is_allowed = (weight >= enough) & (known[column[cuts]] - weight >= enough)
    cuts, left = cuts[is_allowed], left.compress(is_allowed, axis=1)
    if not len(cuts):
        return _no_splits()
    column = column[cuts]
    right = np.maximum(node.known.take(column, axis=1) - left, 0.0)
    less = total_entropy(node.known)[column] - total_entropy(left) - total_entropy(right)
    gain = _gain(less, known[column], node.total)
    best, n_cuts = _best_of_runs(gain, column)
    is_found = best >= 0
    best, n_cuts = best[is_found], n_cuts[is_found]
    gained = gain[best] - np.log2(n_cuts) / node.total  # the price of choosing among many cuts
    is_useful = gained >= TOLERANCE
    best, gained = best[is_useful], gained[is_useful]
    sizes = np.stack([left[:, best].sum(axis=0), right[:, best].sum(axis=0)])
    ratio = _ratio(gained, x_log_x(sizes).sum(axis=0), sizes.sum(axis=0), node.total)
    low, high = value[cuts[best]], value[cuts[best] + 1]
    middle = 0.5 * low + 0.5 * high
    cut = np.where(middle == high, low, middle)
    return _Splits(node.columns[column[best]], gained, ratio, cut)


def _nominal_splits(node: _Weighed, n_values: Array, min_leaf: int) -> _Splits:
    """The splits of nominal features with enough rows in two branches at least."""
    is_nominal = n_values[node.entries.column] > 0
    if not is_nominal.any():
        return _no_splits()
    column, value = node.entries.column[is_nominal], node.entries.value[is_nominal]
    is_first = (column[1:] != column[:-1]) | (value[1:] != value[:-1])
    groups = np.flatnonzero(np.concatenate([[True], is_first]))
    branches = np.add.reduceat(node.weights.compress(is_nominal, axis=1), groups, axis=1)
    starts = _runs(column[groups])
    size = branches.sum(axis=0)
    enough = np.add.reduceat((size >= min_leaf - TOLERANCE).astype(np.int64), starts) > 1
    feature = column[groups][starts]
    known = node.known[:, np.searchsorted(node.columns, feature)]
    less = total_entropy(known) - np.add.reduceat(total_entropy(branches), starts)
    gain = _gain(less, known.sum(axis=0), node.total)
    ratio = _ratio(gain, np.add.reduceat(x_log_x(size), starts), known.sum(axis=0), node.total)
    return _Splits(feature[enough], gain[enough], ratio[enough], np.full(enough.sum(), np.nan))


def _gain(less: Floats, known: Floats, total: float) -> Floats:
    """Information gained by a row, of entropies of all known rows; gaps gain nothing."""
    return np.where(np.abs(less) * known / total < TOLERANCE, 0.0, less / total)


def _ratio(gain: Floats, branches: Floats, known: Floats, total: float) -> Floats:
    """Gain by split information, in which gaps are a branch; x log x of branches is added up."""
    split = x_log_x(total) - branches - x_log_x(total - known)
    is_none = np.abs(split) < TOLERANCE
    return np.where(is_none, 0.0, gain * total / np.where(is_none, 1.0, split))


def _best_of_runs(gain: Floats, column: Array) -> tuple[Array, Array]:
    """The place of the clearly best gain of each column, -1 for none; and its number of gains."""
    starts = _runs(column)
    sizes = np.diff(np.append(starts, len(gain)))
    highest = np.maximum.reduceat(gain, starts)
    near = np.flatnonzero(gain >= np.repeat(highest - TOLERANCE, sizes))
    of_run = np.searchsorted(starts, near, "right") - 1
    best = np.empty(len(starts), np.int64)
    best[of_run] = near
    best[highest <= TOLERANCE] = -1
    for run in np.flatnonzero((np.bincount(of_run) > 1) & (best >= 0)):  # ties, by hand
        place = clearly_best(gain[starts[run] : starts[run] + sizes[run]])
        best[run] = starts[run] + place
    return best, sizes


def _no_splits() -> _Splits:
    return _Splits(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
