import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import nearlabel as nl
from nearlabel.baselines.algorithm_registry import BASELINES, algorithm
from nearlabel.common.validation import UnsuitableDataError
from nearlabel.methods.registry import METHODS

X = np.array([[0, 1], [1, 0], [1, 1], [0, 2]])
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])


def test_models_declare_whether_they_keep_items():
    assert all(algorithm(name).keeps_items for name in METHODS)
    assert not any(algorithm(name).keeps_items for name in BASELINES)


@pytest.mark.parametrize("name", BASELINES)
def test_arguments_that_fit_does_not_know(name):
    model = algorithm(name)()
    with pytest.raises(TypeError, match="sample_weight is not supported: every training row"):
        model.fit(X, Y, sample_weight=np.ones(4))
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'ids'"):
        model.fit(X, Y, ids=range(4))


@pytest.mark.parametrize("name", BASELINES)
def test_options_of_neighbor_methods_raise_a_clear_error(name):
    model = algorithm(name)()
    for wrong in (nl.LabelThresholds(model), nl.GraphSearchCV(model, {})):
        with pytest.raises(TypeError, match=f"must be a neighbor method of nearlabel.*got {name}"):
            wrong.fit(X, Y)


@pytest.mark.parametrize("name", ["AdaBoostMH", "ADTBoostMH"])
def test_more_rounds_than_memory_holds(name):
    with pytest.raises(MemoryError, match=r"n_rounds=1000000000000: .* GiB.*; use fewer rounds"):
        algorithm(name)(n_rounds=10**12).fit(X, Y)


def test_data_that_a_baseline_cannot_handle():
    for model, rows in (
        (nl.PMM(), X - 1),
        (nl.PMM(), X * 8e307),
        (nl.RankSVM(gamma=1.0), X * 1e200),
    ):
        with pytest.raises(UnsuitableDataError, match="X"):
            model.fit(rows, Y)


MODELS = [
    *(nl.AdaBoostMH(9), nl.ADTBoostMH(9), nl.C45Tree()),
    *(nl.PMM(), nl.PMM(2), nl.RankSVM(degree=3, tol=1e-9)),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_scores_depend_neither_on_the_form_nor_on_the_other_rows(model, monkeypatch):
    rng = np.random.default_rng(5)
    counts, carried = rng.poisson(0.6, (40, 12)).astype(float), rng.random((40, 5)) < 0.4
    stored_zeros = sparse.csr_array(counts)
    stored_zeros.data[::5] = 0
    dense = stored_zeros.toarray()
    together = clone(model).fit(dense, carried).label_scores(dense).toarray()
    fitted = clone(model).fit(stored_zeros, sparse.csr_array(carried.astype(int)))
    for blocks in ("stumps._VALUES_AT_ONCE", "pmm._WORDS_AT_ONCE", "ranksvm._KERNEL_AT_ONCE"):
        monkeypatch.setattr(f"nearlabel.baselines.{blocks}", 100)
    for form in (dense, stored_zeros):
        scores = fitted.label_scores(form).toarray()
        np.testing.assert_allclose(scores, together, rtol=0, atol=1e-6)
        alone = fitted.label_scores(form[7:8]).toarray()
        np.testing.assert_allclose(alone, scores[7:8], rtol=0, atol=1e-12)
