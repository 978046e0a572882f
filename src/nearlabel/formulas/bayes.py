"""Bayes' rule on row counts, with exact ties."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats


class Ratio(NamedTuple):
    """A probability as numerator and denominator, so that nothing is rounded too early."""

    numerator: Array | float
    denominator: Array | float

    @property
    def value(self) -> Floats:
        """The quotient; nan where nothing was counted."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.numerator / self.denominator)


def posterior(prior: Ratio, likelihood: Ratio, other_prior: Ratio, other: Ratio) -> Floats:
    """P(H_1 | E) = P(H_1) P(E | H_1) / (P(H_1) P(E | H_1) + P(H_0) P(E | H_0)).

    The two priors, P(H_1) and P(H_0), have the same denominator.
    """
    # Both products multiplied by all denominators: for integer counts and an integer s these are
    # integers, so that equal hypotheses tie exactly below 2^53, and a tiny s does no harm.
    yes = prior.numerator * other.denominator * likelihood.numerator
    no = other_prior.numerator * likelihood.denominator * other.numerator
    either = np.asarray(yes + no)
    with np.errstate(invalid="ignore"):
        result = np.asarray(yes / either)
        if not either.all():
            # Departs from the paper, which has s > 0: without smoothing, unseen evidence gives the
            # prior, as in the authors' code; and 1/2 if there are no rows at all.
            known = np.asarray(prior.denominator) > 0
            result = np.where(either > 0, result, np.where(known, prior.value, 0.5))
    return result
