"""Logistic regression over (row, label) pairs, with common weights and deviations per label.

A label with few examples says little about how much to trust each reading; all labels together say
it well. So labels share their weights, and a label deviates from them as far as its own pairs
justify against a penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from nearlabel.common.arrays import Array, Floats

FOLDS = 4
_PENALTIES = (1.0, 10.0, 100.0)  # of the common weights
_STRENGTHS = (np.inf, 300.0, 30.0)  # penalties on deviations from the common weights
_FEWEST_EXAMPLES = 10  # of a label, for it to get its own weights
_PAIRS_AT_ONCE = 2**12  # their columns stay in the cache


@dataclass(frozen=True)
class PooledLogistic:
    """Log odds of pairs as weighted sums of their columns."""

    mean: Floats  # (f,), and the scale: for standardizing the columns
    scale: Floats
    weights: Floats  # (f + 1,), common to all labels; the last is the intercept
    own: Floats | None  # (q, f + 1): the deviation of each label from them

    def log_odds(self, columns: Floats, label: Array) -> Floats:
        """Log odds of pairs, shape (p,)."""
        return np.asarray(self.parts(columns, label).sum(axis=1))

    def parts(self, columns: Floats, label: Array) -> Floats:
        """What each column adds to the log odds, with the intercept last, shape (p, f + 1)."""
        weights = self.weights if self.own is None else self.weights + self.own[label]
        scaled: Floats = np.empty((len(columns), len(self.weights)))
        np.divide(columns - self.mean, self.scale, out=scaled[:, :-1])
        scaled[:, -1] = 1.0
        scaled *= weights
        return scaled


@dataclass(frozen=True)
class CrossFitted:
    """A regression on all rows, and for each fold one on the other folds."""

    whole: PooledLogistic  # for new rows
    folds: tuple[PooledLogistic, ...]  # row i is in the fold i modulo their number
    strength: float  # the penalty of labels' own weights; infinite if they have none

    @classmethod
    def fit(
        cls, columns: Floats, truth: Array, row: Array, label: Array, q: int, *, own: bool = True
    ) -> Self:
        """Fit to pairs.

        Parameters
        ----------
        columns : ndarray, shape (p, f)
        truth : ndarray of bool, shape (p,)
            Whether the row has the label.
        row, label : ndarray of int, shape (p,)
        q : int
            Labels.
        own : bool
            Whether labels may have their own weights. If so, cross-validation chooses the penalty,
            or no deviations at all.
        """
        mean, scale = columns.mean(axis=0), columns.std(axis=0)
        scale[scale == 0] = 1.0
        Z = np.ones((len(columns), columns.shape[1] + 1))
        np.subtract(columns, mean, out=Z[:, :-1])
        Z[:, :-1] /= scale
        penalty, nothing = _best_penalty(Z, truth, row), np.zeros(Z.shape[1])
        fitted: dict[float, list[PooledLogistic]] = {}
        losses = dict.fromkeys(_STRENGTHS if own else _STRENGTHS[:1], 0.0)
        for fold in range(FOLDS):
            out = row % FOLDS == fold
            others = Z[~out], truth[~out]
            weights = _newton(*others, nothing, penalty, is_pooled=True)
            for strength in losses:
                parts = _own_parts(*others, label[~out], q, weights, strength)
                part = PooledLogistic(mean, scale, weights, parts)
                fitted.setdefault(strength, []).append(part)
                full = weights if parts is None else weights + parts[label[out]]
                losses[strength] += _loss((Z[out] * full).sum(axis=1), truth[out])
        chosen = min(losses, key=losses.__getitem__)
        weights = _newton(Z, truth, nothing, penalty, is_pooled=True)
        parts = _own_parts(Z, truth, label, q, weights, chosen)
        return cls(PooledLogistic(mean, scale, weights, parts), tuple(fitted[chosen]), chosen)

    def left_out_log_odds(self, columns: Floats, row: Array, label: Array) -> Floats:
        """Log odds of pairs of training rows, each by the regression on the other folds."""
        odds, fold = np.empty(len(columns)), row % len(self.folds)
        for number, part in enumerate(self.folds):
            held = np.flatnonzero(fold == number)
            odds[held] = part.log_odds(columns[held], label[held])
        return odds


def _best_penalty(Z: Floats, truth: Array, row: Array) -> float:
    """The penalty of the common weights with the least cross-validated loss.

    With more than 20,000 pairs, where it hardly matters, the first; with few rows, the last.
    """
    if len(truth) > 20_000:
        return _PENALTIES[0]
    if len(np.unique(row)) < 30:
        return _PENALTIES[-1]
    losses = dict.fromkeys(_PENALTIES, 0.0)
    for fold in range(FOLDS):
        out = row % FOLDS == fold
        for penalty in losses:
            nothing = np.zeros(Z.shape[1])
            weights = _newton(Z[~out], truth[~out], nothing, penalty, is_pooled=True)
            losses[penalty] += _loss(Z[out] @ weights, truth[out])
    return min(losses, key=losses.__getitem__)


def _newton(
    Z: Floats, truth: Array, start: Floats, penalty: float, *, is_pooled: bool = False
) -> Floats:
    """Weights that minimize logistic loss + penalty / 2 ||w - start||², by Newton's method.

    The common intercept is hardly penalized; that of a label is penalized like its weights.
    """
    w, held = start.copy(), np.full(len(start), penalty)
    if is_pooled:
        if truth.all() or not truth.any():  # no minimum: greater and greater weights are better
            yes = np.count_nonzero(truth)
            w[-1] = np.log((yes + 0.5) / (len(truth) - yes + 0.5))
            return w
        held[-1] = 1e-6  # matters only if all pairs have the same answer
    if len(Z) > 2**16:  # weights start from those for one pair in 16
        w = _newton(Z[::16], truth[::16], start, penalty / 16, is_pooled=is_pooled)
    loss, slope, curve = _expansion(Z, truth, w)
    for _ in range(30):
        slope += held * (w - start)
        curve[np.diag_indices_from(curve)] += held
        step = np.linalg.solve(curve, slope)
        # Rounding may add to a loss: the last steps hardly change it.
        size, before = 1.0, (loss + 0.5 * float(held @ (w - start) ** 2)) * (1 + 1e-12)
        while True:  # a full step is hardly ever too long
            tried = w - size * step
            loss, slope, curve = _expansion(Z, truth, tried)
            if loss + 0.5 * float(held @ (tried - start) ** 2) <= before or size < 1e-4:
                break
            size /= 2
        w = tried
        if np.abs(size * step).max() < 1e-9:
            break
    return w


def _expansion(Z: Floats, truth: Array, w: Floats) -> tuple[float, Floats, Floats]:
    """The negative log-likelihood, and its first and second derivatives."""
    loss, slope, curve = 0.0, np.zeros(len(w)), np.zeros((len(w), len(w)))
    for start in range(0, len(Z), _PAIRS_AT_ONCE):
        pairs = slice(start, start + _PAIRS_AT_ONCE)
        odds = Z[pairs] @ w
        chance = expit(odds)
        loss += _loss(odds, truth[pairs])
        slope += Z[pairs].T @ (chance - truth[pairs])
        curve += (Z[pairs] * (chance * (1 - chance))[:, None]).T @ Z[pairs]
    return loss, slope, curve


def _loss(odds: Floats, truth: Array) -> float:
    """The negative log-likelihood."""
    return float(np.logaddexp(0, np.where(truth, -odds, odds)).sum())


def _own_parts(
    Z: Floats, truth: Array, label: Array, q: int, weights: Floats, strength: float
) -> Floats | None:
    """The deviation of each label from the common weights, shape (q, f + 1); None for none.

    Only labels with enough positive and negative pairs have any.
    """
    if np.isinf(strength):
        return None
    parts = np.zeros((q, len(weights)))
    order, sizes = np.argsort(label, kind="stable"), np.bincount(label, minlength=q)
    ends, yes = np.cumsum(sizes), np.bincount(label[truth], minlength=q)
    for number in np.flatnonzero((yes >= _FEWEST_EXAMPLES) & (sizes - yes >= _FEWEST_EXAMPLES)):
        pairs = order[ends[number] - sizes[number] : ends[number]]
        parts[number] = _newton(Z[pairs], truth[pairs], weights, strength) - weights
    return parts
