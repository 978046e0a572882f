from itertools import pairwise

import numpy as np
from hypothesis import given
from strategies import rankings

from nearlabel.baselines.ranksvm import best_cuts, threshold_function


def literal_cut(scores, carried):
    """Tries every cut from the lowest up; returns the first with the fewest errors."""
    rising = sorted(scores)
    middle = [(low + high) / 2 for low, high in pairwise(rising)]
    cuts = [rising[0] - 0.1, *middle, rising[-1] + 0.1]
    errors = [sum((s >= cut) != y for s, y in zip(scores, carried, strict=True)) for cut in cuts]
    return cuts[errors.index(min(errors))]


@given(rankings())
def test_cuts_equal_the_literal_ones(problem):
    Y, scores, _ = problem
    expected = [literal_cut(*row) for row in zip(scores.tolist(), Y.tolist(), strict=True)]
    np.testing.assert_array_equal(best_cuts(scores, Y.astype(bool)), expected)


@given(rankings())
def test_the_threshold_is_the_least_squares_fit(problem):
    Y, scores, _ = problem
    weights, constant = threshold_function(scores, Y.astype(bool))
    inputs = np.column_stack([scores, np.ones(len(scores))])
    rest = best_cuts(scores, Y.astype(bool)) - inputs @ np.append(weights, constant)
    np.testing.assert_allclose(inputs.T @ rest, 0, atol=1e-9)  # the normal equations


def test_scores_that_never_vary_get_no_weight():
    scores = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]])
    weights, constant = threshold_function(scores, np.array([[0, 1], [0, 1], [0, 1]], bool))
    np.testing.assert_allclose([*weights, constant], [0.5, 0, 2.5], atol=1e-12)
