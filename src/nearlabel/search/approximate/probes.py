"""Which lists a query probes.

A query in the middle of a cluster finds its neighbors in a few lists; one between clusters needs
many. The distances of the centers tell them apart: lists whose centers are hardly farther than the
nearest one are probed, and others are not. This takes half as many lists as the same number for
all queries, or less.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nearlabel.common.arrays import Array, Floats

_STEP = 1.2  # ratio between numbers of lists that are tried
_MARGIN_STEP = 1.1  # ratio of their margins, if nothing else is known


@dataclass(frozen=True)
class Probes:
    """A rule for the lists that a query probes.

    These are the `least` nearest ones, and up to `most` whose centers are at most `margin` farther
    than the nearest center.

    Attributes
    ----------
    least, most : int
    margin : float
        In the distances of the metric.
    usual : float
        The average number of lists of a query, by which the costs of rules are compared.
    """

    least: int
    most: int
    margin: float
    usual: float = field(compare=False)

    @classmethod
    def fixed(cls, count: int) -> Probes:
        """The same number of lists for all queries."""
        return cls(count, count, np.inf, count)

    @classmethod
    def adapted(cls, least: int, most: int, share: float, distances: Floats) -> Probes:
        """A margin such that some queries probe a share of the lists between `least` and `most`.

        `distances` has those of the centers to these queries, sorted, shape (m, n_lists).
        """
        if least == most or most == distances.shape[1]:
            return cls.fixed(most)
        beyond = (distances - distances[:, :1])[:, least:most].ravel()
        kept = int(np.ceil(share * len(beyond))) - 1
        margin = float(np.partition(beyond, kept)[kept])
        return cls(least, most, margin, least + float(np.mean(beyond <= margin)) * (most - least))

    def at_least(self, least: int) -> Probes:
        """The same rule with at least this number of lists."""
        if least <= self.least:
            return self
        return Probes(least, max(least, self.most), self.margin, max(least, self.usual))

    def within(self, count: int) -> Probes:
        """The same rule for this number of lists."""
        if self.most < count:
            return self
        return Probes.fixed(count)

    def more(self, count: int) -> Probes:
        """A rule that probes more of this number of lists."""
        most = more_lists(self.most, count)
        if self.least == self.most or most == count:
            return Probes.fixed(most)
        return Probes(self.least, most, self.margin * _MARGIN_STEP, self.usual * _STEP)

    def chosen(self, lists: Array, distances: Floats, none: int) -> Array:
        """The lists to probe of those nearest to each query, (m, most), `none` for the others."""
        if self.margin == np.inf:
            return lists
        beyond = distances > distances[:, :1] + self.margin
        beyond[:, : self.least] = False
        return np.where(beyond, lists.dtype.type(none), lists)


def more_lists(probed: int, count: int) -> int:
    """The next number of lists to try, of this many."""
    return min(count, max(probed + 1, round(_STEP * probed)))
