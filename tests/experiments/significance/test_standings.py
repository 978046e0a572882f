"""Which algorithms are not significantly worse than the best."""

import numpy as np
import pytest
from scipy import stats

from nearlabel.experiments import SplitResult
from nearlabel.experiments.significance.standings import standings


def result(rows, metric="average_precision", **more):
    rows = np.asarray(rows, float)
    return SplitResult({metric: float(np.nanmean(rows))}, 0.0, rows={metric: rows}, **more)


def test_over_test_rows():
    random = np.random.default_rng(0)
    base = random.random(60)
    columns = {
        "best": base,
        "alike": base + random.normal(-0.001, 0.1, 60),
        "worse": base - 0.2 + random.normal(0, 0.01, 60),
        "same": base.copy(),
    }
    columns["alike"] += base.mean() - 0.01 - columns["alike"].mean()
    columns["best"] = np.where(np.arange(60) == 7, np.nan, base)  # a row that does not count
    found = standings({k: [result(v)] for k, v in columns.items()}, "average_precision", loss=False)
    both = np.isfinite(columns["best"])
    for name in ("alike", "worse"):
        if found["best"].is_best:
            peer = stats.ttest_rel(columns["best"][both], columns[name][both])
            assert found[name].p_value == pytest.approx(peer.pvalue)
    assert [name for name, one in found.items() if one.is_alike] == ["best", "alike", "same"]
    error = columns["worse"][both].std(ddof=1) / np.sqrt(59)
    assert found["worse"].error == pytest.approx(error, rel=0.05)


def test_over_parts():
    parts = [0.1, 0.2, 0.3, 0.4, 0.5]
    worse = [0.25, 0.32, 0.44, 0.53, 0.66]
    each = {
        name: [result([value], "ranking_loss") for value in values]
        for name, values in {"a": parts, "b": worse}.items()
    }
    found = standings(each, "ranking_loss", loss=True)
    assert found["a"].is_best
    assert found["b"].p_value == pytest.approx(stats.ttest_rel(parts, worse).pvalue)
    assert not found["b"].is_alike
    assert found["a"].error == pytest.approx(np.std(parts, ddof=1) / np.sqrt(5))


def test_refusals_and_metrics_without_rows():
    one = SplitResult({"micro_f1": 0.5}, 0.0)
    two = SplitResult({"micro_f1": 0.4}, 0.0)
    refused = SplitResult({}, 0.0, "too large")
    found = standings({"a": [one], "b": [two], "c": [refused]}, "micro_f1", loss=False)
    assert list(found) == ["a", "b"]
    assert found["a"].is_best
    assert not found["b"].is_alike
    assert np.isnan(found["b"].p_value)
    assert standings({"c": [refused]}, "micro_f1", loss=False) == {}
