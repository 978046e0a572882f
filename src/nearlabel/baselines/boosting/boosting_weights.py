"""What both methods of boosting share: weights of pairs of a row and a label, and decisions.

Weights have the shape (n, 2q): a row that carries label l has its weight in column l, one that does
not in column q + l, and 0 in the other. The sums of a block of rows are thus W+ of all labels,
followed by W-.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from nearlabel.baselines.baseline import Baseline
from nearlabel.baselines.boosting.stumps import LEFT, MISSING, RIGHT
from nearlabel.common.arrays import Array, Booleans, Csr, Floats
from nearlabel.common.validation import check_dense_size

LARGEST_OUTPUT = 50.0
"""No stump can say more of a label: half the logarithm of the number of pairs that memory holds."""


class Boosting(Baseline):
    """A sum of the outputs of conditions on features, which is above 0 for labels of a row."""

    takes_missing = True
    n_rounds: int
    outputs_: Floats

    def _prepare(self) -> None:
        if self.outputs_.shape[:2] != (self._n_rounds, 2):
            raise ValueError("its outputs are not those of two sides in each round")

    def _decide(self, scores: Floats) -> Booleans:
        return scores > 0

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(expit(2 * scores))


def equal_weights(Y: Csr, weight: float, title: str) -> Floats:
    """The same weight for every row and label."""
    n, q = Y.shape
    check_dense_size(f"the weights of {title}", (n, 2 * q), 8, "fewer rows or labels")
    carries = Y.toarray() != 0
    return np.hstack([carries, ~carries]) * weight


def check_rounds(n_rounds: int, n_labels: int) -> None:
    """Refuse more rounds than there is room for, each with two outputs per label."""
    what = f"n_rounds={n_rounds}: what is learned"
    check_dense_size(what, (2 * n_rounds, n_labels), 8, "fewer rounds")


def exact_weights(weights: Floats, total: float) -> Floats:
    """Weights rounded to multiples of one power of two, so that their sums are exact.

    They add up to at most `total`, but for rounding. Every partial sum then is a whole number below
    2**53 of such multiples: it does not depend on the order of the rows, the rest of a total is
    exact, and two stumps that divide the rows alike have the same loss to the last bit.
    """
    quantum = 2.0 ** (math.ceil(math.log2(total)) - 52)
    exact = weights / quantum
    np.rint(exact, out=exact)
    exact *= quantum
    return exact


def block_outputs(weights: Floats, sides: Array, smoothing: float) -> Floats:
    """Outputs 1/2 ln((W+ + e) / (W- + e)) of the blocks left and right of a cut, shape (2, q)."""
    sums = np.array([weights[sides == side].sum(axis=0) for side in (LEFT, RIGHT)])
    return log_ratios(sums, smoothing)


def log_ratios(sums: Floats, smoothing: float) -> Floats:
    """1/2 ln((W+ + e) / (W- + e)) of sums of weights, shape (…, 2q)."""
    with_label, without = np.split(sums, 2, axis=-1)
    ratios: Floats = 0.5 * np.log((with_label + smoothing) / (without + smoothing))
    return ratios


def multiply(weights: Floats, outputs: Floats, sides: Array) -> None:
    """W <- W exp(-Y o), in place; rows without a value have output 0."""
    factors = np.ones((3, weights.shape[1]))
    factors[[LEFT, RIGHT]] = np.exp(np.hstack([-outputs, outputs]))
    factors[MISSING] = 1
    weights *= factors[sides]
