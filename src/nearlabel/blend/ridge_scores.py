"""Ridge scores of many rows and labels: a low-rank product and a sparse part, never n x q."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nearlabel.blend.projections import Projection, finite_arrays
from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Array, Csr, Floats, Matrix, Tree, entries_at
from nearlabel.common.validation import check_dense_size


def rest_of(leverage: Floats) -> Floats:
    """1 - h, by which an error of fitted values grows when its row is left out, above rounding."""
    return np.maximum(1 - leverage, 1e-12)


@dataclass(frozen=True)
class RidgeScores:
    """Scores of q labels for n rows: ``factors @ loadings + of_mean * mean - of_own * own``."""

    factors: Floats  # (n, r)
    loadings: Floats | None  # (r, q), or None: the factors are the labels
    mean: Floats  # (q,): the share of the training rows with each label
    of_mean: Floats  # (n,)
    of_own: Floats  # (n,)
    own: Csr | None = None  # (n, q): the labels of the rows themselves, if they are training rows

    @classmethod
    def left_out(
        cls, factors: Floats, loadings: Floats | None, mean: Floats, leverage: Floats, own: Csr
    ) -> RidgeScores:
        """Scores of training rows that are left out, from their factors among all others.

        y_i - (yc_i - fitted_i) / (1 - h_i) = (fitted_i + mean(Y)) / (1 - h_i) - h_i / (1 - h_i) y_i
        with leverages h and centered fitted values.
        """
        rest = rest_of(leverage)
        of_mean = 1 / rest
        return cls(factors * of_mean[:, None], loadings, mean, of_mean, leverage / rest, own)

    def toarray(self) -> Floats:
        """All scores, shape (n, q)."""
        check_dense_size("ridge scores", (len(self.factors), len(self.mean)), 8, "fewer rows")
        scores = self.factors.copy() if self.loadings is None else self.factors @ self.loadings
        scores += self.of_mean[:, None] * self.mean
        if self.own is not None:
            own = self.own.tocoo()
            scores[own.row, own.col] -= self.of_own[own.row]
        return scores

    def at(self, row: Array, label: Array) -> Floats:
        """The scores of (row, label) pairs, each an array of shape (p,)."""
        scores = self.of_mean[row] * self.mean[label]
        if self.own is not None:
            scores -= self.of_own[row] * entries_at(self.own, row, label)[0]
        if self.loadings is None:
            return np.asarray(scores + self.factors[row, label])
        by_label = self.loadings.T
        for pairs in row_blocks(len(row), by_label.shape[1]):
            factors = self.factors[row[pairs]]
            scores[pairs] += np.einsum("ij,ij->i", by_label[label[pairs]], factors)
        return np.asarray(scores)


@dataclass(frozen=True)
class RidgeWeights:
    """A fitted regression without the rows that it was fitted to."""

    projection: Projection  # to the r factors of a row, less their mean
    loadings: Floats | None  # (r, q), as those of the scores
    mean: Floats  # (q,)
    leverage: Floats  # (n,), of each training row

    def scores(self, X: Matrix) -> RidgeScores:
        """Scores of new rows."""
        factors, ones = self.projection.coordinates(X), np.ones(X.shape[0])
        return RidgeScores(factors, self.loadings, self.mean, ones, 0 * ones)

    def left_out_scores(self, X: Matrix, rows: Array, own: Csr) -> RidgeScores:
        """Scores of training rows, each left out, given their vectors, numbers and labels."""
        factors, leverage = self.projection.coordinates(X), self.leverage[rows]
        return RidgeScores.left_out(factors, self.loadings, self.mean, leverage, own)

    def tree(self) -> Tree:
        """The stored form."""
        return {**vars(self), "projection": self.projection.tree()}

    @classmethod
    def from_tree(cls, tree: Tree, sizes: Mapping[str, int]) -> RidgeWeights:
        """From the stored form; a ValueError or the like if it is not valid."""
        projection = Projection.from_tree(tree["projection"], sizes["d"])
        loadings, sizes = None, {**sizes, "r": len(projection.offset)}
        if tree["loadings"] is not None:
            (loadings,) = finite_arrays(tree, {"loadings": "rq"}, sizes)
        elif sizes["r"] != sizes["q"]:
            raise ValueError("its factors do not match its labels")
        mean, leverage = finite_arrays(tree, {"mean": "q", "leverage": "n"}, sizes)
        if not (leverage < 1 + 1e-9).all():
            raise ValueError("its leverages must be below 1")
        return cls(projection, loadings, mean, leverage)
