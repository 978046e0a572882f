"""How much of a blend can be fitted in a given time."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

from sklearn.base import clone

from nearlabel.blend.blended_neighbors import BlendedNeighbors
from nearlabel.blend.rows import drawn_rows, seed_of
from nearlabel.common.arrays import Csr
from nearlabel.common.validation import check_real
from nearlabel.methods.mlknn import MLkNN

_FEW_ROWS = 1_000  # take a second or two, so the budget does not matter
_SHARE = 32  # a plan is tried on one row in 32, and on twice as many
_FEWEST_TRIED = 250
_NEIGHBORS = 10  # of ML-kNN alone

# From the best to the fastest: what remains of a blend, and its parameters.
_PLANS: dict[str, dict[str, Any]] = {
    "the whole blend": {},
    "the blend without a forest": {"forest": False},
    "the methods alone": {"forest": False, "learn_distance": False, "ridge": False},
    "ML-kNN alone": {
        "forest": False,
        "learn_distance": False,
        "ridge": False,
        "readings": [MLkNN(_NEIGHBORS)],
        "n_neighbors": _NEIGHBORS,
    },
}


class Planned(NamedTuple):
    """A blend that fits into a time budget.

    Attributes
    ----------
    model : BlendedNeighbors
        Unfitted.
    told : str
        The reason, as text; empty if nothing had to be left out.
    """

    model: BlendedNeighbors
    told: str


def check_time_budget(seconds: Any) -> float | None:
    """A number of seconds above 0, or None."""
    if seconds is None:
        return None
    found: float = check_real(seconds, "time_budget", low=0)
    if found == 0:
        raise ValueError("time_budget must be above 0 seconds, or None; got 0")
    return found


def planned(model: BlendedNeighbors, X: Any, Y: Csr, seconds: float | None) -> Planned:
    """The largest part of a blend that can be fitted to the rows in that many seconds.

    Each plan is tried on one or two samples of the rows, from which its time is extrapolated. The
    last plan is used in any case. Times depend on the machine, and with a budget so may the result.
    """
    n, start = Y.shape[0], time.monotonic()
    if seconds is None or n <= _FEW_ROWS:
        return Planned(model, "")
    too_long: list[str] = []
    *plans, last = _PLANS.items()
    for told, parameters in plans:
        tried = clone(model).set_params(**parameters)
        expected = _expected_seconds(tried, X, Y, seconds - (time.monotonic() - start))
        left = seconds - (time.monotonic() - start)
        if expected <= left:
            return Planned(tried, _reason(told, too_long, seconds))
        too_long.append(f"{told} would take {_about(expected)}, with {max(left, 0):.2g} s left")
    told, parameters = last
    return Planned(clone(model).set_params(**parameters), _reason(told, too_long, seconds))


def _expected_seconds(model: BlendedNeighbors, X: Any, Y: Csr, left: float) -> float:
    """About how long a fit to all rows takes.

    It grows at least linearly and at most quadratically with the rows: if one sample leaves no
    doubt, there is no second one.
    """
    n = Y.shape[0]
    few = max(_FEWEST_TRIED, n // _SHARE)
    first = _seconds(model, X, Y, few)
    if first * n / few > left or first * (n / few) ** 2 <= left / 2:
        return float(first * n / few)
    second = _seconds(model, X, Y, 2 * few)
    growth = min(max(math.log2(second / first), 1.0), 2.0)
    return float(second * (n / (2 * few)) ** growth)


def _seconds(model: BlendedNeighbors, X: Any, Y: Csr, count: int) -> float:
    """How long a fit to that many rows takes."""
    rows = drawn_rows(Y.shape[0], count, seed_of(model.random_state))
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(X[rows], Y[rows])
    return time.monotonic() - start


def _reason(told: str, too_long: list[str], seconds: float) -> str:
    if not too_long:
        return ""
    return f"within {_about(seconds).removeprefix('about ')}: {told}; {'; '.join(too_long)}"


def _about(seconds: float) -> str:
    if seconds < 100:
        return f"about {seconds:.2g} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"
