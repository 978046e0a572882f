import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from nearlabel.baselines.ranksvm import gamma_of, support_kernel

X = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, -3.0], [1.5, 0.0, 0.0], [1.0, 1.0, 0.5]])


@pytest.mark.parametrize("name", ["linear", "poly", "rbf"])
def test_kernels_by_their_formulas(name):
    parameters = (name, 3, 0.25, 2.0)
    products = X @ X[:2].T
    squares = ((X[:, None] - X[None, :2]) ** 2).sum(axis=2)
    expected = {
        "linear": products,
        "poly": (0.25 * products + 2) ** 3,
        "rbf": np.exp(-0.25 * squares),
    }[name]
    np.testing.assert_allclose(
        support_kernel(X, X[:2], *parameters), expected, rtol=1e-12, atol=1e-14
    )
    as_csr = support_kernel(sparse.csr_array(X), sparse.csr_array(X[:2]), *parameters)
    np.testing.assert_allclose(as_csr, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma_is_that_of_svc(gamma):
    expected = SVC(gamma=gamma).fit(X, [0, 1, 0, 1])._gamma
    assert gamma_of(gamma, X) == pytest.approx(expected, rel=1e-12)
    assert gamma_of(gamma, sparse.csr_array(X)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e200])
def test_a_constant_has_no_scale(value):
    assert gamma_of("scale", np.full((3, 2), value)) == 1
