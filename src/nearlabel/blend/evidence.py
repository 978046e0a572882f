"""Pairs of rows and labels, and scores of them as inputs of a blend: log odds, or the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from nearlabel.blend.ridge_scores import RidgeScores
from nearlabel.common.arrays import Array, Csr, Floats, canonical_csr, entries_at, row_numbers
from nearlabel.labels.scores import DefaultScores, LabelScores


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows and labels: all of them, or those with labels that a neighbor has."""

    row: Array  # (p,), as the label
    label: Array
    shape: tuple[int, int]  # (n, q)
    is_all: bool

    @classmethod
    def every(cls, n: int, q: int) -> Pairs:
        """All pairs of n rows and q labels."""
        return cls(np.repeat(np.arange(n), q), np.tile(np.arange(q), n), (n, q), True)

    @classmethod
    def carried(cls, counts: Sequence[Csr]) -> Pairs:
        """The pairs in some counts of the neighbors' labels.

        Not those in leave-one-out scores, which include all labels of the row itself.
        """
        pattern = canonical_csr(sum(counts[1:], start=counts[0]))
        shape = int(pattern.shape[0]), int(pattern.shape[1])
        return cls(row_numbers(pattern), pattern.indices.astype(np.int64), shape, False)

    def of(self, scores: LabelScores | RidgeScores) -> Floats:
        """The scores of these pairs, shape (p,)."""
        return scores.toarray().ravel() if self.is_all else scores.at(self.row, self.label)

    def truth(self, Y: Csr) -> Array:
        """Which of them are in Y, shape (p,)."""
        if self.is_all:
            return np.asarray(Y.toarray().ravel() == 1)
        return entries_at(Y, self.row, self.label)[0]

    def scores(self, values: Floats, defaults: DefaultScores | None) -> LabelScores:
        """Scores of these pairs as label scores, with defaults for the missing pairs."""
        if self.is_all:
            return LabelScores.from_dense(values.reshape(self.shape))
        ends = np.searchsorted(self.row, np.arange(self.shape[0] + 1))
        touched = sparse.csr_array((values, self.label, ends), shape=self.shape)
        return LabelScores.of(canonical_csr(touched), defaults)


def frequency_log_odds(totals: Array, n: int) -> Floats:
    """Log odds of each label's share of n rows, with half a row added to both sides."""
    return np.asarray(np.log((totals + 0.5) / (n - totals + 0.5)))


def share_log_odds(share: Floats, frequency: Floats) -> Floats:
    """Log odds of shares of votes, which may be 0 and 1: a little of the frequency is mixed in."""
    return bounded_log_odds(0.97 * share + 0.03 * expit(frequency))


def bounded_log_odds(chance: Floats) -> Floats:
    """Log odds of probabilities, between -15 and 15."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(logit(chance), -15.0, 15.0))
