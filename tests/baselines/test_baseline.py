from __future__ import annotations

import re

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nl.RankSVM(gamma=0.0), "gamma (or 'scale' or 'auto') must be a finite number greater "),
        (nl.RankSVM(gamma=-1), "than 0; got -1"),
        (nl.RankSVM(gamma=None), "must be a number greater than 0; got None of type NoneType"),
        (nl.RankSVM(C=0), "C must be a finite number from 1e-10 to 1e10; got 0"),
        (nl.RankSVM(coef0=-1), "coef0 must be a finite number from 0 up; got -1"),
        (nl.PMM(xi=1), "xi must be a finite number from 1.000001 to 1000000; got 1"),
        (nl.PMM(zeta=0.5), "zeta must be a finite number from 1 to 1000000; got 0.5"),
        (nl.C45Tree(confidence=0.6), "confidence must be a finite number from 1e-6 to 0.5; got"),
    ],
)
def test_ranges_read_as_people_write_them(model, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        model.fit(X, Y)


def test_data_that_a_baseline_cannot_handle():
    for model, rows in (
        (nl.PMM(), X - 1),
        (nl.PMM(), X * 8e307),
        (nl.RankSVM(gamma=1.0), X * 1e200),
    ):
        with pytest.raises(UnsuitableDataError, match="X"):
            model.fit(rows, Y)
