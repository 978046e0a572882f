"""Slow literal versions straight from the formulas, for comparison with the package."""

import itertools
import math
from decimal import Decimal, localcontext
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
    if not any(a and b for a, b in zip(_unit(x), _unit(y), strict=True)):
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


def mlknn(Y, training_neighbors, query_neighbors, s, rows=None):
    """ML-kNN in exact fractions, learned from some rows, by default all.

    Returns posteriors, decisions, prior, and for each query and label the two likelihoods.
    """
    rows = range(len(Y)) if rows is None else rows
    n, q, k, s = len(rows), len(Y[0]), len(training_neighbors[0]), Fraction(s)
    half = Fraction(1, 2)
    prior = [_over(s + sum(int(Y[i][m]) for i in rows), 2 * s + n, half) for m in range(q)]
    seen = [[[0] * (k + 1) for _ in range(q)] for _ in range(2)]  # [carried][label][count]
    for i in rows:
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


def even_mlknn(Y, training_neighbors, query_neighbors, s, left_out=None, cluster=None):
    """ML-kNN with one carrier of each label left out of every count, in exact fractions.

    Each draw of a carrier is made in turn: for a row that carries the label it is the row itself.
    Only the rows of a `cluster`, by default all, are in the tables; the row `left_out` is not, and
    is the only query. Returns posteriors, and for each query and label those of each draw.
    """
    rows = [i for i in (range(len(Y)) if cluster is None else cluster) if i != left_out]
    n, q, k, s = len(rows), len(Y[0]), len(training_neighbors[0]), Fraction(s)
    half = Fraction(1, 2)
    posterior, draws = [[] for _ in query_neighbors], [[] for _ in query_neighbors]
    for label in range(q):
        carriers = [i for i in range(len(Y)) if Y[i][label]]

        def votes(found, out, label=label):
            return sum(int(Y[j][label]) for j in found if j != out)

        seen = [[Fraction(0)] * (k + 1) for _ in range(2)]  # [carried][count]
        for i in rows:
            drawn = [i] if Y[i][label] else carriers or [None]
            for out in drawn:
                count = votes(training_neighbors[i], out)
                seen[int(Y[i][label])][count] += Fraction(1, len(drawn))
        n_l = sum(int(Y[i][label]) for i in rows)
        prior = _over(s + n_l, 2 * s + n, half)
        for query, found in enumerate(query_neighbors):
            told = []
            own = left_out is not None and Y[left_out][label]
            for out in [left_out] if own else carriers or [None]:
                count, uniform = votes(found, out), Fraction(1, k + 1)
                with_label = _over(s + seen[1][count], s * (k + 1) + n_l, uniform)
                without = _over(s + seen[0][count], s * (k + 1) + n - n_l, uniform)
                yes, no = prior * with_label, (1 - prior) * without
                told.append(_over(yes, yes + no, prior))
            posterior[query].append(sum(told) / len(told))
            draws[query].append(told)
    return posterior, draws


def _over(a, b, otherwise):
    return a / b if b else otherwise


# ---- cuts -------------------------------------------------------------------------------------


def f1_of(truth, given):
    both = sum(bool(a) and bool(b) for a, b in zip(truth, given, strict=True))
    total = sum(map(bool, truth)) + sum(map(bool, given))
    return Fraction(2 * both, total) if total else Fraction(0)


def f1_cut(scores, truth):
    """The lowest of the best cuts between scores of one label; infinite where none is right."""
    best, cut = Fraction(0), math.inf
    levels = sorted(set(scores), reverse=True)
    for level, lower in zip(levels, [*levels[1:], levels[-1]], strict=True):
        got = f1_of(truth, [score >= level for score in scores])
        if got >= best and got > 0:
            best, cut = got, (level + lower) / 2
    return cut


