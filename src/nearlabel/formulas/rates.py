"""The rate z of exp(-z d), fitted to the ranking loss on training rows: by a grid or by gradients.

Rates are tried as zeta = z times the median distance of a neighbor, so that the scale of the
features does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nearlabel.formulas.noisy_or import HIGHEST_RATE, LOWEST_RATE
from nearlabel.formulas.rate_losses import RateTrial
from nearlabel.graph import NeighborGraph

RELATIVE_RATES = 2.0 ** np.linspace(-4, 7, 23)
_SECTIONS = 12  # of the interval around the best of these: to 1/300 of its width
_GOLDEN = (np.sqrt(5) - 1) / 2
_STEPS, _STEP, _BATCH = 200, 0.5, 128  # of the gradient


def median_distance(graph: NeighborGraph) -> float:
    """The median distance to a neighbor, the unit of 1 / z; 1 if all are 0.

    Distances of 0 are left out: at these a label is certain at every rate.
    """
    positive = graph.distances[graph.distances > 0]
    return float(np.median(positive)) if positive.size else 1.0


def rate_by_grid(trial: RateTrial, unit: float) -> float:
    """The rate of the least loss: on a grid, then by golden section around its best point.

    Parameters
    ----------
    trial : RateTrial
    unit : float
        The median distance.
    """
    best, least = _best_of_grid(trial, unit)
    tried = {float(RELATIVE_RATES[best]): least}

    def loss(log_zeta: float) -> float:
        zeta = float(np.exp(log_zeta))
        tried[zeta] = trial.loss(_rate(zeta, unit))
        return tried[zeta]

    around = RELATIVE_RATES[[max(best - 1, 0), min(best + 1, len(RELATIVE_RATES) - 1)]]
    _golden_section(loss, *np.log(around))
    # The loss has steps and more than one valley: what was best counts, not where it ended.
    return _rate(min(tried, key=lambda zeta: (tried[zeta], zeta)), unit)


def rate_by_gradient(trial: RateTrial, unit: float, random: Any) -> float:
    """The rate to which stochastic gradients of the surrogate lead from the best of the grid.

    Batches of rows, steps in log z, and the mean of the second half of them (Polyak's average). The
    best of the grid stays where that has no smaller loss: the surrogate is not the ranking loss,
    and not convex.

    Parameters
    ----------
    trial : RateTrial
    unit : float
        The median distance.
    random : numpy.random.RandomState
    """
    best, least = _best_of_grid(trial, unit)
    low, high = np.log(RELATIVE_RATES[[0, -1]])
    place, path = np.log(RELATIVE_RATES[best]), []
    for _ in range(_STEPS):
        rows = random.choice(len(trial), min(_BATCH, len(trial)), replace=False)
        slope = trial.surrogate(_rate(np.exp(place), unit), rows)[1]
        place = np.clip(place - _STEP * slope, low, high)
        path.append(place)
    rate = _rate(np.exp(np.mean(path[_STEPS // 2 :])), unit)
    return rate if trial.loss(rate) < least else _rate(RELATIVE_RATES[best], unit)


def _best_of_grid(trial: RateTrial, unit: float) -> tuple[int, float]:
    """The place of the least loss, of equal ones the lowest rate, and that loss."""
    losses = [trial.loss(_rate(zeta, unit)) for zeta in RELATIVE_RATES]
    best = int(np.argmin(losses))
    return best, losses[best]


def _rate(zeta: float, unit: float) -> float:
    return float(np.clip(zeta / unit, LOWEST_RATE, HIGHEST_RATE))


def _golden_section(loss: Callable[[float], float], low: float, high: float) -> None:
    """Look for a minimum of `loss` between two places, by its calls."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(_SECTIONS - 2):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = loss(right)
