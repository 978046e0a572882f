"""Tests of significance over folds or data sets: whether methods differ, and which from which.

Every test takes a table `values` (rows, algorithms): a row is a fold or a data set, on which every
algorithm was measured. The advice of [1]_ is followed: over several data sets a t-test would ask
for differences that are normal and of one size, so ranks are compared; first Friedman's test for
all algorithms, then Nemenyi's for the pairs; Wilcoxon's for two.

References
----------
.. [1] J. Demšar (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
       Machine Learning Research 7, 1-30.
.. [2] R. L. Iman and J. M. Davenport (1980). Approximations of the critical region of the Friedman
       statistic. Communications in Statistics A 9, 571-595.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from nearlabel.arrays import Array
from nearlabel.texts import first_twice, shown
from nearlabel.validation import check_flag, check_real

LEVEL = 0.05
_EXACT_ROWS = 50  # Wilcoxon's sums are enumerated up to here, where no difference is zero or tied


@dataclass(frozen=True)
class Pair:
    """Two paired columns compared.

    Attributes
    ----------
    statistic : float or None
        Student's t, or the smaller of Wilcoxon's sums of ranks; None where it is not defined.
    p_value : float or None
        Of both tails.
    gain : float
        How much better the first is: the mean difference for t, the median one for Wilcoxon.
        Positive where the first is better, for a loss, too.
    wins, ties, losses : int
        In how many rows the first is better than, equal to and worse than the second.
    """

    statistic: float | None
    p_value: float | None
    gain: float
    wins: int
    ties: int
    losses: int


def paired_t(first: Any, second: Any, *, loss: bool) -> Pair:
    """Student's test of paired differences, two-tailed.

    Where all differences are equal, t is not defined, and there is no p-value.

    Parameters
    ----------
    first, second : array-like, shape (n,)
        What two algorithms reached in the same rows, two at least.
    loss : bool
        Whether less is better.
    """
    values = _paired(first, second)
    gains = _gains(values, loss)
    n, mean = len(gains), float(gains.mean())
    if np.all(gains == gains[0]):
        return Pair(None, None, mean, *_outcomes(gains))
    t = mean / (float(gains.std(ddof=1)) / math.sqrt(n))
    return Pair(t, float(2 * special.stdtr(n - 1, -abs(t))), mean, *_outcomes(gains))


def wilcoxon(first: Any, second: Any, *, loss: bool) -> Pair:
    """Wilcoxon's signed-rank test, two-tailed: for two algorithms over data sets.

    Rows without a difference count half for either side, as [1]_ recommends. The distribution is
    exact for at most 50 rows whose differences are neither zero nor tied, else normal.

    Parameters
    ----------
    first, second : array-like, shape (n,)
        What two algorithms reached in the same rows, two at least.
    loss : bool
        Whether less is better.

    Examples
    --------
    >>> found = wilcoxon([0.9, 0.8, 0.7, 0.9, 0.6, 0.8], [0.7, 0.7, 0.4, 0.5, 0.1, 0.2], loss=False)
    >>> found.wins, found.p_value
    (6, 0.03125)
    """
    from scipy import stats

    values = _paired(first, second)
    gains = _gains(values, loss)
    if not gains.any():
        return Pair(None, 1.0, 0.0, *_outcomes(gains))
    sizes = np.abs(gains)
    enumerable = len(gains) <= _EXACT_ROWS and sizes.all() and len(np.unique(sizes)) == len(gains)
    tested = stats.wilcoxon(gains, zero_method="zsplit", method="exact" if enumerable else "approx")
    return Pair(
        float(tested.statistic), float(tested.pvalue), float(np.median(gains)), *_outcomes(gains)
    )


@dataclass(frozen=True)
class Friedman:
    """Friedman's test: whether any algorithm differs from another one.

    Attributes
    ----------
    algorithms : tuple of str
    mean_ranks : tuple of float
        1 is best; algorithms that tie in a row share the mean of their ranks.
    rows : int
    chi_square, p_value : float
        Friedman's statistic, corrected for ties, and its p-value.
    f, f_p_value : float
        The statistic of Iman and Davenport [2]_, which is less conservative, and its p-value;
        infinite where all rows have the same order.
    """

    algorithms: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    rows: int
    chi_square: float
    p_value: float
    f: float
    f_p_value: float


def friedman(values: Any, algorithms: Sequence[str], *, loss: bool) -> Friedman:
    """Friedman's test of ranks with the correction of Iman and Davenport.

    Parameters
    ----------
    values : array-like, shape (rows, algorithms)
        At least two rows and two algorithms, no value missing.
    algorithms : sequence of str
        Their names.
    loss : bool
        Whether less is better.

    Examples
    --------
    >>> found = friedman([[0.1, 0.2, 0.3], [0.2, 0.1, 0.3], [0.1, 0.2, 0.3]], "abc", loss=True)
    >>> found.mean_ranks, round(found.chi_square, 4), round(found.f, 4)
    ((1.3333333333333333, 1.6666666666666667, 3.0), 4.6667, 7.0)
    """
    names = tuple(algorithms)
    ranks = _ranks(check_table(values, names), loss)
    n, k = ranks.shape
    means = ranks.mean(axis=0)
    # Ranks of a row vary by (k³ - k) / 12 around their mean, less where some of them are tied.
    spread = float(np.sum((ranks - (k + 1) / 2) ** 2)) / (n * (k - 1))
    if spread == 0:  # all algorithms tie in all rows
        chi_square, f = 0.0, 0.0
    else:
        chi_square = n * float(np.sum((means - (k + 1) / 2) ** 2)) / spread
        rest = n * (k - 1) - chi_square
        f = (n - 1) * chi_square / rest if rest > 1e-9 * chi_square else math.inf
    return Friedman(
        names,
        tuple(means.tolist()),
        n,
        chi_square,
        float(special.chdtrc(k - 1, chi_square)),
        f,
        float(special.fdtrc(k - 1, (k - 1) * (n - 1), f)) if math.isfinite(f) else 0.0,
    )


@dataclass(frozen=True)
class Nemenyi:
    """Nemenyi's test: which pairs of algorithms differ.

    Attributes
    ----------
    algorithms : tuple of str
    mean_ranks : tuple of float
        1 is best.
    rows : int
    level : float
    critical_difference : float
        Algorithms whose mean ranks differ by it or more differ at this level.
    p_values : tuple of tuple of float
        Of each pair; adjusted for all of them.
    groups : tuple of tuple of str
        The largest sets of algorithms, two at least, of which no two differ; best first.
    """

    algorithms: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    rows: int
    level: float
    critical_difference: float
    p_values: tuple[tuple[float, ...], ...]
    groups: tuple[tuple[str, ...], ...]


def nemenyi(values: Any, algorithms: Sequence[str], *, loss: bool, level: float = LEVEL) -> Nemenyi:
    """Nemenyi's test of all pairs: to be read where Friedman's test finds a difference.

    Parameters
    ----------
    values : array-like, shape (rows, algorithms)
        At least two rows and two algorithms, no value missing.
    algorithms : sequence of str
        Their names.
    loss : bool
        Whether less is better.
    level : float, default=0.05
        Probability of finding a difference where there is none.
    """
    from scipy.stats import studentized_range

    names = tuple(algorithms)
    level = check_level(level)
    ranks = _ranks(check_table(values, names), loss)
    n, k = ranks.shape
    means = ranks.mean(axis=0)
    # Differences of mean ranks have this standard error; the studentized range, which is that of
    # k values, is taken over the one of a single value.
    error = math.sqrt(k * (k + 1) / (6 * n))
    difference = error * float(studentized_range.ppf(1 - level, k, np.inf)) / math.sqrt(2)
    studentized = np.abs(means[:, None] - means) * math.sqrt(2) / error
    p_values = studentized_range.sf(studentized, k, np.inf)
    return Nemenyi(
        names,
        tuple(means.tolist()),
        n,
        level,
        difference,
        tuple(tuple(map(float, np.minimum(row, 1))) for row in p_values),
        _groups(names, means, difference),
    )


def check_level(level: float) -> float:
    """A level of significance, between 0 and 1."""
    level = check_real(level, "level", low=0, high=1)
    if level in (0, 1):
        raise ValueError(f"level must be between 0 and 1; got {level}")
    return level


def check_table(values: Any, algorithms: Sequence[str], *, unmeasured: bool = False) -> Array:
    """A table with a column an algorithm, finite but for columns that are wholly unmeasured."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(algorithms):
        raise ValueError(
            f"values must have one column an algorithm: shape (rows, {len(algorithms)}); "
            f"got shape {table.shape}"
        )
    if len(algorithms) < 2:
        raise ValueError(f"algorithms must be two or more; got {len(algorithms)}")
    twice = first_twice(algorithms)
    if twice is not None:
        raise ValueError(f"algorithms must have names of their own; {shown(twice)} is there twice")
    if len(table) < 2:
        raise ValueError(f"values must have two rows or more; got {len(table)}")
    for name, column in zip(algorithms, table.T, strict=True):
        missing = int(np.sum(~np.isfinite(column)))
        if missing and not (unmeasured and np.isnan(column).all()):
            raise ValueError(
                f"values must be finite: {shown(name)} has no number in {missing} of {len(table)} "
                "rows; leave out the algorithm or the rows"
            )
    return table


