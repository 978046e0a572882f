"""The inputs of a blend: one row per (row, label) pair, one column or more per reading.

A reading is a method on one of two graphs, or a ridge regression. A method's column is its log
odds; a regression's columns are its scores and their roots, which separate small scores, and with
many labels their log odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from nearlabel.blend.ridge_scores import RidgeScores
from nearlabel.common.arrays import Array, Csr, Floats, canonical_csr, entries_at, row_numbers
from nearlabel.labels.scores import LabelScores

_RIDGE_CHANCES = 1e-4, 0.99  # bounds of regression scores before they become log odds
_PRIOR_SHARE = 0.03  # of the labels' frequencies mixed into shares of votes, which may be 0 and 1
_FARTHEST = 15.0  # log odds


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows and labels: all of them, or those with labels that a neighbor has.

    Attributes
    ----------
    row, label : ndarray of int, shape (p,)
    shape : (n, q)
    is_all : bool
    """

    row: Array
    label: Array
    shape: tuple[int, int]
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
        if not self.is_all:
            return scores.at(self.row, self.label)
        every: Floats = scores.toarray().ravel()
        return every

    def truth(self, Y: Csr) -> Array:
        """Which of them are in Y, shape (p,)."""
        if self.is_all:
            return np.asarray(Y.toarray().ravel() == 1)
        return entries_at(Y, self.row, self.label)[0]

    def scores(self, values: Floats, defaults: Any) -> LabelScores:
        """Scores of these pairs as label scores, with defaults for the missing pairs."""
        if self.is_all:
            return LabelScores.from_dense(values.reshape(self.shape))
        ends = np.searchsorted(self.row, np.arange(self.shape[0] + 1))
        touched = sparse.csr_array((values, self.label, ends), shape=self.shape)
        return LabelScores.of(canonical_csr(touched), defaults)


def frequency_log_odds(totals: Array, n: int) -> Floats:
    """Log odds of each label's share of n rows, with half a row added to both sides."""
    return np.asarray(np.log((totals + 0.5) / (n - totals + 0.5)))


def reading_log_odds(model: Any, values: Floats, label: Array, frequency: Floats) -> Floats:
    """A method's column for pairs, given its scores of them and the log odds of frequencies."""
    chance = np.asarray(model._uncalibrated(values, label), np.float64)
    if not model.needs.counts:
        return share_log_odds(chance, frequency)
    return _log_odds(chance)  # methods with tables have smoothed probabilities


def share_log_odds(share: Floats, frequency: Floats) -> Floats:
    """Log odds of shares of votes, which may be 0 and 1: a little of the frequency is mixed in."""
    return _log_odds((1 - _PRIOR_SHARE) * share + _PRIOR_SHARE * expit(frequency))


def _log_odds(chance: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(logit(chance), -_FARTHEST, _FARTHEST))


def ridge_columns(values: Floats, *, log_odds: bool) -> list[Floats]:
    """The columns of a regression: scores, their roots, and their log odds if requested.

    With many labels, nearly all scores are close to 0, and weights that suit them rank the greatest
    too low: compared with the log odds of the methods, roots grow too slowly.
    """
    found = [np.clip(values, -1, 2), np.sqrt(np.clip(values, 0, 2))]
    if log_odds:
        found.append(np.asarray(logit(np.clip(values, *_RIDGE_CHANCES))))
    return found
