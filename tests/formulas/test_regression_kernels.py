"""The compiled kernel of the regressions: equal to its NumPy twin, and safe for any input."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.common import engine
from nearlabel.formulas import regressions

pytestmark = pytest.mark.kernels

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


@given(
    n=st.integers(1, 30),
    m=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from([np.int32, np.int64]),
    products_a_call=st.sampled_from([1, 50, 2**26]),
)
def test_weighted_products(n, m, share, seed, kind, products_a_call):
    rng = np.random.default_rng(seed)
    inputs = sparse.csr_array(np.where(rng.random((n, m)) < share, rng.normal(size=(n, m)), 0))
    design = regressions._Design(inputs)
    design.rows.indices = design.rows.indices.astype(kind)
    design.rows.indptr = design.rows.indptr.astype(kind)
    h = rng.choice([0.0, 1e-300, 1e-9, 0.1, 0.25], n)
    with mock.patch.object(regressions, "_PRODUCTS_A_CALL", products_a_call):
        ours, twin = (_curvature(design, h, core) for core in (CORE, None))
    assert np.triu(ours).tobytes() == np.triu(twin).tobytes()
    assert not np.tril(ours, -1).any()
    np.testing.assert_allclose(twin, twin.T, rtol=1e-12, atol=1e-300)


def _curvature(design, h, core):
    with mock.patch.object(engine, "core", return_value=core):
        return design.curvature(h)
