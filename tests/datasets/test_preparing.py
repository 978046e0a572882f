"""Choices of scale and imputation for the features of a data set."""

import numpy as np
import pytest
from scipy import sparse

from nearlabel.datasets.preparing import Preparing


def test_the_chosen_scale_may_be_that_of_ranks():
    rng = np.random.default_rng(0)
    place = rng.random((150, 2))
    Y = sparse.csr_array(np.eye(6, dtype=np.int8)[(6 * place[:, 0]).astype(int)])
    X = np.exp(40 * place)  # with other scales a few rows dominate
    assert Preparing("auto").chosen(X, Y).scale == "rank"


def test_a_scale_can_be_chosen_where_numbers_are_missing():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2)) * [1, 1000]
    Y = sparse.csr_array((X[:, :1] > [[0.3, 0.7]]).astype(np.int8))
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    scores = Preparing().scale_scores(gaps, Y)
    assert scores == Preparing(impute="median").scale_scores(gaps, Y)
    assert scores["minmax"] > scores["none"]
    assert np.isnan(Preparing("minmax").transformer(gaps).fit_transform(gaps)).any()
    assert Preparing().scale_scores(sparse.csr_array(gaps), Y) == {}
    for refused in (Preparing("tfidf"), Preparing(learn_distance=True)):
        with pytest.raises(ValueError, match="takes no missing values; pass impute='median'"):
            refused.transformer(gaps)
        refused.transformer(X)
