"""The partial and the total order of algorithms of the ML-kNN paper [1]_.

For each metric, an algorithm stands above another one where a paired t-test finds it better. These
relations are a partial order of the metric, though not always a transitive one. Each relation,
over all metrics, gives the better algorithm a point and takes one from the other; the points make
the total order.

References
----------
.. [1] M.-L. Zhang and Z.-H. Zhou (2007). ML-KNN: A lazy learning approach to multi-label learning.
       Pattern Recognition 40, 2038-2048.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from nearlabel.common.messages import shown
from nearlabel.common.validation import check_choice
from nearlabel.experiments.significance.pairs import LEVEL, Pair, check_level, check_table, paired_t
from nearlabel.metrics import METRICS


@dataclass(frozen=True)
class PartialOrder:
    """How algorithms compare by one metric.

    Attributes
    ----------
    metric : str
    level : float
    pairs : dict of (str, str) to Pair
        The test of every pair of algorithms that have the metric, in the given order.
    relations : tuple of (str, str)
        The better and the worse algorithm of each pair that differs at this level.
    """

    metric: str
    level: float
    pairs: dict[tuple[str, str], Pair]
    relations: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return ", ".join(f"{better} > {worse}" for better, worse in self.relations) or "none"


def partial_order(
    values: npt.ArrayLike | Sequence[Sequence[float | None]],
    algorithms: Sequence[str],
    metric: str,
    *,
    level: float = LEVEL,
) -> PartialOrder:
    """The relations between algorithms by one metric.

    Parameters
    ----------
    values : array-like, shape (rows, algorithms)
        What each algorithm reached in each fold, or on each data set. An algorithm that does not
        have the metric has None or NaN in all rows, and no relations.
    algorithms : sequence of str
        Their names.
    metric : str
        A name of `nearlabel.metrics.METRICS`; it says whether lower is better.
    level : float, default=0.05
        Of the two-tailed paired t-test. Where all differences of two algorithms are equal, t is
        not defined, and they have no relation.

    Examples
    --------
    >>> folds = [[0.21, 0.25, 0.26], [0.19, 0.24, 0.23], [0.20, 0.23, 0.25], [0.18, 0.23, 0.22]]
    >>> print(partial_order(folds, ["ML-kNN", "BRkNN", "IBLR-ML"], "ranking_loss"))
    ML-kNN > BRkNN, ML-kNN > IBLR-ML
    """
    level = check_level(level)
    loss = METRICS[check_choice(metric, "metric", METRICS)].loss
    table = check_table(values, algorithms, unmeasured=True)
    measured = [place for place in range(len(algorithms)) if not np.isnan(table[:, place]).all()]
    pairs, relations = {}, []
    for first, second in combinations(measured, 2):
        names = algorithms[first], algorithms[second]
        pairs[names] = pair = paired_t(table[:, first], table[:, second], loss=loss)
        if pair.p_value is not None and pair.p_value < level:
            relations.append(names if pair.side > 0 else names[::-1])
    return PartialOrder(metric, level, pairs, tuple(relations))


@dataclass(frozen=True)
class TotalOrder:
    """Algorithms by their points over all metrics.

    Attributes
    ----------
    scores : dict of str to int
        Relations in which an algorithm is the better one, less those in which it is the worse one.
    places : tuple of tuple of str
        Best first; algorithms with equal scores share a place, in the given order.
    """

    scores: dict[str, int]
    places: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return " > ".join(
            " = ".join(f"{name} ({self.scores[name]})" for name in place) for place in self.places
        )


def total_order(
    relations: Mapping[str, Iterable[tuple[str, str]]], algorithms: Sequence[str]
) -> TotalOrder:
    """The order by points of the relations of all metrics.

    Parameters
    ----------
    relations : mapping of str to iterable of (str, str)
        For each metric the better and the worse algorithm of each relation.
    algorithms : sequence of str
        Their names.

    Examples
    --------
    >>> by_metric = {"ranking_loss": [("a", "c"), ("b", "c")], "one_error": [("c", "b")]}
    >>> print(total_order(by_metric, ["a", "b", "c"]))
    a (1) > b (0) > c (-1)
    """
    scores = dict.fromkeys(algorithms, 0)
    for metric, pairs in relations.items():
        for pair in pairs:
            for name, point in zip(pair, (1, -1), strict=True):
                if name not in scores:
                    raise ValueError(
                        f"relations of {metric} must be between {', '.join(map(shown, algorithms))}"
                        f"; got {shown(name)}"
                    )
                scores[name] += point
    levels = sorted(set(scores.values()), reverse=True)
    places = (tuple(name for name in scores if scores[name] == level) for level in levels)
    return TotalOrder(scores, tuple(places))