def _paired(first: Any, second: Any) -> Array:
    """Two columns as one table."""
    columns = [np.asarray(column, dtype=np.float64) for column in (first, second)]
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        shapes = " and ".join(str(column.shape) for column in columns)
        raise ValueError(f"first and second must be columns of one length; got shapes {shapes}")
    return check_table(np.column_stack(columns), ("first", "second"))


def _gains(values: Array, loss: bool) -> Array:
    """By how much the first column is better than the second one."""
    sign = -1.0 if check_flag(loss, "loss") else 1.0
    return _rounded(sign * (values[:, 0] - values[:, 1]), values)


def _rounded(numbers: Array, values: Array) -> Array:
    """Numbers to 40 binary digits of the greatest value: what differs by less is meant equal.

    Means that were added up in another order differ in the last digits, and 0.9 - 0.7 is not
    0.8 - 0.6; such differences must not decide about ties, nor about a test.
    """
    unit = 2.0 ** (math.frexp(float(np.max(np.abs(values))))[1] - 40)
    rounded: Array = np.rint(numbers / unit) * unit
    return rounded


def _outcomes(gains: Array) -> tuple[int, int, int]:
    return int(np.sum(gains > 0)), int(np.sum(gains == 0)), int(np.sum(gains < 0))


def _ranks(values: Array, loss: bool) -> Array:
    """Ranks within each row, 1 for the best; ties share the mean of theirs."""
    from scipy.stats import rankdata

    values = _rounded(values, values)
    ranks: Array = rankdata(values if check_flag(loss, "loss") else -values, axis=1)
    return ranks


def _groups(names: tuple[str, ...], means: Array, difference: float) -> tuple[tuple[str, ...], ...]:
    """Runs of algorithms in the order of their ranks, closer than the critical difference."""
    order = np.argsort(means, kind="stable")
    ends = np.searchsorted(means[order], means[order] + difference, side="left")
    groups, reached = [], 0
    for start, end in enumerate(ends.tolist()):
        if end > max(reached, start + 1):  # not within the group before, and not alone
            groups.append(tuple(names[place] for place in order[start:end]))
            reached = end
    return tuple(groups)