def hamming_cut(scores, truth):
    """The highest of the best cuts over all labels; infinite where none is better than nothing."""
    pairs = list(zip(np.ravel(scores).tolist(), np.ravel(truth).tolist(), strict=True))
    best, cut = sum(y for _, y in pairs), math.inf
    levels = sorted({score for score, _ in pairs}, reverse=True)
    for level, lower in zip(levels, [*levels[1:], levels[-1]], strict=True):
        wrong = sum((score >= level) != y for score, y in pairs)
        if wrong < best:
            best, cut = wrong, (level + lower) / 2
    return cut


# ---- BRkNN ------------------------------------------------------------------------------------


def brknn(Y, neighbors, distances, weights, fill):
    """Shares of votes and label sets."""
    shares, sets = [], []
    n_l = [sum(int(row[m]) for row in Y) for m in range(len(Y[0]))]
    for found, far in zip(neighbors.tolist(), distances.tolist(), strict=True):
        if weights == "uniform":
            votes = [Fraction(1)] * len(found)
        elif 0 in far:
            votes = [Fraction(d == 0) for d in far]
        else:
            votes = [1 / Fraction(d) for d in far]
        share = [
            sum(v for v, j in zip(votes, found, strict=True) if Y[j][m]) / sum(votes)
            for m in range(len(n_l))
        ]
        best = sorted(range(len(n_l)), key=lambda m: (-share[m], -n_l[m], m))
        chosen = {m for m in range(len(n_l)) if share[m] > Fraction(1, 2)}
        if fill == "top" and not chosen and len(n_l) > 1:
            chosen = {best[0]}
        if fill == "cardinality" and len(n_l) > 1:
            mean = Fraction(sum(int(sum(Y[j])) for j in found), len(found))
            chosen = set(best[: math.floor(mean + Fraction(1, 2))])
        shares.append(share)
        sets.append([int(m in chosen) for m in range(len(n_l))])
    return shares, sets


# ---- Mallows ----------------------------------------------------------------------------------


def mallows(Y, neighbors, estimate):
    """Scores and decisions."""
    n, q, k = len(Y), len(Y[0]), len(neighbors[0])
    n_l = [sum(int(row[m]) for row in Y) for m in range(q)]
    scores, decided = [], []
    for found in neighbors:
        c = [sum(int(Y[j][m]) for j in found) for m in range(q)]
        if estimate == "map":
            scores.append([(c[m] + Fraction(n_l[m] + 1, n + 2)) / (k + 1) for m in range(q)])
        else:
            scores.append([Fraction(c[m], k) for m in range(q)])
        decided.append([int(2 * c[m] > k) for m in range(q)])
    return scores, decided


def mallows_log_likelihood(sets, order, theta):
    """Of label sets under a ranking of all labels and the neutral one, by adding up all rankings.

    `sets` are sets of labels 0 to q - 1, `order` a tuple of the labels and q, the neutral one.
    """
    objects = sorted(order)
    neutral = objects[-1]
    place = {label: at for at, label in enumerate(order)}
    weight = {}
    for ranking in itertools.permutations(objects):
        at = {label: i for i, label in enumerate(ranking)}
        reversed_pairs = sum(
            (at[a] < at[b]) != (place[a] < place[b]) for a, b in itertools.combinations(objects, 2)
        )
        chosen = frozenset(label for label in objects[:-1] if at[label] < at[neutral])
        weight[chosen] = weight.get(chosen, 0.0) + math.exp(-theta * reversed_pairs)
    total = sum(weight.values())
    return sum(math.log(weight[frozenset(labels)] / total) for labels in sets)


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
    """The value of one metric, or None if the convention does not define it."""
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
    if name in ("macro_average_precision", "macro_auc"):
        columns = zip(Y.T.tolist(), scores.T.tolist(), strict=True)
        values = [_column(name, truth, score) for truth, score in columns]
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


def _column(name, truth, scores):
    """How well one label ranks the rows; None if undefined."""
    n = len(truth)
    carry, others = [i for i in range(n) if truth[i]], [i for i in range(n) if not truth[i]]
    if name == "macro_average_precision":
        rank = ranks(scores, "max")
        precisions = [sum(rank[j] <= rank[i] for j in carry) / rank[i] for i in carry]
        return sum(precisions) / len(carry) if carry else None
    pairs = [(scores[i], scores[j]) for i in carry for j in others]
    return sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs) if pairs else None


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


