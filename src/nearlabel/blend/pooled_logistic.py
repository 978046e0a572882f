"""Logistic regression over pairs of a row and a label: one for all labels, and parts of their own.

A label with few examples says little about how far readings can be trusted; all labels together
say it well. So the weights are those of all labels, and a label departs from them as far as its
own pairs demand against a penalty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from nearlabel.common.arrays import Array, Floats

_PENALTY = 1.0  # of the weights of all labels
_MOST_STEPS, _SMALLEST_STEP = 30, 1e-9
_FOLDS = 4
_FEWEST_EXAMPLES = 10  # of a label that gets weights of its own
STRENGTHS = (300.0, 30.0)  # penalties of departing from all labels; without any, nothing departs


class PooledLogistic(NamedTuple):
    """Log odds of pairs as weighted sums of what is known about them.

    Attributes
    ----------
    mean, scale : ndarray, shape (f,)
        By which columns are standardized.
    weights : ndarray, shape (f + 1,)
        Of all labels; the last is the intercept.
    own : ndarray, shape (q, f + 1), or None
        What each label adds to them.
    strength : float
        The penalty of these parts; infinite where there are none.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    own: Floats | None
    strength: float

    @classmethod
    def fit(
        cls, columns: Floats, truth: Array, row: Array, label: Array, q: int, *, own: bool = True
    ) -> Self:
        """Fit to pairs.

        Parameters
        ----------
        columns : ndarray, shape (p, f)
        truth : ndarray of bool, shape (p,)
            Whether the row carries the label.
        row, label : ndarray of int, shape (p,)
        q : int
            Labels.
        own : bool
            Whether labels may have parts of their own. If so, four folds of the rows say how strong
            the penalty is, or that there is nothing to gain.
        """
        mean, scale = columns.mean(axis=0), columns.std(axis=0)
        scale[scale == 0] = 1.0
        Z = np.hstack([(columns - mean) / scale, np.ones((len(columns), 1))])
        weights = _newton(Z, truth, np.zeros(Z.shape[1]), _PENALTY, is_pooled=True)
        chosen = _best_strength(Z, truth, row, label, q) if own else np.inf
        parts = None if np.isinf(chosen) else _own_parts(Z, truth, label, q, weights, chosen)
        return cls(mean, scale, weights, parts, float(chosen))

    def log_odds(self, columns: Floats, label: Array) -> Floats:
        """Log odds of pairs, shape (p,)."""
        return np.asarray(self.parts(columns, label).sum(axis=1))

    def parts(self, columns: Floats, label: Array) -> Floats:
        """What each column adds to the log odds, and at last the intercept, shape (p, f + 1)."""
        weights = self.weights if self.own is None else self.weights + self.own[label]
        scaled: Floats = np.empty((len(columns), len(self.weights)))
        np.divide(columns - self.mean, self.scale, out=scaled[:, :-1])
        scaled[:, -1] = 1.0
        scaled *= weights
        return scaled


def _newton(
    Z: Floats, truth: Array, start: Floats, penalty: float, *, is_pooled: bool = False
) -> Floats:
    """Weights of the least logistic loss + penalty / 2 ||w - start||², by Newton's method.

    The intercept of all labels is free; that of a label is held like the others.
    """
    w, held = start.copy(), np.full(len(start), penalty)
    if is_pooled:
        held[-1] = 0.0
    loss = _loss(Z, truth, w)
    for _ in range(_MOST_STEPS):
        chance = expit(Z @ w)
        slope = Z.T @ (chance - truth) + held * (w - start)
        curve = (Z * (chance * (1 - chance))[:, None]).T @ Z
        curve[np.diag_indices_from(curve)] += held + 1e-9
        step = np.linalg.solve(curve, slope)
        size, before = 1.0, loss + 0.5 * float(held @ (w - start) ** 2)
        while True:  # a whole step hardly ever goes too far
            tried = w - size * step
            loss = _loss(Z, truth, tried)
            if loss + 0.5 * float(held @ (tried - start) ** 2) <= before or size < 1e-4:
                break
            size /= 2
        w = tried
        if np.abs(size * step).max() < _SMALLEST_STEP:
            break
    return w


def _loss(Z: Floats, truth: Array, w: Floats) -> float:
    """Minus the log likelihood."""
    odds = Z @ w
    return float(np.logaddexp(0, np.where(truth, -odds, odds)).sum())


def _pairs_of_labels(truth: Array, label: Array, q: int) -> Iterator[tuple[int, Array]]:
    """Labels that enough of the pairs speak for and against, and their pairs."""
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=q))
    yes = np.bincount(label[truth], minlength=q)
    for one in np.flatnonzero(
        (yes >= _FEWEST_EXAMPLES) & (np.diff(ends, prepend=0) - yes >= _FEWEST_EXAMPLES)
    ):
        yield int(one), order[ends[one - 1] if one else 0 : ends[one]]


def _own_parts(
    Z: Floats, truth: Array, label: Array, q: int, weights: Floats, strength: float
) -> Floats:
    """What each label adds to the weights of all, shape (q, f + 1)."""
    parts = np.zeros((q, len(weights)))
    for one, pairs in _pairs_of_labels(truth, label, q):
        parts[one] = _newton(Z[pairs], truth[pairs], weights, strength) - weights
    return parts


def _best_strength(
    Z: Floats,
    truth: Array,
    row: Array,
    label: Array,
    q: int,
    strengths: Sequence[float] = STRENGTHS,
) -> float:
    """The penalty with the least loss on rows that are held out; infinite where none helps."""
    losses = dict.fromkeys((np.inf, *strengths), 0.0)
    for fold in range(_FOLDS):
        out = row % _FOLDS == fold
        if not out.any() or out.all():
            return np.inf
        inside = Z[~out], truth[~out]
        weights = _newton(*inside, np.zeros(Z.shape[1]), _PENALTY, is_pooled=True)
        for strength in losses:
            full = weights
            if np.isfinite(strength):
                own = _own_parts(*inside, label[~out], q, weights, strength)
                full = weights + own[label[out]]
            odds = (Z[out] * full).sum(axis=1)
            losses[strength] += float(np.logaddexp(0, np.where(truth[out], -odds, odds)).sum())
    return min(losses, key=losses.__getitem__)
