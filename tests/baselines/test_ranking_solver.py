import itertools

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from nearlabel.baselines.ranking_solver import RankingPairs, solve_ranking


def literal_pairs(carried):
    n, q = carried.shape
    return [
        (i, a, b)
        for i, a, b in itertools.product(range(n), range(q), range(q))
        if carried[i, a] and not carried[i, b]
    ]


def literal_problem(carried, C):
    """Pairs, their bounds, and the matrix that makes beta (n q) of alphas."""
    n, q = carried.shape
    pairs = literal_pairs(carried)
    bound = np.array([C / (carried[i].sum() * (q - carried[i].sum())) for i, _, _ in pairs])
    to_beta = np.zeros((n * q, len(pairs)))
    for column, (i, a, b) in enumerate(pairs):
        to_beta[i * q + a, column], to_beta[i * q + b, column] = 1, -1
    return pairs, bound, to_beta


def general_solution(K, carried, C):
    """The dual by a general convex solver: its objective and beta, (n, q)."""
    n, q = carried.shape
    pairs, bound, to_beta = literal_problem(carried, C)
    # In shares of the bounds and of C, so that the solver's tolerances do not depend on C.
    hessian = to_beta.T @ np.kron(K, np.eye(q)) @ to_beta * np.outer(bound, bound) / C
    sums = np.tile(np.eye(q), n) @ to_beta * bound / C
    found = minimize(
        lambda share: 0.5 * share @ hessian @ share - share @ bound / C,
        np.zeros(len(pairs)),
        jac=lambda share: hessian @ share - bound / C,
        bounds=[(0, 1)] * len(pairs),
        # The sums of all labels always add up to 0.
        constraints={
            "type": "eq",
            "fun": lambda share: sums[1:] @ share,
            "jac": lambda _: sums[1:],
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.success, found.message
    return -found.fun * C, (to_beta @ (found.x * bound)).reshape(n, q)


def best_loss(K, beta, carried, C):
    """The least ranking loss of any biases with these weights: a linear program."""
    q = carried.shape[1]
    pairs, bound, to_beta = literal_problem(carried, C)
    margins = to_beta.T @ (K @ beta).ravel()
    of_bias = np.zeros((len(pairs), q))
    for place, (_, a, b) in enumerate(pairs):
        of_bias[place, a], of_bias[place, b] = -1, 1
    found = linprog(
        np.append(np.zeros(q), bound),
        A_ub=np.hstack([of_bias, -np.eye(len(pairs))]),
        b_ub=margins - 1,
        bounds=[(None, None)] * q + [(0, None)] * len(pairs),
    )
    return found.fun


def problem(seed, n=9, q=4, kind="poly"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    carried = rng.random((n, q)) < 0.4
    keep = carried.any(axis=1) & ~carried.all(axis=1)
    X, carried = X[keep], carried[keep]
    return (X @ X.T if kind == "linear" else (0.5 * X @ X.T + 1) ** 3), carried


@pytest.mark.parametrize("kind", ["linear", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_a_general_convex_solver(seed, C, kind):
    K, carried = problem(seed, kind=kind)
    count = carried.sum(axis=1)
    pairs = RankingPairs.of(carried, C / (count * (carried.shape[1] - count)))
    found = solve_ranking(K, pairs, 1e-8, 20000)
    objective, beta = general_solution(K, carried, C)
    assert found.gap <= 1e-8
    assert found.primal == pytest.approx(objective, rel=1e-4)
    assert found.dual == pytest.approx(objective, rel=1e-4)
    # The weights are unique; so are the scores with the best biases.
    np.testing.assert_allclose(K @ found.beta, K @ beta, atol=1e-4 * (1 + abs(K @ beta).max()))
    loss = pairs.hinge_loss(K @ found.beta + found.bias)
    assert loss == pytest.approx(best_loss(K, found.beta, carried, C), rel=1e-4, abs=1e-6)


def test_an_outlier_does_not_affect_the_precision_of_the_others():
    """Squared lengths from 1 to 1e14: the objective is that of the kernel as it was given."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 20))
    X[0] *= 1e6
    K, carried = X @ X.T, rng.random((12, 3)) < 0.5
    keep = carried.any(axis=1) & ~carried.all(axis=1)
    carried[0], keep[0] = [True, False, False], True
    K, carried, X = K[np.ix_(keep, keep)], carried[keep], X[keep]
    pairs = RankingPairs.of(carried, np.ones(len(carried)))
    found = solve_ranking(K, pairs, 1e-6, 20000)
    assert found.gap <= 1e-6
    weights = X.T @ found.beta  # without the kernel, in which long rows cancel
    loss = pairs.hinge_loss(X @ weights + found.bias)
    assert (weights**2).sum() / 2 + loss == pytest.approx(found.primal, rel=1e-4)


def test_a_label_that_is_always_over_another_gets_a_bias_that_loses_nothing():
    """Rows with label 1 also carry label 0: nothing bounds the bias of 0 relative to that of 1."""
    carried = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1], [1, 1, 0]], bool)
    K = np.diag([1.0, 2.0, 3.0, 1.0, 2.0])
    count = carried.sum(axis=1)
    pairs = RankingPairs.of(carried, 1.0 / (count * (3 - count)))
    found = solve_ranking(K, pairs, 1e-8, 20000)
    assert found.gap <= 1e-8
    assert found.primal == pytest.approx(general_solution(K, carried, 1.0)[0], rel=1e-6)
    margins = pairs.margins(K @ found.beta + found.bias)
    assert margins[(pairs.better == 0) & (pairs.worse == 1)].min() > 1 - 1e-6


def test_a_kernel_of_zeros_is_ranked_by_biases_alone():
    carried = np.array([[1, 0], [1, 0], [0, 1]], bool)
    found = solve_ranking(np.zeros((3, 3)), RankingPairs.of(carried, np.ones(3)), 1e-9, 1000)
    assert found.bias[0] - found.bias[1] == pytest.approx(1)  # two rows against one
    assert found.primal == pytest.approx(2)
    assert found.gap <= 1e-9


def test_progress_and_the_order_of_labels():
    K, carried = problem(5)
    told = []
    pairs = RankingPairs.of(carried, np.ones(len(carried)))
    found = solve_ranking(K, pairs, 1e-8, 20000, lambda *steps: told.append(steps))
    assert told[-1] == (found.n_iter, 20000)
    turned = solve_ranking(K, RankingPairs.of(carried[:, ::-1], np.ones(len(carried))), 1e-8, 20000)
    assert turned.primal == pytest.approx(found.primal, rel=1e-7)
    np.testing.assert_allclose(K @ turned.beta[:, ::-1], K @ found.beta, atol=1e-3)
