"""The size of label sets by a threshold that depends on the scores (Elisseeff and Weston, 2002)."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Floats


def best_cuts(scores: Floats, carried: Array) -> Floats:
    """The cut of each row of scores (n, q) where ``score >= cut`` errs least on its labels.

    Cuts are the lowest score less 0.1, the midpoints of consecutive scores, and the highest score
    plus 0.1; the lowest of the best ones is taken.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    rising = np.take_along_axis(scores, order, axis=1)
    is_carried = np.take_along_axis(carried, order, axis=1).astype(np.int64)
    cuts = np.column_stack(
        [rising[:, 0] - 0.1, (rising[:, :-1] + rising[:, 1:]) / 2, rising[:, -1] + 0.1]
    )
    # Errors of a cut above the j lowest scores: carried labels below it, and others above it.
    missed = np.cumsum(is_carried, axis=1)
    others = np.cumsum(1 - is_carried[:, ::-1], axis=1)[:, ::-1]
    none = np.zeros((len(scores), 1), np.int64)
    errors = np.hstack([none, missed]) + np.hstack([others, none])
    # A cut cannot part equal scores.
    errors[:, 1:-1][rising[:, :-1] == rising[:, 1:]] = scores.shape[1] + 1
    return np.asarray(cuts[np.arange(len(cuts)), errors.argmin(axis=1)])


def threshold_function(scores: Floats, carried: Array) -> tuple[Floats, float]:
    """Weights of the scores and a constant that fit the best cuts of all rows by least squares."""
    # Centered, so that scores that never vary get no weight.
    center = scores.mean(axis=0)
    cuts = best_cuts(scores, carried)
    weights, *_ = np.linalg.lstsq(scores - center, cuts - cuts.mean(), rcond=None)
    return weights, float(cuts.mean() - center @ weights)
