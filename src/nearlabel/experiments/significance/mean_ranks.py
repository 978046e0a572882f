"""Whether several algorithms differ over data sets, by their ranks, and which from which.

The order of [1]_: Friedman's test asks whether there is any difference; where it finds one,
Nemenyi's test asks for each pair.

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

import numpy as np
import numpy.typing as npt
from scipy import special

from nearlabel.common.arrays import Floats
from nearlabel.common.validation import check_flag
from nearlabel.experiments.significance.pairs import LEVEL, check_level, check_table, rounded


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
        The statistic of Iman and Davenport (1980), which is less conservative, and its p-value;
        infinite where all rows have the same order.
    """

    algorithms: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    rows: int
    chi_square: float
    p_value: float
    f: float
    f_p_value: float


def friedman(values: npt.ArrayLike, algorithms: Sequence[str], *, loss: bool) -> Friedman:
    """Friedman's test of ranks with the correction of Iman and Davenport.

    Parameters
    ----------
    values : array-like, shape (rows, algorithms)
        At least two rows and two algorithms, no value missing.
    algorithms : sequence of str
        Their names.
    loss : bool
        Whether lower is better.

    Examples
    --------
    >>> test = friedman([[0.1, 0.2, 0.3], [0.2, 0.1, 0.3], [0.1, 0.2, 0.3]], "abc", loss=True)
    >>> test.mean_ranks, round(test.chi_square, 4), round(test.f, 4)
    ((1.3333333333333333, 1.6666666666666667, 3.0), 4.6667, 7.0)
    """
    names, ranks = tuple(algorithms), _ranks(values, algorithms, loss)
    (n, k), means = ranks.shape, ranks.mean(axis=0)
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
    algorithms, mean_ranks, rows
        As in `Friedman`.
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


def nemenyi(
    values: npt.ArrayLike, algorithms: Sequence[str], *, loss: bool, level: float = LEVEL
) -> Nemenyi:
    """Nemenyi's test of all pairs: to be read where Friedman's test finds a difference.

    Parameters
    ----------
    values, algorithms, loss
        As in `friedman`.
    level : float, default=0.05
        Probability of finding a difference where there is none.
    """
    from scipy.stats import studentized_range

    level = check_level(level)
    names, ranks = tuple(algorithms), _ranks(values, algorithms, loss)
    (n, k), means = ranks.shape, ranks.mean(axis=0)
    # Differences of mean ranks have this standard error; the studentized range, which is that of
    # k values, is taken over the one of a single value.
    error = math.sqrt(k * (k + 1) / (6 * n))
    difference = error * float(studentized_range.ppf(1 - level, k, np.inf)) / math.sqrt(2)
    studentized = np.abs(means[:, None] - means) * math.sqrt(2) / error
    p_values = np.minimum(studentized_range.sf(studentized, k, np.inf), 1)
    # Runs of algorithms in the order of their ranks, closer than the critical difference.
    order = np.argsort(means, kind="stable")
    ends = np.searchsorted(means[order], means[order] + difference, side="left")
    groups, reached = [], 0
    for start, end in enumerate(ends.tolist()):
        if end > max(reached, start + 1):  # not within the group before, and not alone
            groups.append(tuple(names[place] for place in order[start:end]))
            reached = end
    return Nemenyi(
        names,
        tuple(means.tolist()),
        n,
        level,
        difference,
        tuple(map(tuple, p_values.tolist())),
        tuple(groups),
    )


def _ranks(values: npt.ArrayLike, algorithms: Sequence[str], loss: bool) -> Floats:
    """Ranks within each row, 1 for the best; ties share the mean of theirs."""
    from scipy.stats import rankdata

    table = check_table(values, algorithms)
    table = rounded(table, table)
    return np.asarray(rankdata(table if check_flag(loss, "loss") else -table, axis=1))
