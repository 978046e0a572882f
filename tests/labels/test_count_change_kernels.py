"""The kernels for count changes: equal to their NumPy twins, and safe for any input."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.common import engine
from nearlabel.labels.count_changes import CountChanges, count_changes

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")
NAMES = ("label", "count", "own", "rows", "entries")


@st.composite
def changed_lists(draw):
    """Rows, their neighbors before and after, and labels: all may have changed, in any way."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([3, 12, 300]))  # with more neighbors than 8 bits can count
    k = draw(st.sampled_from([1, n // 2, n - 1]))
    q = draw(st.sampled_from([1, 6, 65, 5000]))
    more_rows, more_labels = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    places = draw(st.sampled_from([np.int32, np.int64]))
    kinds = [draw(st.sampled_from([np.int32, np.int64])) for _ in range(2)]
    r = 8
    before = rng.permuted(np.tile(np.arange(n), (r, 1)), axis=1)[:, :k]
    after = before.copy()
    for row in range(r):
        how = rng.integers(0, 4)
        if how == 1:  # one comes, the last goes
            new = np.setdiff1d(np.arange(n + more_rows), before[row])[:1]
            after[row] = np.insert(before[row], rng.integers(0, k + 1), new)[:k]
        elif how == 2:  # the same in another order
            after[row] = rng.permutation(before[row])
        elif how == 3:
            after[row] = rng.permutation(n + more_rows)[:k]
    often = 0.3 if q < 1000 else 0.001
    Y = (rng.random((n, q)) < often).astype(np.int8)
    wide = np.pad(Y, ((0, more_rows), (0, more_labels)))
    relabelled = rng.permutation(n)[: draw(st.integers(0, 3))]
    for row in relabelled:
        wide[row] = rng.random(q + more_labels) < often
    matrices = [sparse.csr_array(matrix) for matrix in (Y, wide)]
    for matrix, kind in zip(matrices, kinds, strict=True):
        matrix.indices, matrix.indptr = matrix.indices.astype(kind), matrix.indptr.astype(kind)
    rows = rng.integers(0, n, r)
    wanted = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    lists = (np.asfortranarray(part.astype(places)) for part in (before, after))
    there = [part if is_there else None for part, is_there in zip(lists, wanted, strict=True)]
    return (rows, *there, *matrices), relabelled


@given(changed_lists(), st.sampled_from([1, 2**14]))
def test_changes(problem, rows_at_once):
    (given, relabelled), results = problem, []
    with mock.patch("nearlabel.labels.count_changes._ROWS_AT_ONCE", rows_at_once):
        for core in (CORE, None):
            with mock.patch.object(engine, "core", return_value=core):
                results.append(CountChanges.joined(count_changes(*given, relabelled=relabelled)))
    for name in NAMES:
        ours, twin = (getattr(result, name) for result in results)
        assert ours.dtype == twin.dtype
        np.testing.assert_array_equal(ours, twin)
