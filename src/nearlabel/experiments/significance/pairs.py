"""Whether two algorithms differ, by what they reached in the same folds or on the same data sets.

The advice of [1]_: over the folds of one data set, a t-test; over several data sets, where
differences are neither normal nor of one size, ranks.

References
----------
.. [1] J. Demšar (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
       Machine Learning Research 7, 1-30.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from nearlabel.common.arrays import Floats
from nearlabel.common.messages import first_twice, shown
from nearlabel.common.validation import check_flag, check_real

LEVEL = 0.05


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
        The mean difference for t, the median one for Wilcoxon; positive where the first is better.
    side : int
        Which one the test favors: 1 for the first, -1 for the second, 0 for neither.
    wins, ties, losses : int
        In how many rows the first is better than, equal to and worse than the second.
    error : float or None
        The standard error of the mean difference; None for Wilcoxon.
    """

    statistic: float | None
    p_value: float | None
    gain: float
    side: int
    wins: int
    ties: int
    losses: int
    error: float | None = None

    def is_better(self, level: float = LEVEL) -> bool:
        """Whether the first is significantly better than the second."""
        return self.side > 0 and self.p_value is not None and self.p_value < level


def paired_t(first: npt.ArrayLike, second: npt.ArrayLike, *, loss: bool) -> Pair:
    """Student's test of paired differences, two-tailed.

    Where all differences are equal, t is not defined, and there is no p-value.

    Parameters
    ----------
    first, second : array-like, shape (n,)
        What two algorithms reached in the same rows, two at least.
    loss : bool
        Whether lower is better.
    """
    gains, outcomes = _gains(first, second, loss)
    n, mean = len(gains), float(gains.mean())
    if np.all(gains == gains[0]):
        return Pair(None, None, mean, 0, *outcomes, error=0.0)
    error = float(gains.std(ddof=1)) / math.sqrt(n)
    t = mean / error
    p_value = float(2 * special.stdtr(n - 1, -abs(t)))
    return Pair(t, p_value, mean, int(np.sign(t)), *outcomes, error=error)


def wilcoxon(first: npt.ArrayLike, second: npt.ArrayLike, *, loss: bool) -> Pair:
    """Wilcoxon's signed-rank test, two-tailed: for two algorithms over data sets.

    Rows without a difference count half for either side, as Demšar (2006) recommends. Up to 200
    differences the distribution is exact, also with ties: that of all ways to give them their
    signs; beyond, it is normal.

    Parameters
    ----------
    first, second, loss
        As in `paired_t`.

    Examples
    --------
    >>> found = wilcoxon([0.9, 0.8, 0.7, 0.9, 0.6, 0.8], [0.7, 0.7, 0.4, 0.5, 0.1, 0.2], loss=False)
    >>> found.wins, found.p_value
    (6, 0.03125)
    """
    from scipy.stats import rankdata

    gains, outcomes = _gains(first, second, loss)
    if not gains.any():
        return Pair(None, 1.0, 0.0, 0, *outcomes)
    ranks = rankdata(np.abs(gains))
    won, lost, drawn = (float(ranks[rows].sum()) for rows in (gains > 0, gains < 0, gains == 0))
    least, ranks = min(won, lost), ranks[gains != 0]
    # How likely the ranks of one side add up to so little, if signs are drawn at random.
    if len(ranks) > 200:
        spread = math.sqrt(float(np.sum(ranks**2))) / 2
        chance = float(special.ndtr((least - float(ranks.sum()) / 2) / spread))
    else:
        doubled = np.rint(2 * ranks).astype(np.int64)  # ranks of ties may be halves
        chances = np.zeros(int(doubled.sum()) + 1)  # of each doubled sum
        chances[0] = 1.0
        for rank in doubled:
            chances[rank:] = chances[rank:] + chances[:-rank]
            chances /= 2
        chance = float(chances[: round(2 * least) + 1].sum())
    side = int(np.sign(won - lost))
    return Pair(least + drawn / 2, min(1.0, 2 * chance), float(np.median(gains)), side, *outcomes)


def check_level(level: float) -> float:
    """A level of significance, between 0 and 1."""
    level = check_real(level, "level", low=0, high=1)
    if level in (0, 1):
        raise ValueError(f"level must be between 0 and 1; got {level}")
    return level


def check_table(
    values: npt.ArrayLike | Sequence[Sequence[float | None]],
    algorithms: Sequence[str],
    *,
    unmeasured: bool = False,
) -> Floats:
    """A table with one column per algorithm, finite except for columns without any number."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(algorithms):
        raise ValueError(
            f"values must have one column per algorithm, shape (rows, {len(algorithms)}); "
            f"got shape {table.shape}"
        )
    if len(algorithms) < 2:
        raise ValueError(f"algorithms must be two or more; got {len(algorithms)}")
    twice = first_twice(algorithms)
    if twice is not None:
        raise ValueError(f"algorithms must have unique names; got {shown(twice)} twice")
    if len(table) < 2:
        raise ValueError(f"values must have two rows or more; got {len(table)}")
    for name, column in zip(algorithms, table.T, strict=True):
        missing = int(np.sum(~np.isfinite(column)))
        if missing and not (unmeasured and np.isnan(column).all()):
            raise ValueError(
                f"values must be finite; got none for {shown(name)} in {missing} of {len(table)} "
                "rows: leave out the algorithm or the rows"
            )
    return table


def _gains(
    first: npt.ArrayLike, second: npt.ArrayLike, loss: bool
) -> tuple[Floats, tuple[int, int, int]]:
    """By how much the first is better than the second, and how often better, equal and worse."""
    columns = [np.asarray(column, dtype=np.float64) for column in (first, second)]
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        shapes = " and ".join(str(column.shape) for column in columns)
        raise ValueError(f"first and second must be 1-d and equally long; got shapes {shapes}")
    values = check_table(np.column_stack(columns), ("first", "second"))
    sign = -1.0 if check_flag(loss, "loss") else 1.0
    gains = rounded(sign * (values[:, 0] - values[:, 1]), values)
    return gains, (int(np.sum(gains > 0)), int(np.sum(gains == 0)), int(np.sum(gains < 0)))


def rounded(numbers: Floats, values: Floats) -> Floats:
    """Numbers rounded to 40 bits relative to the greatest value.

    Sums in another order differ in the last digits, and 0.3 - 0.1 is not 0.4 - 0.2: such
    differences must not decide about ties, nor about a test.
    """
    unit = 2.0 ** (math.frexp(float(np.max(np.abs(values))))[1] - 40)
    return np.asarray(np.rint(numbers / unit) * unit)
