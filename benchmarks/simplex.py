"""What do the weights with which neighbors reconstruct a query cost?

The lower limit is the Gram matrix of each query's differences. The competitor is SciPy's `nnls`,
with a heavy row of ones that makes the weights sum to one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import report, taking_turns
from scipy.optimize import nnls

import nearlabel as nl
from nearlabel.common.arrays import Array, Floats
from nearlabel.formulas.reconstruction import reconstruct

QUESTION = (
    "Reconstruction weights of 1,000 queries, including the gathering of neighbors: core-seconds "
    "on one thread, best of interleaved repeats"
)
N, M = 20_000, 1_000
HEAVY = 1e4  # the square root of the penalty of a sum of weights other than one


def products(X: Floats, queries: Floats, indices: Array) -> None:
    """Only the Gram matrices, by BLAS, in blocks that fit into the cache."""
    m, k = indices.shape
    step = max(1, 2**18 // (k * (X.shape[1] + k)))
    for start in range(0, m, step):
        rows = slice(start, start + step)
        differences = X[indices[rows]] - queries[rows, None]
        _ = differences @ differences.transpose(0, 2, 1)


def by_nnls(X: Floats, queries: Floats, indices: Array) -> Floats:
    """The distance of each query from the average of its neighbors with SciPy's weights."""
    residuals = np.empty(len(queries))
    for i, (query, near) in enumerate(zip(queries, indices, strict=True)):
        differences = (X[near] - query).T
        k = len(near)
        system = np.vstack([differences, np.full((1, k), HEAVY)])
        w, _ = nnls(system, np.append(np.zeros(len(query)), HEAVY), maxiter=100 * k)
        residuals[i] = np.linalg.norm(differences @ (w / w.sum()))
    return residuals


def weight_times(d: int, k: int) -> dict[str, Any]:
    """Core-seconds of the weights of normal vectors around the origin."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(N, d)), rng.normal(size=(M, d))
    indices = nl.neighbor_graph(X, k, queries).indices
    best = taking_turns(
        {
            "core_seconds": lambda: reconstruct(X, queries, indices),
            "products_alone": lambda: products(X, queries, indices),
            "nnls": lambda: by_nnls(X, queries, indices),
        }
    )
    weights, residuals = reconstruct(X, queries, indices)
    worst = (residuals / by_nnls(X, queries, indices)).max() - 1
    return {
        "d": d,
        "k": k,
        "weights_above_zero": round(float((weights > 0).sum(axis=1).mean()), 1),
        "core_seconds": round(best["core_seconds"], 4),
        "times_the_products_alone": round(best["core_seconds"] / best["products_alone"], 2),
        "times_faster_than_nnls": round(best["nnls"] / best["core_seconds"], 1),
        "farther_than_by_nnls_at_most": float(f"{worst:.1e}"),  # relative
    }


def main() -> None:
    report(QUESTION, [weight_times(d, k) for k in (10, 100) for d in (20, 50, 100)])


if __name__ == "__main__":
    main()
