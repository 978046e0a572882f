"""Quinlan's criteria in bits, and the tolerance with which J48 compares them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from nearlabel.common.arrays import Floats

TOLERANCE = 1e-6
"""J48 takes numbers for equal that are no further apart."""


def x_log_x(x: Any) -> Floats:
    """Return x log2 x, and 0 for what is no weight at all."""
    x = np.asarray(x, np.float64)
    safe = np.where(x < TOLERANCE, 1.0, x)
    return np.asarray(safe * np.log2(safe))


def total_entropy(counts: Floats) -> Floats:
    """Weight times entropy of class weights, shape (classes, ...): N log N - sum of n log n."""
    return np.asarray(x_log_x(counts.sum(axis=0)) - x_log_x(counts).sum(axis=0))


def clearly_best(values: Any, start: float = 0.0) -> int:
    """The place of the value that is left when each must clearly exceed the best before it.

    -1 if none exceeds `start` clearly. Among values that are equal but for rounding, the first one
    wins. Only a new maximum can exceed the best before it, so that few values are looked at.
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        return -1
    highest = np.maximum.accumulate(values)
    place = -1
    for at in (0, *(np.flatnonzero(values[1:] > highest[:-1]) + 1)):
        if values[at] - start > TOLERANCE:
            start, place = float(values[at]), int(at)
    return place


def majority(counts: Floats) -> int:
    """The class of most weight; of several the first one."""
    return max(clearly_best(counts), 0)


def errors(counts: Floats) -> float:
    """Weight of the rows that a leaf with these class weights gets wrong."""
    return float(counts.sum() - counts[majority(counts)])


def estimated_errors(counts: Floats, confidence: float) -> float:
    """Errors of a leaf on new rows: the upper limit of their binomial proportion, times its weight.

    Wilson's limit with a continuity correction; below one error, and within half an error of the
    weight, it is interpolated.
    """
    n, e = float(counts.sum()), errors(counts)
    return 0.0 if n < TOLERANCE else e + _added_errors(n, e, confidence)


def _added_errors(n: float, e: float, confidence: float) -> float:
    if e < 1:
        none: float = n * (1 - confidence ** (1 / n))
        return none if e == 0 else none + e * (_added_errors(n, 1.0, confidence) - none)
    if e + 0.5 >= n:
        return max(n - e, 0.0)
    z, f = float(ndtri(1 - confidence)), (e + 0.5) / n
    spread = z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))
    return n * (f + z * z / (2 * n) + spread) / (1 + z * z / n) - e