# ---- MLC-WkNN: weights of reconstruction, in exact fractions -----------------------------------


def gram(x, rows):
    """Products of the differences rows - x with each other, by one power of two near 1.

    The canonical products: float64, terms added one after the other in feature order.
    """
    parts = [[float(a) - float(b) for a, b in zip(row, x, strict=True)] for row in rows]
    exponent = math.frexp(max(abs(v) for part in parts for v in part))[1]
    parts = [[math.ldexp(v, -exponent) for v in part] for part in parts]
    products = [[0.0] * len(parts) for _ in parts]
    for i, a in enumerate(parts):
        for j, b in enumerate(parts):
            for v, w in zip(a, b, strict=True):
                products[i][j] += v * w
    return products


def with_ridge(products):
    """H = G + 1e-8 trace(G) / k I, exactly."""
    k = len(products)
    H = [[Fraction(v) for v in row] for row in products]
    ridge = Fraction(1e-8) * sum(H[j][j] for j in range(k)) / k
    for j in range(k):
        H[j][j] += ridge
    return H


def simplex_weights(products):
    """Weights that minimize w'Hw over the unit simplex; corners at the origin share all.

    They are u / sum(u) for the one u with u >= 0, Hu >= 1, and u_j = 0 or (Hu)_j = 1 for every j.
    Corners that break this change sides: all at once while they become fewer, else the last of
    them, which is known to end (Murty 1974).
    """
    zeros = [products[j][j] == 0 for j in range(len(products))]
    if any(zeros):
        return [Fraction(zero, sum(zeros)) for zero in zeros]
    H = with_ridge(products)
    k = len(H)
    inside, fewest, chances = set(range(k)), k + 1, 3
    while True:
        u = on_support(H, sorted(inside))
        wrong = {j for j in inside if u[j] < 0}
        wrong |= {j for j in set(range(k)) - inside if sum(map(_times, H[j], u)) < 1}
        if not wrong:
            return [v / sum(u) for v in u]
        if len(wrong) < fewest:
            fewest, chances = len(wrong), 3
        else:
            chances -= 1
        inside ^= wrong if chances > 0 else {max(wrong)}


def on_support(H, support):
    """The solution of Hu = 1 on a support, zero elsewhere, by elimination."""
    rows = [[*(H[i][j] for j in support), Fraction(1)] for i in support]
    for p in range(len(rows)):  # H is positive definite: no pivot is zero
        for r in range(p + 1, len(rows)):
            factor = rows[r][p] / rows[p][p]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[p], strict=True)]
    u = [Fraction(0)] * len(H)
    for p in reversed(range(len(rows))):
        known = sum(rows[p][r] * u[support[r]] for r in range(p + 1, len(rows)))
        u[support[p]] = (rows[p][-1] - known) / rows[p][p]
    return u


def _times(a, b):
    return a * b


def mlcwknn(X, Y, queries, query_neighbors):
    """MLC-WkNN: the weights of the neighbors of each query, and the scores of its labels."""
    weights, scores = [], []
    for t, found in zip(queries, query_neighbors, strict=True):
        w = simplex_weights(gram(t, [X[j] for j in found]))
        weights.append(w)
        scores.append(
            [
                sum((w[a] for a, j in enumerate(found) if Y[j][label]), Fraction(0))
                for label in range(len(Y[0]))
            ]
        )
    return weights, scores


# ---- DML-kNN ----------------------------------------------------------------------------------


