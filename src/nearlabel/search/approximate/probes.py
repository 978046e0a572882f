"""Which lists a query probes.

A query in the middle of a cluster finds its neighbors in a few lists; one between clusters needs
many. The distances of the centers tell them apart: lists whose centers are hardly farther than the
nearest one are probed, and others are not. On hard clusters this takes half as many lists as the
same number for all queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nearlabel.common.arrays import Floats

_STEP = 1.2  # ratio between numbers of lists that are tried


@dataclass(frozen=True)
class Probes:
    """A rule for the lists that a query probes.

    These are the lists, up to `most`, whose centers are at most `margin` farther than the nearest
    center; all `most` if the former contain too few rows.

    Attributes
    ----------
    most : int
    margin : float
        In the distances of the metric.
    usual : float
        The average number of lists of a query.
    """

    most: int
    margin: float
    usual: float = field(compare=False)

    @classmethod
    def fixed(cls, count: int) -> Probes:
        """The same number of lists for all queries."""
        return cls(count, np.inf, count)

    @classmethod
    def adapted(cls, most: int, share: float, distances: Floats) -> Probes:
        """A margin such that some queries probe a share of the lists between 1 and `most`.

        `distances` has those of the centers to these queries, sorted, shape (m, n_lists).
        """
        if most in (1, distances.shape[1]):
            return cls.fixed(most)
        farther = (distances - distances[:, :1])[:, 1:most].ravel()
        last = int(np.ceil(share * len(farther))) - 1
        margin = float(np.partition(farther, last)[last])
        return cls(most, margin, 1 + float(np.mean(farther <= margin)) * (most - 1))

    @property
    def cost(self) -> float:
        """What a query costs, in lists whose rows are compared."""
        # Finding a list among the nearest takes a tenth of the time of comparing its rows.
        return self.usual + 0.1 * self.most

    def at_least(self, most: int) -> Probes:
        """The same rule with at least this number of lists for queries that need them."""
        if most <= self.most:
            return self
        if self.margin == np.inf:
            return Probes.fixed(most)
        return Probes(most, self.margin, self.usual)

    def more(self, count: int) -> Probes:
        """A rule that probes more of this number of lists."""
        most = more_lists(self.most, count)
        if self.margin == np.inf or most == count:
            return Probes.fixed(most)
        # As measured, the lists within a margin grow faster than the margin.
        return Probes(most, self.margin * 1.1, self.usual * _STEP)


def more_lists(probed: int, count: int) -> int:
    """The next number of lists to try, of this many."""
    return min(count, max(probed + 1, round(_STEP * probed)))
