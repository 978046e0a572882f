"""Bayes' rule on counted rows: ML-kNN's, and that of those that count like it."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Floats


def posterior(
    s: float, cells: int, n: Array | int, n_with: Array, seen_with: Array, seen_without: Array
) -> Floats:
    """P(H_1 | E) where of n rows n_with carry a label, and some of either kind have the evidence E.

        P(H_1) = (s + n_with) / (2 s + n),    P(E | H_1) = (s + seen_with) / (s cells + n_with),

    and likewise for H_0, the rows without the label.

    Parameters
    ----------
    s : float
        Rows added to every cell.
    cells : int
        Kinds of evidence.
    n, n_with : ndarray or int
        Rows, and those with the label.
    seen_with, seen_without : ndarray
        Rows with the evidence, with and without the label.
    """
    n_without = n - n_with
    # P(H_1) P(E | H_1) and P(H_0) P(E | H_0) as the paper compares them, both times the
    # denominators of all four: for a whole s these are whole numbers, so that equal hypotheses tie
    # exactly while they are below 2^53, and a tiny s does no harm.
    yes = (s + n_with) * (s * cells + n_without) * (s + seen_with)
    no = (s + n_without) * (s * cells + n_with) * (s + seen_without)
    either = yes + no
    with np.errstate(invalid="ignore"):
        result: Floats = yes / either
        if not either.all():
            # Departs from the paper, which has s > 0: without smoothing, evidence that was never
            # seen leaves the prior, as in the authors' code; and no rows at all 1/2.
            prior = np.where(n > 0, (s + n_with) / (2 * s + n), 0.5)
            result = np.where(either > 0, result, prior)
    return result
