"""Which of several algorithms on one data set are not clearly worse than the best of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Floats
from nearlabel.experiments.evaluation import SplitResult
from nearlabel.experiments.significance.pairs import LEVEL, Pair, paired_t

ENOUGH_PARTS = 5  # for a test over parts; with fewer, it is over their test rows


@dataclass(frozen=True)
class Standing:
    """An algorithm among others, by one metric.

    `value` is the mean over the parts, `error` its standard error: over the parts, or over the test
    rows where there are few parts. `pair` is a paired t-test over the same, the best first, with
    its `p_value`; the best itself has no test and the p-value 1. What is not known is nan. An
    algorithm `is_alike` if it is the best or does not differ from it significantly.
    """

    value: float
    error: float
    p_value: float
    is_best: bool
    is_alike: bool
    pair: Pair | None = None


def paired_over(parts: int) -> str:
    """What a test is over if there are so many parts, for people."""
    return "parts" if parts >= ENOUGH_PARTS else "test items"


def standings(
    results: Mapping[str, Sequence[SplitResult]], metric: str, *, loss: bool
) -> dict[str, Standing]:
    """Where algorithms stand by a metric; those that refused the data are left out.

    Test rows are independent, and so a test over them says whether a difference would be found
    again on other rows, but not with another training set; folds share training rows, which makes a
    test over them a little too bold.
    """
    ran = {name: each for name, each in results.items() if not any(part.refusal for part in each)}
    means = {name: float(np.mean([part.metrics[metric] for part in ran[name]])) for name in ran}
    known = {name: mean for name, mean in means.items() if mean == mean}
    if not known:
        return {}
    best = (min if loss else max)(known, key=known.__getitem__)
    columns = {name: _column(ran[name], metric) for name in known}
    standing = {}
    for name, mean in known.items():
        column, of_best = columns[name], columns[best]
        error, p_value, pair = np.nan, np.nan, None
        if column is not None and of_best is not None:
            defined = np.isfinite(column) & np.isfinite(of_best)
            count = int(defined.sum())
            if count > 1:
                error = float(column[defined].std(ddof=1) / np.sqrt(count))
                if name != best:
                    pair = paired_t(of_best[defined], column[defined], loss=loss)
                    equal = 1.0 if pair.gain == 0 else np.nan  # in every row, or by the same amount
                    p_value = equal if pair.p_value is None else pair.p_value
        if name == best:
            standing[name] = Standing(mean, error, 1.0, True, True)
        else:
            is_alike = pair is not None and not p_value < LEVEL
            standing[name] = Standing(mean, error, p_value, False, is_alike, pair)
    return standing


def _column(results: Sequence[SplitResult], metric: str) -> Floats | None:
    """What is compared: the values of parts, or of all test rows."""
    if len(results) >= ENOUGH_PARTS:
        return np.array([part.metrics[metric] for part in results])
    if any(metric not in part.rows for part in results):
        return None
    return np.concatenate([part.rows[metric] for part in results])
