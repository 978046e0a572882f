"""Boosting straight from the formulas: plain loops over rows, labels and cuts."""

import math
from itertools import pairwise


def conditions(X):
    """(feature, cut) of all stumps: midpoints between distinct values, the lowest first."""
    found = []
    for feature in range(len(X[0])):
        values = sorted({float(row[feature]) for row in X if not math.isnan(row[feature])})
        for low, high in pairwise(values):
            middle = low / 2 + high / 2
            found.append((feature, middle if low <= middle < high else low))
    return found or [(feature, math.inf) for feature in range(len(X[0]))]


def side(x, feature, cut):
    """0 left, 1 right, None where the value is missing."""
    return None if math.isnan(x[feature]) else int(x[feature] > cut)


def block_weights(X, Y, W, rows, condition):
    """W+ and W- of each side and label, [side][label][0 or 1], and the weight without a side."""
    q = len(Y[0])
    blocks, without = [[[0.0, 0.0] for _ in range(q)] for _ in range(2)], 0.0
    for i in rows:
        where = side(X[i], *condition)
        for label in range(q):
            if where is None:
                without += W[i][label]
            else:
                blocks[where][label][0 if Y[i][label] else 1] += W[i][label]
    return blocks, without


def loss(X, Y, W, rows, condition):
    """Z = W0 + 2 sum of sqrt(W+ W-) of the rows that are given."""
    blocks, without = block_weights(X, Y, W, rows, condition)
    return without + 2 * sum(math.sqrt(a * b) for block in blocks for a, b in block)


def division(X, rows, condition):
    """How a condition splits rows; the same for its mirror image."""
    left = frozenset(i for i in rows if side(X[i], *condition) == 0)
    right = frozenset(i for i in rows if side(X[i], *condition) == 1)
    return frozenset([left, right])


def outputs(X, Y, W, rows, condition, smoothing):
    """1/2 ln((W+ + e) / (W- + e)) of both sides, [side][label]."""
    blocks, _ = block_weights(X, Y, W, rows, condition)
    return [[math.log((a + smoothing) / (b + smoothing)) / 2 for a, b in block] for block in blocks]


def multiplied(X, Y, W, rows, condition, values):
    """W exp(-y o) for the rows that are given, others as they are."""
    found = [list(weights) for weights in W]
    for i in rows:
        where = side(X[i], *condition)
        if where is not None:
            for label, output in enumerate(values[where]):
                found[i][label] *= math.exp(-output if Y[i][label] else output)
    return found
