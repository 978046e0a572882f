"""Sums over blocks are the metrics of all rows, in every convention."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearlabel as nl
from nearlabel.common.validation import label_matrix
from nearlabel.labels.scores import as_label_scores
from nearlabel.metrics.metric_sums import MetricSums
from nearlabel.metrics.scorers import METRICS


@given(
    seed=st.integers(0, 2**32),
    cut=st.integers(1, 29),
    convention=st.sampled_from(sorted(nl.metrics.CONVENTIONS)),
)
def test_two_blocks_against_all_rows(seed, cut, convention):
    rng = np.random.default_rng(seed)
    Y, decided = (rng.random((2, 30, 5)) < rng.random((2, 1, 5))).astype(int)
    scores = rng.integers(0, 4, (30, 5)) / 4
    parts = []
    for rows in (slice(0, cut), slice(cut, 30)):
        truth = label_matrix(Y[rows], "Y")
        some = as_label_scores(scores[rows])
        parts.append(MetricSums.of(truth, some, decided[rows], convention, 2))
    found = MetricSums.joined(parts).values()
    whole = nl.metrics.evaluate(Y, scores, decided, convention, at=2)
    assert whole.keys() - found.keys() == {"macro_auc", "macro_average_precision"}
    assert list(found) == [name for name in METRICS if name in found]
    assert found == pytest.approx({name: whole[name] for name in found}, abs=1e-12, nan_ok=True)
