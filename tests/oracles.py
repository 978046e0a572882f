"""Slow literal versions, straight from the formulas: what the package is compared with."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def distance(x, y, metric="euclidean"):
    """The canonical distance: float64, terms added one after the other in feature order."""
    x, y = [float(v) for v in x], [float(v) for v in y]
    if metric in ("euclidean", "sqeuclidean"):
        total = 0.0
        for a, b in zip(x, y, strict=True):
            total += (a - b) * (a - b)
        return math.sqrt(total) if metric == "euclidean" else total
    if metric == "manhattan":
        total = 0.0
        for a, b in zip(x, y, strict=True):
            total += abs(a - b)
        return total
    if metric == "chebyshev":
        return max(abs(a - b) for a, b in zip(x, y, strict=True))
    if metric == "hamming":
        return sum(a != b for a, b in zip(x, y, strict=True)) / len(x)
    if metric == "jaccard":
        either = sum(a != 0 or b != 0 for a, b in zip(x, y, strict=True))
        differ = sum((a != 0) != (b != 0) for a, b in zip(x, y, strict=True))
        return differ / either if either else 0.0
    assert metric == "cosine"
    if not any(x) or not any(y):
        return 1.0
    return distance(_unit(x), _unit(y), "sqeuclidean") / 2


def _unit(x):
    scale = math.frexp(max(abs(v) for v in x))[1]
    x = [math.ldexp(v, -scale) for v in x]
    total = 0.0
    for v in x:
        total += v * v
    return [v / math.sqrt(total) for v in x]


def neighbors(X, k, queries=None, metric="euclidean"):
    """Rows and distances of the k nearest by (distance, row), a row left out of its own."""
    indices, distances = [], []
    for i, query in enumerate(X if queries is None else queries):
        found = sorted(
            (distance(query, x, metric), j)
            for j, x in enumerate(X)
            if not (queries is None and i == j)
        )[:k]
        indices.append([j for _, j in found])
        distances.append([d for d, _ in found])
    return np.array(indices), np.array(distances)


def mlknn(Y, training_neighbors, query_neighbors, s):
    """ML-kNN in exact fractions.

    Returns posteriors, decisions, prior, and for each query and label the two likelihoods.
    """
    n, q, k, s = len(Y), len(Y[0]), len(training_neighbors[0]), Fraction(s)
    half = Fraction(1, 2)
    prior = [_over(s + sum(int(row[m]) for row in Y), 2 * s + n, half) for m in range(q)]
    seen = [[[0] * (k + 1) for _ in range(q)] for _ in range(2)]  # [carried][label][count]
    for i in range(n):
        for label in range(q):
            count = sum(int(Y[j][label]) for j in training_neighbors[i])
            seen[int(Y[i][label])][label][count] += 1
    posterior, decided, likelihoods = [], [], []
    for found in query_neighbors:
        row, sets, both = [], [], []
        for label in range(q):
            count = sum(int(Y[j][label]) for j in found)
            with_label, without = (
                _over(
                    s + seen[carried][label][count],
                    s * (k + 1) + sum(seen[carried][label]),
                    Fraction(1, k + 1),
                )
                for carried in (1, 0)
            )
            yes, no = prior[label] * with_label, (1 - prior[label]) * without
            row.append(_over(yes, yes + no, prior[label]))
            sets.append(row[-1] >= half)
            both.append((with_label, without))
        posterior.append(row)
        decided.append(sets)
        likelihoods.append(both)
    return posterior, np.array(decided, int), prior, likelihoods


def _over(a, b, otherwise):
    return a / b if b else otherwise


# ---- metrics, each row and label by itself, from the table of conventions ---------------------


def ranks(scores, ties):
    """Rank of every label: max and min over equal scores, or ties by higher or lower column."""
    q = len(scores)
    if ties == "max":
        return [sum(scores[m] >= scores[a] for m in range(q)) for a in range(q)]
    if ties == "min":
        return [1 + sum(scores[m] > scores[a] for m in range(q)) for a in range(q)]
    sign = -1 if ties == "higher" else 1
    order = sorted(range(q), key=lambda a: (-scores[a], sign * a))
    return [order.index(a) + 1 for a in range(q)]


def metric(name, Y, scores, predicted, convention, at):
    """The value of one metric, or None where the convention does not have it."""
    values = [
        _row(name, truth, list(score), convention, at)
        for truth, score in zip(Y.tolist(), scores.tolist(), strict=True)
    ]
    if name in ("hamming_loss", "subset_accuracy", "jaccard", "example_f1"):
        values = [
            _set_row(name, truth, decided, convention)
            for truth, decided in zip(Y.tolist(), predicted.tolist(), strict=True)
        ]
    if name == "macro_f1":
        values = [
            _f1(truth, decided, convention)
            for truth, decided in zip(Y.T.tolist(), predicted.T.tolist(), strict=True)
        ]
    if name == "micro_f1":
        values = [_f1(Y.ravel().tolist(), predicted.ravel().tolist(), convention)]
    if "absent" in values:
        return None
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else math.nan


def _row(name, truth, scores, convention, at):
    q = len(truth)
    Y = [a for a in range(q) if truth[a]]
    others = [a for a in range(q) if not truth[a]]
    empty, full = not Y, not others
    high = convention in ("lamda", "mulan")  # index ranks, larger column first
    rank = ranks(scores, "higher" if high else "max")
    if name == "one_error":
        if convention == "sklearn":
            return "absent"
        if convention == "mulan":
            return 1.0 if empty else float(not truth[rank.index(1)])
        if empty or full:
            return None
        return float(not any(truth[a] for a in range(q) if scores[a] == max(scores)))
    if name == "coverage":
        if empty:
            return {"paper": None, "lamda": -1.0, "mulan": 0.0, "sklearn": 0.0}[convention]
        return max(rank[a] for a in Y) - (convention != "sklearn")
    if name == "ranking_loss":
        if empty or full:
            return None if convention in ("paper", "lamda") else 0.0
        if convention == "mulan":
            wrong = sum(rank[b] < rank[a] for a in Y for b in others)
        else:
            wrong = sum(scores[a] <= scores[b] for a in Y for b in others)
        return wrong / (len(Y) * len(others))
    if name == "average_precision":
        if empty:
            return 1.0 if convention == "sklearn" else None
        if full and convention in ("paper", "lamda"):
            return None
        return sum(sum(rank[b] <= rank[a] for b in Y) / rank[a] for a in Y) / len(Y)
    worst = ranks(scores, "max")
    if name == "mean_inverse_rank":
        return None if empty else sum(1 / worst[a] for a in Y) / len(Y)
    if name == "success_rate":
        return None if empty else float(any(worst[a] <= at for a in Y))
    if name == "precision_at":
        at, lower = min(at, q), ranks(scores, "lower")
        return sum(lower[a] <= at for a in Y) / at
    return None


def _set_row(name, truth, decided, convention):
    if name == "hamming_loss":
        return sum(a != b for a, b in zip(truth, decided, strict=True)) / len(truth)
    if name == "subset_accuracy":
        return float(truth == decided)
    if name == "example_f1":
        return _f1(truth, decided, convention)
    both = sum(a and b for a, b in zip(truth, decided, strict=True))
    either = sum(a or b for a, b in zip(truth, decided, strict=True))
    return both / either if either else float(convention != "sklearn")


def _f1(truth, decided, convention):
    both = sum(a and b for a, b in zip(truth, decided, strict=True))
    total = sum(truth) + sum(decided)
    return 2 * both / total if total else float(convention != "sklearn")


# ---- IBLR ----------------------------------------------------------------------------------------


def logistic(inputs, carried, ridge):
    """Weights and intercept that minimize log loss + ridge * |weights|^2, in long double.

    Newton's method, long steps halved until the objective does not grow. A label of one class has
    weights zero and an infinite intercept.
    """
    inputs = np.asarray(inputs, np.longdouble)
    n, m = inputs.shape
    y = np.asarray(carried, np.longdouble)
    if y.min() == y.max():
        return np.zeros(m), math.inf if y[0] else -math.inf
    A = np.hstack([inputs, np.ones((n, 1), np.longdouble)])
    penalty = np.append(np.full(m, np.longdouble(ridge)), 0)

    def objective(w):
        z = A @ w
        return np.sum(np.logaddexp(0, np.where(y == 1, -z, z))) + np.sum(penalty * w * w)

    w = np.zeros(m + 1, np.longdouble)
    for _ in range(100):
        z = A @ w
        p = 1 / (1 + np.exp(-z))
        # 1 - p where the label is carried, without the cancellation.
        residual = np.where(y == 1, -1 / (1 + np.exp(z)), p)
        gradient = A.T @ residual + 2 * penalty * w
        hessian = (A * (p * (1 / (1 + np.exp(z))))[:, None]).T @ A + 2 * np.diag(penalty)
        step = np.linalg.solve(hessian.astype(float), gradient.astype(float))
        # Near the minimum the objective is flat to its last digit: there Newton knows better.
        while np.abs(step).max() > 1e-4 and not objective(w - step) <= objective(w):
            step = step / 2
        w = w - step
        if np.abs(step).max() <= 1e-18 * (1 + np.abs(w).max()):
            break
    return w[:-1], w[-1]


def iblr(X, Y, training_neighbors, queries, query_neighbors, ridge, keep_features):
    """Probabilities of IBLR-ML, or ML+ with the features: standardized inputs, ridge on these."""

    def inputs(rows, neighbors):
        omega = np.array([Y[found].mean(axis=0) for found in neighbors], np.longdouble)
        return np.hstack([rows, omega]) if keep_features else omega

    X, queries = np.asarray(X, np.longdouble), np.asarray(queries, np.longdouble)
    train, asked = inputs(X, training_neighbors), inputs(queries, query_neighbors)
    varies = train.max(axis=0) != train.min(axis=0)
    train, asked = train[:, varies], asked[:, varies]
    mean, std = train.mean(axis=0), train.std(axis=0)
    train, asked = (train - mean) / std, (asked - mean) / std
    columns = []
    for label in range(Y.shape[1]):
        weights, intercept = logistic(train, Y[:, label], ridge)
        with np.errstate(over="ignore"):
            columns.append(1 / (1 + np.exp(-(asked @ weights + intercept))))
    return np.array(columns, float).T


# ---- class-balanced k nearest neighbors ----------------------------------------------------------


def class_neighbors(X, Y, per_class, query, left_out=None, metric="euclidean"):
    """Rows and distances of N*(t): of each label the nearest rows that carry it, joined."""
    order = sorted((distance(query, x, metric), j) for j, x in enumerate(X) if j != left_out)
    members = {}
    for label in range(len(Y[0])):
        carriers = [(d, j) for d, j in order if Y[j][label]]
        members.update({j: d for d, j in carriers[:per_class]})
    return dict(sorted(members.items()))


def balanced_scores(Y, members, sigma):
    """Sums of exp(-d^2/sigma^2) over the members that carry each label; 1 for d = 0."""
    d = np.array(list(members.values()), float)
    kappa = np.array(d == 0, float) if sigma == 0 else np.exp(-((d / sigma) ** 2))
    by_row = dict(zip(members, kappa.tolist(), strict=True))
    return [sum(by_row[j] for j in members if Y[j][label]) for label in range(len(Y[0]))]


def best_f1_cut(scores, carried):
    """Of the lowest score and all midpoints between two, the lowest with the best F1."""
    levels = sorted(set(scores))
    best, chosen = Fraction(0), math.inf
    for place, level in enumerate(levels):
        given = [score >= level for score in scores]
        both = sum(a and b for a, b in zip(given, carried, strict=True))
        f1 = Fraction(2 * int(both), sum(given) + int(sum(carried)))
        if f1 > best:
            below = levels[max(place - 1, 0)]
            middle = below + (level - below) / 2
            best, chosen = f1, middle if middle > below else level
    return chosen


def balancedknn(X, Y, per_class, queries, bandwidth="median"):
    """Scores of queries, the bandwidth, and the cut of each label."""
    n, q = len(Y), len(Y[0])
    own = [class_neighbors(X, Y, per_class, X[i], i) for i in range(n)]
    found = sorted(d for members in own for d in members.values())
    sigma = bandwidth
    if bandwidth == "median":
        sigma = float(np.median(found)) if found else 1.0
    left_out = np.array([balanced_scores(Y, members, sigma) for members in own])
    cuts = [best_f1_cut(left_out[:, label].tolist(), Y[:, label]) for label in range(q)]
    scores = [balanced_scores(Y, class_neighbors(X, Y, per_class, t), sigma) for t in queries]
    return np.array(scores), sigma, np.array(cuts)
