"""How much of a blend can be learned in a given time."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

from sklearn.base import clone

from nearlabel.blend.blended_neighbors import BlendedNeighbors
from nearlabel.blend.kernel_features import drawn_rows, seed_of
from nearlabel.common.arrays import Csr
from nearlabel.common.validation import check_real
from nearlabel.methods.mlknn import MLkNN

_FEW_ROWS = 1_000  # are learned from in a second or two, whatever the budget is
_SHARE = 32  # a plan is tried on one in so many rows, and on twice as many
_FEWEST_TRIED = 250
_NEIGHBORS = 10  # of ML-kNN alone

# From the best to the fastest: what is left of a blend, and the parameters that say so.
_PLANS: dict[str, dict[str, Any]] = {
    "the whole blend": {},
    "the methods without regressions": {"learn_distance": False, "ridge": False},
    "ML-kNN alone": {
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
        Why, in words; empty where nothing had to be left out.
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
    """The most of a blend that can be learned from rows in so many seconds.

    Each plan is tried on two samples of the rows, and its time follows from theirs. The last plan
    is taken in any case. Times depend on the machine: with a budget, so may the result.
    """
    n, start = Y.shape[0], time.monotonic()
    if seconds is None or n <= _FEW_ROWS:
        return Planned(model, "")
    too_long: list[str] = []
    *plans, last = _PLANS.items()
    for told, parameters in plans:
        tried = clone(model).set_params(**parameters)
        left = seconds - (time.monotonic() - start)
        expected = _expected_seconds(tried, X, Y, left)
        left = seconds - (time.monotonic() - start)
        if expected <= left:
            return Planned(tried, _reason(told, too_long, seconds))
        too_long.append(f"{told} would take {_about(expected)}")
    told, parameters = last
    whole = clone(model).set_params(**parameters)
    return Planned(whole, _reason(told, too_long, seconds))


def _expected_seconds(model: BlendedNeighbors, X: Any, Y: Csr, left: float) -> float:
    """About how long a fit to all rows takes; infinite where a sample says that it is hopeless."""
    n, seed = Y.shape[0], seed_of(model.random_state)
    few = max(_FEWEST_TRIED, n // _SHARE)
    times: list[float] = []
    for count in (few, 2 * few):
        rows = drawn_rows(n, count, seed)
        start = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(model).fit(X[rows], Y[rows])
        times.append(time.monotonic() - start)
        if times[-1] * n / count > 2 * left:
            return float(times[-1] * n / count)
    growth = min(max(math.log2(times[1] / times[0]), 1.0), 2.0)  # of a search: up to the square
    return float(times[1] * (n / (2 * few)) ** growth)


def _reason(told: str, too_long: list[str], seconds: float) -> str:
    if not too_long:
        return ""
    return f"within {_about(seconds).removeprefix('about ')}: {told}, since {', '.join(too_long)}"


def _about(seconds: float) -> str:
    if seconds < 100:
        return f"about {seconds:.2g} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"
