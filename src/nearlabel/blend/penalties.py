"""The penalty of a ridge regression, chosen by its leave-one-out scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nearlabel.blend.closed_form import ClosedForm
from nearlabel.blend.rows import drawn_rows
from nearlabel.common.arrays import Array, Csr
from nearlabel.labels.scores import DenseScores
from nearlabel.metrics.ranking import Ranking

_CELLS = 2**22  # scores that are ranked for each penalty
_FEWEST_ROWS = 500  # with fewer, average precision would be unreliable
_MOST_ROWS, _ROWS_OF_ERRORS = 20_000, 2_000


class Penalty(NamedTuple):
    """A penalty, and the criterion by which it was chosen.

    Attributes
    ----------
    alpha : float
    criterion : {"average_precision", "squared_error"}
    value : float
        Greater is better: errors are negated.
    """

    alpha: float
    criterion: str
    value: float


def best_penalty(form: ClosedForm, alphas: Sequence[float], seed: int) -> Penalty:
    """The penalty with the best leave-one-out scores; the first among equal ones.

    By average precision, or by the squared error (PRESS; Allen, 1974) if there are so many labels
    that few rows could be ranked, or if every row has no label or all of them.
    """
    n, q = form.Y.shape
    criterion, values = "average_precision", [np.nan]
    ranked = min(n, _CELLS // q, _MOST_ROWS)
    if ranked >= min(n, _FEWEST_ROWS):
        rows = drawn_rows(n, ranked, seed)
        truth, B = form.Y[rows], form.coordinates(rows)
        scores = (DenseScores(form.left_out_rows(alpha, B, truth)) for alpha in alphas)
        values = [Ranking(truth, dense).average_precision() for dense in scores]
    if np.isnan(values).any():
        rows = drawn_rows(n, _ROWS_OF_ERRORS, seed)
        criterion = "squared_error"
        values = [-error for error in squared_errors(form, alphas, rows, form.Y[rows])]
    best = int(np.argmax(values))
    return Penalty(alphas[best], criterion, float(values[best]))


def squared_errors(
    form: ClosedForm, alphas: Sequence[float], rows: Array, truth: Csr
) -> list[float]:
    """Mean squared leave-one-out errors over all labels, without a rows x labels matrix.

    With a_i = (e + λ)⁻¹ B_i, ||yc_i - a_i C||² = ||yc_i||² - 2 a_i · C yc_i + a_i · C Cᵀ a_i, and
    the sum of the last terms is that of the cells of C Cᵀ times those of aᵀ a.
    """
    mean, cross = form.mean, form.cross
    B = form.coordinates(rows)
    lengths = np.diff(truth.indptr) - 2 * (truth @ mean) + mean @ mean
    towards = np.asarray(truth @ cross.T) - cross @ mean
    inner = cross @ cross.T
    errors = []
    for alpha in alphas:
        of_mean = form.shares(alpha, B).of_mean  # by which an error grows if its row is left out
        a = B * form.shrinkage(alpha) * of_mean[:, None]
        squared = lengths * of_mean - 2 * np.einsum("ij,ij->i", a, towards)
        total = squared @ of_mean + np.vdot(inner, a.T @ a)
        errors.append(float(total) / len(rows) / len(mean))
    return errors
