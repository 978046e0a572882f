"""The point of a simplex nearest to the origin, for many small simplices at once."""

from __future__ import annotations

import math

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats, kernel_array

RIDGE = 1e-8  # of the mean of the diagonal


def simplex_weights(gram: Floats, *, steps: int | None = None) -> Floats:
    """Weights w >= 0 with sum 1 that minimize w'Gw.

    If G is the Gram matrix of some vectors, w'Gw is the squared length of their mean with weights
    w. Zero vectors, if there are any, share all weight evenly. Otherwise `RIDGE` times the mean of
    its diagonal is added to the diagonal of G, so that the minimum is unique and equal vectors get
    equal weights.

    `gram` (m, k, k) has m matrices G, each finite, symmetric and positive semidefinite up to
    rounding errors, on any scale. The weights (m, k) are accurate to 1e-12, however close to
    singular G is: each linear system is solved in float64 and then refined with residuals in twice
    the precision. At most `steps` systems are solved per matrix, by default 10 (k + 1); usually
    about as many as w has positive entries. If that is not enough, which has not been observed, the
    weights are the best so far: nonnegative, with sum 1, and no worse than all weight on the
    nearest corner.

    This is an active-set method. For H = G with the ridge, u = w / w'Hw minimizes u'Hu / 2 - sum(u)
    over u >= 0, the problem of Lawson and Hanson [1]_: the corner that helps most enters the
    support of u, the equations Hu = 1 are solved there, and corners with a negative solution leave.
    This terminates, since the minimum decreases with every corner that enters.

    References
    ----------
    .. [1] C. L. Lawson and R. J. Hanson, "Solving Least Squares Problems", Prentice-Hall, 1974,
       chapter 23.

    Examples
    --------
    >>> import numpy as np
    >>> from nearlabel.formulas.simplex import simplex_weights
    >>> vectors = np.array([[-1.2, -0.4], [1.8, -0.8], [-2.2, -0.4]])
    >>> simplex_weights((vectors @ vectors.T)[None]).round(6)
    array([[0.624454, 0.375546, 0.      ]])
    """
    diagonal = np.diagonal(gram, axis1=1, axis2=2)
    if not np.isfinite(diagonal).all():
        raise ValueError("gram must contain only finite numbers")
    at_origin = diagonal == 0
    sharing = at_origin.sum(axis=1)
    weights: Floats = at_origin / np.maximum(sharing, 1)[:, None]
    others = np.flatnonzero(sharing == 0)
    weights[others] = _weights_with_ridge(gram if len(others) == len(gram) else gram[others], steps)
    return weights


def _weights_with_ridge(gram: Floats, steps: int | None) -> Floats:
    m, k, _ = gram.shape
    steps = 10 * (k + 1) if steps is None else steps
    diagonal = np.diagonal(gram, axis1=1, axis2=2)
    # A power of two scales the largest entry close to 1 without rounding.
    exponent = np.frexp(diagonal.max(axis=1))[1].clip(-1000, 1000)
    scale = np.ldexp(1.0, -exponent)
    ridge = RIDGE * (diagonal * scale[:, None]).mean(axis=1)
    weights = np.empty((m, k))
    core = engine.core()
    if core is None:
        for i in range(m):
            weights[i] = _weights_by_numpy(gram[i] * scale[i], float(ridge[i]), steps)
    else:
        core.simplex_weights(kernel_array(gram, np.float64), scale, ridge, steps, weights)
    return weights


def _weights_by_numpy(gram: Floats, ridge: float, steps: int) -> Floats:
    support = [int(gram.diagonal().argmin())]
    u, entered = np.zeros(len(gram)), -1
    exact = False  # plain arithmetic first, which nearly always finds the support
    for _ in range(steps):
        target, rest = _target(gram, ridge, support, exact)
        falling = [corner for corner in support if not target[corner] > 0]
        if falling:  # move towards the target until the first of them reaches zero
            ways = [u[c] / (u[c] - target[c]) if u[c] > 0 else 0.0 for c in falling]
            leaving = falling[int(np.argmin(ways))]
            u = np.maximum(u + min(ways) * (target - u), 0)
            u[leaving] = 0
            support.remove(leaving)
            if leaving == entered and min(ways) == 0:  # only rounding errors remain
                if exact:
                    break
                exact = True
            continue
        u = target
        rest[support] = -np.inf
        entered = int(rest.argmax())
        # A corner gets the weight rest / sum(u) over at least the ridge; with less than 2^-46 it
        # stays at zero.
        noise = 2.0**-46 * ridge if exact else 16 * np.finfo(np.float64).eps
        if rest[entered] > noise * u.sum():
            support.append(entered)
        elif exact:
            break
        else:
            exact = True
    return np.asarray(u / u.sum(), np.float64)


def _target(gram: Floats, ridge: float, support: list[int], exact: bool) -> tuple[Floats, Floats]:
    """The solution of Hu = 1 on the support, 0 elsewhere; and 1 - Hu."""
    H = gram[np.ix_(support, support)] + ridge * np.eye(len(support))
    high, low = np.zeros((2, len(support)))  # together the solution
    rest = np.ones(len(gram))
    for _ in range(16 if exact else 1):  # three are usual
        change = np.linalg.solve(H, rest[support])
        tail = low + change
        low = tail - ((high + tail) - high)
        high = high + tail
        rest = _rest(gram, ridge, support, high, low) if exact else 1 - gram[:, support] @ high
        if np.abs(change).max() <= 2.0**-60 * high.sum():  # too small to matter
            break
    u = np.zeros(len(gram))
    u[support] = high
    return u, rest


def _rest(gram: Floats, ridge: float, support: list[int], high: Floats, low: Floats) -> Floats:
    """1 - H (high + low), effectively rounded once."""
    products, errors = _exact_products(gram[:, support], high)
    ridges, ridge_errors = np.zeros((2, len(gram)))
    ridges[support], ridge_errors[support] = _exact_products(ridge, high)
    small = gram[:, support] @ low
    small[support] += ridge * low
    parts = np.column_stack([products, errors, ridges, ridge_errors, small])
    return np.array([math.fsum([1.0, *row]) for row in (-parts).tolist()])


def _exact_products(a: Floats | float, b: Floats) -> tuple[Array, Array]:
    """Products and their rounding errors (Dekker)."""
    product = a * b
    (a_upper, a_lower), (b_upper, b_lower) = _halves(a), _halves(b)
    rest = ((product - a_upper * b_upper) - a_lower * b_upper) - a_upper * b_lower
    return product, a_lower * b_lower - rest


def _halves(number: Floats | float) -> tuple[Floats, Floats]:
    """The upper and the lower half of the digits."""
    wide = 134217729.0 * number  # 2**27 + 1
    upper = wide - (wide - number)
    return np.asarray(upper), np.asarray(number - upper)
