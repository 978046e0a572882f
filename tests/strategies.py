"""Random problems for hypothesis: small, and full of what goes wrong."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


@st.composite
def vectors(draw, rows=st.integers(2, 24), features=st.integers(1, 5)):
    """Vectors with ties and duplicates, at awkward scales and offsets."""
    n, d = draw(rows), draw(features)
    kind = draw(st.sampled_from(["integers", "floats", "grid", "repeated"]))
    if kind == "integers":
        return draw(hnp.arrays(np.int64, (n, d), elements=st.integers(0, 2)))
    if kind == "floats":
        width = draw(st.sampled_from([1e-8, 1.0, 1e6]))
        elements = st.floats(-width, width, allow_nan=False)
        return draw(hnp.arrays(np.float64, (n, d), elements=elements))
    cells = draw(hnp.arrays(np.int64, (n, d), elements=st.integers(-3, 3)))
    if kind == "grid":  # distances that differ by rounding only, far from the origin
        step = draw(st.sampled_from([0.1, 1 / 3, 1e-9]))
        return cells * step + draw(st.sampled_from([0.0, 1.0, 1e8, -3e12]))
    distinct = draw(st.integers(1, max(1, n // 2)))
    return cells[np.arange(n) % distinct] * 0.7


@st.composite
def label_matrices(draw, n, q=st.integers(1, 6)):
    """0/1 matrices with empty rows, labels that none carries and labels that all carry."""
    q = draw(q)
    Y = draw(hnp.arrays(np.int64, (n, q), elements=st.integers(0, 1)))
    for column in range(q):
        constant = draw(st.sampled_from([None, None, None, 0, 1]))
        if constant is not None:
            Y[:, column] = constant
    return Y


@st.composite
def problems(draw):
    """X, Y, queries and k for a neighbor method."""
    X = draw(vectors())
    Y = draw(label_matrices(len(X)))
    rows = draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=6))
    shift = draw(st.sampled_from([0.0, 0.25]))
    return X, Y, X[rows] + shift, draw(st.integers(1, len(X) - 1))


@st.composite
def rankings(draw):
    """True labels, scores full of ties, and decisions."""
    n, q = draw(st.integers(1, 8)), draw(st.integers(1, 7))
    Y = draw(hnp.arrays(np.int64, (n, q), elements=st.integers(0, 1)))
    for row in range(n):
        constant = draw(st.sampled_from([None, None, None, 0, 1]))
        if constant is not None:
            Y[row] = constant
    scores = draw(hnp.arrays(np.float64, (n, q), elements=st.sampled_from([0.0, 0.1, 0.5, 0.9])))
    predicted = draw(hnp.arrays(np.int64, (n, q), elements=st.integers(0, 1)))
    return Y, scores, predicted
