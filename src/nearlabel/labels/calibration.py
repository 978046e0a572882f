"""Probabilities from scores: how often labels with such scores are correct."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Csr, Floats
from nearlabel.labels.decisions import scored_rows
from nearlabel.labels.scores import LabelScores


class Calibration(NamedTuple):
    """A monotone map from scores to probabilities, linear between knots.

    Attributes
    ----------
    scores, chances : ndarray of float, shape (m,)
        The knots, by ascending score.
    """

    scores: Floats
    chances: Floats

    def of(self, scores: Floats) -> Floats:
        """Probabilities of scores, of any shape; constant beyond the outer knots."""
        if len(self.scores) == 1:
            return np.full(np.shape(scores), self.chances[0])
        below = np.searchsorted(self.scores, scores, side="right") - 1
        below = np.clip(below, 0, len(self.scores) - 2)
        left, right = self.scores[below], self.scores[below + 1]
        with np.errstate(over="ignore"):  # for scores far beyond two close knots
            part = np.clip((scores - left) / (right - left), 0, 1)
        return np.asarray((1 - part) * self.chances[below] + part * self.chances[below + 1])


def calibration(scores: LabelScores, Y: Csr) -> Calibration:
    """The map for scores of rows with labels Y, pooled over all labels: isotonic regression [1]_.

    Neighboring scores are pooled where the share of correct labels decreases. Each knot is the mean
    score of such a group and its share, with half a label added on both sides, so that no
    probability is 0 or 1.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", KDD 2002.
    """
    from sklearn.isotonic import isotonic_regression

    _, score, rows, carriers = scored_rows(scores, Y)
    score, which = np.unique(score, return_inverse=True)
    rows, carriers = (np.bincount(which, part) for part in (rows, carriers))
    level = isotonic_regression(carriers / rows, sample_weight=rows)
    group = np.cumsum(np.diff(level, prepend=level[:1]) > 0)
    given, right = (np.bincount(group, part) for part in (rows, carriers))
    middle = np.bincount(group, rows * score) / given
    share = np.maximum.accumulate((right + 0.5) / (given + 1))
    knots = np.unique(np.linspace(0, len(middle) - 1, 256).astype(int))  # at most so many
    return Calibration(middle[knots], share[knots])