def dmlknn(Y, training_neighbors, query_neighbors, s, delta, cells, left_out=None):
    """DML-kNN in exact fractions; `cells` is the factor of s in the denominators.

    left_out has for each query a training row that is as if it were not there, if any. Returns
    posteriors, decisions, prior, and for each query |A| and the lists of V and U.
    """
    n, q, s = len(Y), len(Y[0]), Fraction(s)
    C = [[sum(int(Y[j][a]) for j in near) for a in range(q)] for near in training_neighbors]
    posterior, prior, tallies = [], [], []
    for query, near in enumerate(query_neighbors):
        c = [sum(int(Y[j][a]) for j in near) for a in range(q)]
        there = [i for i in range(n) if left_out is None or i != left_out[query]]
        A = [i for i in there if all(abs(C[i][a] - c[a]) <= delta for a in range(q))]
        V = [sum(C[i][a] == c[a] and Y[i][a] == 1 for i in A) for a in range(q)]
        U = [sum(C[i][a] == c[a] and Y[i][a] == 0 for i in A) for a in range(q)]
        row, priors = [], []
        for a in range(q):
            n_with = sum(int(Y[i][a]) for i in there)
            priors.append((s + n_with) / (2 * s + len(there)))
            # Without smoothing, a likelihood that is 0 / 0 is multiplied by a prior of 0.
            u = priors[a] * _over(s + V[a], s * cells + n_with, 1)
            v = (1 - priors[a]) * _over(s + U[a], s * cells + len(there) - n_with, 1)
            row.append(_over(u, u + v, priors[a]))
        posterior.append(row)
        prior.append(priors)
        tallies.append((len(A), V, U))
    decided = [[r >= Fraction(1, 2) for r in row] for row in posterior]
    return posterior, np.array(decided, int), prior, tallies


# ---- positive samples ---------------------------------------------------------------------------


def log_sums(Y, neighbors, distances, z):
    """For each row and label: positive neighbors at distance 0, and S of the others in 60 digits.

    The label has no positive neighbor at all where that is (0, None).
    """
    result = []
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**17), 10**17
        for found, far in zip(neighbors, distances, strict=True):
            row = []
            for label in range(len(Y[0])):
                x = [
                    Decimal(float(d)) * Decimal(float(z))
                    for j, d in zip(found, far, strict=True)
                    if Y[j][label]
                ]
                S = sum((_log_weight(v) for v in x if v), Decimal(0))
                row.append((sum(v == 0 for v in x), S if x else None))
            result.append(row)
    return result


def _log_weight(x):
    """-log(1 - exp(-x)), by the first terms of its series where digits would cancel."""
    if x < Decimal("1e-40"):
        return -x.ln() + x / 2
    e = (-x).exp()
    return -(1 - e).ln() if x < 50 else e + e * e / 2 + e * e * e / 3


def positive_scores(Y, neighbors, distances, z, k):
    """The scores of these sums: certain labels first, tiny sums continued, others last."""
    n, q = len(Y), len(Y[0])
    scores = np.empty((len(neighbors), q))
    for i, row in enumerate(log_sums(Y, neighbors, distances, z)):
        for label, (certain, S) in enumerate(row):
            n_l = sum(int(Y[j][label]) for j in range(n))
            if S is None:
                scores[i, label] = -1e-300 * (1 - (n_l + 1) / (n + 2))
            elif certain:
                scores[i, label] = 1000 * k * certain + S
            elif Decimal("1e-300") <= S:
                scores[i, label] = S
            else:
                scores[i, label] = 1e-300 * (math.log(1e-300) / _log(S))
    return scores


def _log(S):
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**17), 10**17
        return float(S.ln())


def surrogate(truth, phi, tau=1.0):
    """J, pair by pair of a label of the row and another one; phi is dense."""
    values = []
    for row, has in zip(phi, truth, strict=True):
        mine, others = np.flatnonzero(has), np.flatnonzero(~np.asarray(has, bool))
        if len(mine) and len(others):
            pairs = [math.log1p(math.exp(-(row[a] - row[b]) / tau)) for a in mine for b in others]
            values.append(math.fsum(pairs) / len(pairs))
    return math.fsum(values) / len(values) if values else 0.0


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
        # Near the minimum the objective is flat to its last digit: trust the Newton step.
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
