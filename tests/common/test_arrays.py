from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from nearlabel.common.arrays import canonical_csr, entries_at, runs


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 20))
def test_runs_cover_all_rows_in_order_within_the_limit(work, limit):
    found = list(runs(np.array(work, dtype=np.int64), limit))
    assert [row for run in found for row in range(run.start, run.stop)] == list(range(len(work)))
    for run in found:
        assert sum(work[run]) <= limit or run.stop - run.start == 1
    for run, after in pairwise(found):  # no run could have been longer
        assert sum(work[run.start : after.start + 1]) > limit


@given(hnp.arrays(np.int64, (4, 6), elements=st.integers(0, 2)))
def test_entries(dense):
    row, column = (grid.ravel() for grid in np.indices(dense.shape))
    found, value = entries_at(sparse.csr_array(dense), row, column)
    np.testing.assert_array_equal(found, dense.ravel() != 0)
    np.testing.assert_array_equal(value[found], dense.ravel()[found])


def test_canonical_form_leaves_the_original_alone():
    rows = sparse.csr_matrix(([1, 2, 3], [2, 0, 0], [0, 3]), shape=(1, 3))
    csr = canonical_csr(rows)
    assert csr.has_canonical_format
    assert csr.toarray().tolist() == [[5, 0, 1]]
    assert rows.indices.tolist() == [2, 0, 0]
    same = sparse.csr_array(np.eye(2))
    assert np.shares_memory(canonical_csr(same).data, same.data)
