"""How much of a blend can be fitted in a given time."""

from __future__ import annotations

import math
import time
import warnings

from sklearn.base import clone

from nearlabel.blend.blended_neighbors import BlendedNeighbors
from nearlabel.blend.rows import drawn_rows, seed_of
from nearlabel.common.arrays import Csr, Matrix, Tree
from nearlabel.methods.mlknn import MLkNN

_FEW_ROWS = 1_000  # take a second or two, so the budget does not matter
_FEWEST_TRIED = 250
_METHODS_ALONE = {"forest": False, "learn_distance": False, "ridge": False}
# From the best to the fastest: what remains of a blend, and its parameters.
_PLANS: dict[str, Tree] = {
    "the whole blend": {},
    "the blend without a forest": {"forest": False},
    "the methods alone": _METHODS_ALONE,
    "ML-kNN alone": {**_METHODS_ALONE, "readings": [MLkNN(10)], "n_neighbors": 10},
}


def planned(
    model: BlendedNeighbors, X: Matrix, Y: Csr, seconds: float
) -> tuple[BlendedNeighbors, str]:
    """The largest part of a blend that can be fitted to the rows in that many seconds.

    Each plan is tried on one or two samples of the rows, from which its time is extrapolated. The
    last plan is used in any case. Times depend on the machine, and with a budget so may the result.

    Returns
    -------
    model : BlendedNeighbors
        Unfitted.
    reason : str
        Why parts are left out, as text; empty if nothing had to be.
    """
    if Y.shape[0] <= _FEW_ROWS:
        return model, ""
    end, too_long = time.monotonic() + seconds, []
    for plan, parameters in _PLANS.items():
        part = clone(model).set_params(**parameters)
        if plan == [*_PLANS][-1]:
            break
        expected = _expected_seconds(part, X, Y, end - time.monotonic())
        left = end - time.monotonic()
        if expected <= left:
            break
        too_long.append(f"{plan} would take {_about(expected)}, with {max(left, 0):.2g} s left")
    if not too_long:
        return part, ""
    return part, f"within {_about(seconds).removeprefix('about ')}: {plan}; {'; '.join(too_long)}"


def _expected_seconds(model: BlendedNeighbors, X: Matrix, Y: Csr, left: float) -> float:
    """About how long a fit to all rows takes.

    It grows at least linearly and at most quadratically with the rows: if a sample of one row in 32
    leaves no doubt, there is no second one, of twice as many.
    """

    def seconds(count: int) -> float:
        rows, start = drawn_rows(n, count, seed_of(model.random_state)), time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(model).fit(X[rows], Y[rows])
        return time.monotonic() - start

    n = Y.shape[0]
    few = max(_FEWEST_TRIED, n // 32)
    first = seconds(few)
    if first * n / few > left or first * (n / few) ** 2 <= left / 2:
        return float(first * n / few)
    second = seconds(2 * few)
    growth = min(max(math.log2(second / first), 1.0), 2.0)
    return float(second * (n / (2 * few)) ** growth)


def _about(seconds: float) -> str:
    if seconds < 100:
        return f"about {seconds:.2g} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"
