"""Synthetic data with trees recorded from WEKA 3.9.7: `J48 -t FILE -no-cv`, default options.

They use Python's `random()`, which gives the same numbers in every version.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_iris


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray  # numbers of classes; (n, q) of 0 and 1 for labels
    n_values: np.ndarray  # of nominal features; 0 for numeric ones
    features: list[str]
    classes: list[str]


def iris():
    data = load_iris()
    features = ["sepallength", "sepalwidth", "petallength", "petalwidth"]
    classes = ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]
    return Problem(data.data, data.target, np.zeros(4, int), features, classes)


def glass(seed=7):
    """Like the glass data: 214 rows, 9 oxides of which some are mostly zero, 6 kinds."""
    random = Random(seed)
    X, y = [], []
    for _ in range(214):
        kind = int(6 * random.random() ** 2)
        row = [
            round(sum(random.random() for _ in range(4)) * 2 + kind * f / 6, 2) for f in range(7)
        ]
        rare = [round(max(0.0, random.random() - 0.7 + kind / 20), 2) for _ in range(2)]
        X.append(row + rare)
        y.append(kind if random.random() < 0.8 else int(6 * random.random()))
    names = ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    return Problem(
        np.array(X), np.array(y), np.zeros(9, int), names, [f"kind{number}" for number in range(6)]
    )


def mixed(seed=96):
    """Numeric and nominal features, a fifth of all values missing, three classes."""
    random = Random(seed)
    n_values = np.array([0, 3, 0, 4, 2, 0])
    X, y = [], []
    for _ in range(300):
        row = [
            float(int(count * random.random())) if count else round(10 * random.random(), 1)
            for count in n_values
        ]
        row[3] -= row[1] * (row[3] == 3)  # so that some branches are empty
        pull = row[0] / 4 + 2 * (row[1] == 1) - 2 * (row[3] == 2) * row[4] + row[5] * row[4] / 5
        y.append(min(2, max(0, int(pull + 2 * random.random() - 1))))
        X.append([value if random.random() > 0.2 else np.nan for value in row])
    X[0] = [5.0, 2.0, 5.0, 3.0, 1.0, 5.0]
    return Problem(np.array(X), np.array(y), n_values, list("abcdef"), ["low", "mid", "high"])


def labels(seed=25):
    """Binary labels of features that are zero in half of all rows; the last one has one class."""
    random = Random(seed)
    X, Y = [], []
    for _ in range(240):
        row = [round(max(0.0, 4 * random.random() - 2), 2) for _ in range(8)]
        noise = [random.random() for _ in range(3)]
        Y.append(
            [
                int(row[0] + row[1] > 1.2 + noise[0]),
                int((row[2] > 0.5) != (row[3] > 0.5) and noise[1] < 0.85),
                int(noise[2] < 0.2 + row[4] / 4),
                0,
            ]
        )
        X.append(row)
    return Problem(
        np.array(X),
        np.array(Y),
        np.zeros(8, int),
        [f"x{column}" for column in range(8)],
        ["0", "1"],
    )


def unseen_rows(problem, seed=1, count=12):
    """Rows for a tree to score: values of the training rows in other combinations, and gaps."""
    random = Random(seed)
    n, d = problem.X.shape
    return np.array(
        [
            [
                problem.X[int(n * random.random()), f] if random.random() < 0.8 else np.nan
                for f in range(d)
            ]
            for _ in range(count)
        ]
    )
