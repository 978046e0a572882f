"""Random problems for hypothesis: small, and full of edge cases."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores


def examples(usual: int):
    """Settings of a property that needs more or fewer than the usual 100 examples.

    The profile scales them, except that the thorough one never tries fewer.
    """
    profile = settings().max_examples
    scaled = max(1, usual * profile // 100)
    return settings(max_examples=max(profile, usual) if profile > 100 else scaled)


SCORES = st.sampled_from([-1.0, -0.0, 0.0, 0.25, 0.5, 1.0])


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


@st.composite
def label_scores(draw):
    """LabelScores of touched labels and grouped defaults, and the equivalent dense matrix."""
    n, q, groups = draw(st.integers(1, 7)), draw(st.integers(1, 9)), draw(st.integers(1, 3))
    defaults = draw(hnp.arrays(np.float64, (groups, q), elements=SCORES))
    group = draw(hnp.arrays(np.int64, n, elements=st.integers(0, groups - 1)))
    is_touched = draw(hnp.arrays(bool, (n, q)))
    values = draw(hnp.arrays(np.float64, (n, q), elements=SCORES))
    row, label = np.nonzero(is_touched)
    indptr = np.concatenate([[0], np.cumsum(is_touched.sum(axis=1))])
    touched = sparse.csr_array((values[row, label], label, indptr), shape=(n, q))
    dense = np.where(is_touched, values, defaults[group])
    return LabelScores(touched, defaults, group=group), dense


@st.composite
def labeled_graphs(draw, of_training_rows=False):
    """Neighbors of rows among base rows, and labels of these: in any memory order and types."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_base = draw(st.one_of(st.integers(2, 12), st.just(300)))  # more than 8 bits can count
    k = draw(st.sampled_from([1, max(1, n_base // 2), n_base - 1]))
    n = n_base if of_training_rows else draw(st.integers(1, 9))
    # Distinct neighbors in any order; of n_base - 1 rows, to step over a row's own number.
    indices = rng.permuted(np.tile(np.arange(n_base - 1), (n, 1)), axis=1)
    indices += indices >= (np.arange(n) % n_base)[:, None]
    indices = indices.astype(draw(st.sampled_from([np.int32, np.int64])))
    layout = draw(st.sampled_from(["slice", "columns first", "steps"]))
    if layout == "columns first":
        indices = np.asfortranarray(indices)
    elif layout == "steps":
        indices = np.repeat(np.repeat(indices, 3, axis=1), 2, axis=0)[::2, ::3]
    # Labels for one word, for some words, and for enough words that these have a summary.
    q = draw(st.one_of(st.integers(1, 9), st.sampled_from([64, 65, 200, 9000])))
    often = rng.choice([0.0, 1.0, 0.1, 0.4], q) if q < 1000 else np.full(q, 0.002)
    Y = sparse.csr_array((rng.random((n_base, q)) < often).astype(np.int8))
    Y[[0]] *= draw(st.booleans())  # an empty row
    Y.eliminate_zeros()
    kind = draw(st.sampled_from([np.int32, np.int64]))
    Y.indices, Y.indptr = Y.indices.astype(kind), Y.indptr.astype(kind)
    graph = NeighborGraph.unchecked(indices, np.zeros(indices.shape), n_base)
    return graph.head(k), Y


@st.composite
def boosting_problems(draw):
    """X, at times with missing values, and Y."""
    X = draw(vectors(st.integers(2, 12))).astype(float)
    missing = draw(st.sampled_from([0.0, 0.0, 0.3, 0.9]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    X[rng.random(X.shape) < missing] = np.nan
    return X, draw(label_matrices(len(X), st.integers(1, 5)))
