"""Which of several algorithms on one data set are not clearly worse than the best of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Floats
from nearlabel.experiments.evaluation import SplitResult
from nearlabel.experiments.significance.pairs import LEVEL, Pair, check_level, paired_t

ENOUGH_PARTS = 5  # for a test over parts; with fewer, it is over their test rows


@dataclass(frozen=True)
class Standing:
    """An algorithm among others, by one metric.

    Attributes
    ----------
    value : float
        Mean over the parts.
    error : float
        Its standard error: over the parts, or over the test rows where there are few parts. nan
        where it is not known.
    p_value : float
        Of a paired t-test against the best, over the same; 1 for the best, nan if not known.
    is_best : bool
    is_alike : bool
        Whether it is the best, or does not differ from it significantly.
    pair : Pair or None
        That test, the best first; None for the best, and where there is no test.
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
    found: Mapping[str, Sequence[SplitResult]], metric: str, *, loss: bool, level: float = LEVEL
) -> dict[str, Standing]:
    """Where algorithms stand by a metric; those that refused the data are left out.

    Test rows are independent, and so a test over them says whether a difference would be found
    again on other rows, but not with another training set; folds share training rows, which makes a
    test over them a little too bold.
    """
    level = check_level(level)
    columns = {
        name: _column(each, metric)
        for name, each in found.items()
        if not any(one.refusal for one in each)
    }
    means = {name: float(np.mean([one.metrics[metric] for one in found[name]])) for name in columns}
    known = {name: mean for name, mean in means.items() if mean == mean}
    if not known:
        return {}
    best = (min if loss else max)(known, key=known.__getitem__)
    return {
        name: _standing(mean, columns[name], columns[best], name == best, loss, level)
        for name, mean in known.items()
    }


def _column(found: Sequence[SplitResult], metric: str) -> Floats | None:
    """What is compared: the values of parts, or of all test rows."""
    if len(found) >= ENOUGH_PARTS:
        return np.array([one.metrics[metric] for one in found])
    if any(metric not in one.rows for one in found):
        return None
    return np.concatenate([one.rows[metric] for one in found])


def _standing(
    mean: float,
    column: Floats | None,
    best: Floats | None,
    is_best: bool,
    loss: bool,
    level: float,
) -> Standing:
    if column is None or best is None:
        return Standing(mean, np.nan, 1.0 if is_best else np.nan, is_best, is_best)
    both = np.isfinite(column) & np.isfinite(best)
    count = int(both.sum())
    error = float(column[both].std(ddof=1) / np.sqrt(count)) if count > 1 else np.nan
    if is_best or count < 2:
        return Standing(mean, error, 1.0 if is_best else np.nan, is_best, is_best)
    pair = paired_t(best[both], column[both], loss=loss)
    p_value = np.nan if pair.p_value is None else pair.p_value
    if pair.p_value is None and pair.gain == 0:  # the same in every row
        p_value = 1.0
    return Standing(mean, error, p_value, False, not (p_value < level), pair)
