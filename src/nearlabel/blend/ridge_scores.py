"""Ridge scores of many rows and labels: a low-rank product and a sparse part, never n x q."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nearlabel.blend.projections import Projection, finite_array
from nearlabel.common.arrays import Array, Csr, Floats, entries_at
from nearlabel.common.validation import check_dense_size

_CELLS_AT_ONCE = 2**22
_LEAST_REST = 1e-12  # of 1 - leverage, against rounding


class Shares(NamedTuple):
    """Coefficients of the labels' means and the rows' own labels in left-out scores, shape (n,)."""

    leverage: Floats
    of_mean: Floats
    of_own: Floats

    @classmethod
    def of(cls, leverage: Floats) -> Shares:
        """1 / (1 - h) and h / (1 - h)."""
        rest = np.maximum(1 - leverage, _LEAST_REST)
        return cls(leverage, 1 / rest, leverage / rest)

    def without_mean(self, n: int) -> Floats:
        """The coefficient t of the rows' own labels if the means are those of all n rows.

        (fitted_i + mean) / (1 - h) - h / (1 - h) y_i, less the mean of the others, (n mean - y_i) /
        (n - 1), is fitted_i / (1 - h) - t (y_i - mean) with t = (n h - 1) / (n - 1) / (1 - h).
        """
        return (n * self.leverage - 1) / (n - 1) * self.of_mean


@dataclass(frozen=True)
class RidgeScores:
    """Scores of q labels for n rows.

    Row i is ``rows(i) @ loadings + of_mean[i] * mean - of_own[i] * own[i]``. For new rows `of_mean`
    is 1 and `of_own` is 0; for training rows that are left out both follow from their leverage.

    Attributes
    ----------
    shape : (n, q)
    rows : callable
        Returns the factors of some rows, given by number, as an array of shape (m, r).
    loadings : ndarray, shape (r, q), or None
        None: the factors are the labels. Reading those of a label is fast if they are contiguous.
    mean : ndarray, shape (q,)
        The share of the training rows with each label.
    of_mean, of_own : ndarray, shape (n,)
    own : csr_array, shape (n, q), or None
        The labels of the rows themselves, if they are training rows.
    """

    shape: tuple[int, int]
    rows: Callable[[Array], Floats]
    loadings: Floats | None
    mean: Floats
    of_mean: Floats
    of_own: Floats
    own: Csr | None = None

    def dense(self, rows: Array | slice) -> Floats:
        """The scores of some rows as an array of shape (m, q)."""
        chosen = np.arange(self.shape[0])[rows]
        check_dense_size("dense(rows)", (len(chosen), self.shape[1]), 8, "fewer rows")
        scores = self.rows(chosen)
        if self.loadings is not None:
            scores = scores @ self.loadings
        scores += self.of_mean[chosen, None] * self.mean
        if self.own is not None:
            own = self.own[chosen].tocoo()
            scores[own.row, own.col] -= self.of_own[chosen][own.row]
        return np.asarray(scores)

    def at(self, row: Array, label: Array) -> Floats:
        """The scores of (row, label) pairs, each an array of shape (p,)."""
        row, label = np.asarray(row, np.intp), np.asarray(label, np.intp)
        scores = self.of_mean[row] * self.mean[label]
        if self.own is not None:
            scores -= self.of_own[row] * entries_at(self.own, row, label)[0]
        order = np.argsort(row, kind="stable")  # each row's factors are computed once
        distinct, starts = np.unique(row[order], return_index=True)
        pairs = np.split(order, starts[1:])
        by_label = None if self.loadings is None else self.loadings.T
        rank = self.shape[1] if by_label is None else by_label.shape[1]
        step = max(1, _CELLS_AT_ONCE // max(1, rank))
        for start in range(0, len(distinct), step):
            some = slice(start, start + step)
            for of_row, factor in zip(pairs[some], self.rows(distinct[some]), strict=True):
                own = label[of_row]
                if by_label is None:
                    scores[of_row] += factor[own]
                else:
                    scores[of_row] += np.einsum("ij,j->i", by_label[own], factor)
        return np.asarray(scores)


class RidgeWeights(NamedTuple):
    """A fitted regression without the rows that it was fitted to.

    Attributes
    ----------
    projection : Projection
        Factors of a row, less their mean, shape (m, r).
    loadings : ndarray, shape (r, q), or None
        The loadings of the factors for each label; None if the factors are the labels.
    mean : ndarray, shape (q,)
        The share of the training rows with each label.
    leverage : ndarray, shape (n,)
        Of each training row.
    """

    projection: Projection
    loadings: Floats | None
    mean: Floats
    leverage: Floats

    def scores(self, X: Any) -> RidgeScores:
        """Scores of new rows."""
        n, q = X.shape[0], len(self.mean)
        factor = self.projection.coordinates(X)
        ones, zeros = np.ones(n), np.zeros(n)
        return RidgeScores((n, q), factor.__getitem__, self.loadings, self.mean, ones, zeros)

    def left_out_scores(self, X: Any, rows: Array, own: Csr) -> RidgeScores:
        """Scores of training rows, each left out, given their vectors, numbers and labels."""
        shares = Shares.of(self.leverage[rows])
        factor = self.projection.coordinates(X) * shares.of_mean[:, None]
        parts = factor.__getitem__, self.loadings, self.mean, *shares[1:], own
        return RidgeScores((len(rows), len(self.mean)), *parts)

    def tree(self) -> dict[str, Any]:
        """The stored form."""
        return {**self._asdict(), "projection": self.projection.tree()}

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], n: int, q: int, d: int) -> RidgeWeights:
        """From the stored form; a ValueError or the like if it is not valid."""
        projection = Projection.from_tree(tree["projection"], d)
        r, loadings = len(projection.offset), tree["loadings"]
        if loadings is not None:
            finite_array(loadings, "loadings", 2)
        if (r if loadings is None else loadings.shape) != (q if loadings is None else (r, q)):
            raise ValueError("its loadings do not match its labels")
        mean, leverage = (finite_array(tree[key], key, 1) for key in ("mean", "leverage"))
        if mean.shape != (q,) or leverage.shape != (n,) or not (leverage < 1 + 1e-9).all():
            raise ValueError("its leverages do not match its rows")
        return cls(projection, loadings, mean, leverage)
