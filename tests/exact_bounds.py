"""Distances in exact fractions, and hill climbing towards rows whose bounds do not hold."""

from fractions import Fraction
from math import isqrt

import numpy as np

from nearlabel.search.exact.row_arithmetic import core_rows

_DIGITS = 200  # binary ones of a square root


def exactly(metric, a, b):
    """The distance of two rows in exact fractions, squared for euclidean."""
    a, b = ([Fraction(value) for value in row.tolist()] for row in (a, b))
    if metric == "cosine":
        squared = sum(x * x for x in a) * sum(y * y for y in b)
        if squared == 0:
            return Fraction(1)
        inner = squared.numerator * squared.denominator << 2 * _DIGITS
        length = Fraction(isqrt(inner), squared.denominator << _DIGITS)
        return 1 - sum(x * y for x, y in zip(a, b, strict=True)) / length
    differences = [x - y for x, y in zip(a, b, strict=True)]
    if metric == "manhattan":
        return sum(map(abs, differences))
    return sum(difference * difference for difference in differences)


def packed(bounds, rows, metric, stripe=None):
    """All rows packed for bounds, and their errors."""
    chosen = np.arange(rows.shape[0], dtype=np.int32)
    return bounds.pack(rows, core_rows(rows, metric), chosen, stripe)


def block_of(bounds, queries, base):
    """The lower bounds of all pairs of packed rows."""
    memory = np.empty(len(queries) * len(base), np.float32)
    return bounds.block(bounds.as_queries(queries), base, memory)


def closest(bounds, queries, base, metric):
    """How close the lower and the upper bound of some pair come to its distance.

    A share of what is between the two bounds; below zero, a bound does not hold.
    """
    (asked, left), (among, right) = (packed(bounds, rows, metric) for rows in (queries, base))
    lower = block_of(bounds, asked, among)
    shares = [Fraction(1)]
    for i, a in enumerate(queries):
        for j, b in enumerate(base):
            if not np.isfinite(left[i] + right[j]):
                continue  # the query is given up
            error = Fraction(float(left[i])) + Fraction(float(right[j]))
            distance = exactly(metric, a, b) * Fraction(bounds.scale)
            above = distance - Fraction(float(lower[i, j]))
            shares += [above / error, (error - above) / error]
    return min(shares)


def climb(bounds_of, queries, base, metric, rng, steps):
    """Change rows at random, and keep what brings a bound closer to a distance.

    Returns the share of `closest`, and the changed queries and base rows. `bounds_of` makes the
    bounds of base rows, or returns None if these cannot have any.
    """
    best, rows = Fraction(1), np.vstack([queries, base])
    for step in range(steps + 1):
        changed = rows.copy() if step else rows
        for _ in range(int(rng.integers(1, 4)) if step else 0):
            _change(changed, rng)
        asked, among = changed[: len(queries)], changed[len(queries) :]
        bounds = bounds_of(among)
        if bounds is None:
            continue
        share = closest(bounds, asked, among, metric)
        if share < best:
            best, rows = share, changed
    return best, rows[: len(queries)], rows[len(queries) :]


def _change(rows, rng):
    """Change one number, or a whole row, as rounding might mind."""
    n, d = rows.shape
    row, feature, other = int(rng.integers(n)), int(rng.integers(d)), int(rng.integers(n))
    one = rows[row, feature]
    largest = np.abs(rows[row]).max()
    kind = int(rng.integers(8))
    with np.errstate(over="ignore", under="ignore"):
        if kind == 0:
            one = -one
        elif kind == 1:
            one = np.nextafter(one, rng.choice([-np.inf, np.inf]).astype(rows.dtype))
        elif kind == 2:  # halfway between two codes
            one = largest / 127 * (int(rng.integers(-127, 127)) + 0.5)
        elif kind == 3:
            one = largest * rng.choice([-1.0, 1.0, 0.0])
        elif kind == 4:
            one = rows[other, feature]
        elif kind == 5:
            rows[row] = rows[other]
            one = one * (1 + 2.0 ** -int(rng.integers(1, 30)))
        elif kind == 6:
            one = one * 2.0 ** int(rng.integers(-3, 4))
        else:
            one = np.float32(one) if abs(one) < 1e38 else one
    if np.isfinite(one):
        rows[row, feature] = one
