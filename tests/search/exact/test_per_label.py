import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import problems

from nearlabel.common.validation import label_matrix
from nearlabel.search import class_neighbors
from nearlabel.search.exact import per_label as classes

pytestmark = pytest.mark.engines


@given(
    problem=problems(),
    metric=st.sampled_from(["euclidean", "manhattan", "cosine", "chebyshev"]),
    leaves_out=st.booleans(),
    is_sparse=st.booleans(),
    block_bytes=st.sampled_from([1, 5000, 2**26]),
    n_jobs=st.sampled_from([1, 3]),
)
def test_equals_the_literal_search(problem, metric, leaves_out, is_sparse, block_bytes, n_jobs):
    X, Y, queries, per_class = problem
    left_out = np.arange(len(queries)) % len(X) if leaves_out else None
    form = sparse.csr_array if is_sparse else np.asarray
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes, "BLOCK_BYTES", block_bytes)
        got = class_neighbors(
            *(form(X), metric, label_matrix(Y, "Y"), per_class, form(queries)),
            left_out=left_out,
            n_jobs=n_jobs,
        )
    assert got.shape == (len(queries), len(X))
    for row, query in enumerate(queries):
        skipped = None if left_out is None else left_out[row]
        expected = oracles.class_neighbors(X, Y, per_class, query, skipped, metric)
        inside = slice(got.indptr[row], got.indptr[row + 1])
        found = dict(zip(got.indices[inside].tolist(), got.data[inside].tolist(), strict=True))
        assert found == expected


def test_distances_beyond_float64_are_refused():
    X = np.array([[1e300, 0.0], [-1e300, 0.0], [0.0, 1.0]])
    Y = label_matrix(np.ones((3, 1), int), "Y")
    with pytest.raises(ValueError, match="float64.*X"):
        class_neighbors(X, "euclidean", Y, 3, X)
