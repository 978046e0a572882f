"""Even counts: rows with and without a label have the same number of possible carriers.

A training row is left out of its own neighbors. So for a row with a label there are n_l - 1 other
carriers, but for a row without it, and for a new row, n_l. Here one carrier, drawn at random, does
not count: for a row with the label the row itself, for all others any of the n_l. The result is the
mean over the draws, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.formulas.count_posteriors import CountPosteriors, Rows


@dataclass(frozen=True)
class EvenCounts(CountPosteriors):
    """P(H_1 | E_j) if one carrier of a label does not count.

    The carrier that does not count is among j neighbors with the label in j of n_l draws; then
    j - 1 are left. So for the rows without the label, c'[j] becomes

        (1 - j / n_l) c'[j] + (j + 1) / n_l c'[j + 1],

    here multiplied by n_l, so that it is an integer. A new row likewise gets the mean of two
    posteriors. n_l is always that of all rows, whichever group is counted.
    """

    def rows(self, label: Any, count: Any, group: Any = 0) -> Rows:
        """n, n_l, c[j], and n_l times c'[j]; the last number is n_l, or 1 if that is 0."""
        n, n_l, c, c_prime = self.counted.counts(label, count, group)
        carriers = self.counted.carriers(label)
        most = np.minimum(carriers, self.k)  # the last cell of the label
        of_next = self.counted.counts(label, np.minimum(count + 1, most), group)[3]
        from_next = np.where(count < most, (count + 1) * of_next, 0)
        carriers = np.maximum(carriers, 1)
        return n, n_l, c, (carriers - count) * c_prime + from_next, carriers

    def dense_rows(self) -> Rows:
        """`rows` of all labels and of counts from 0 to k, in the shape (groups q, k + 1)."""
        n, n_l, c, c_prime = self.counted.dense(self.k)
        carriers = np.maximum(self.counted.carriers(np.arange(self.counted.q)), 1)
        carriers = np.tile(carriers, self.counted.groups)[:, None]
        count = np.arange(self.k + 1)
        even = (carriers - count) * c_prime
        even[:, :-1] += count[1:] * c_prime[:, 1:]
        return n, n_l, c, even, carriers

    def at(self, label: Any, count: Any, group: Any = 0) -> Floats:
        """Posteriors of new rows with the given counts of neighbors with a label."""
        here = self.posterior(*self.rows(label, count, group))
        below = self.posterior(*self.rows(label, np.maximum(count - 1, 0), group))
        return self._mean(here, below, label, count)

    def at_0(self) -> Floats:
        """`at` count 0, of every label of every group."""
        return self.posterior(*self._rows_at_0())

    def left_out(self, label: Any, count: Any, own: Array, group: Any = 0) -> Floats:
        """Posteriors of training rows left out of the tables; `own` is 1 if one has the label.

        A row with the label has n_l - 1 other carriers already, like all rows in the tables, so
        nothing is drawn. A row without it was in two cells.
        """
        n, n_l, c, even, carriers = self.rows(label, count, group)
        gone = (1 - own) * (carriers - count)
        here = self.posterior(n - 1, n_l - own, c - own, even - gone, carriers)
        n, n_l, c, even, carriers = self.rows(label, np.maximum(count - 1, 0), group)
        below = self.posterior(n - 1, n_l - own, c, even - (1 - own) * count, carriers)
        return self._mean(here, below, label, (1 - own) * count)

    def left_out_at_0(self) -> Floats:
        """`left_out` at count 0 of rows without the label, of every label of every group."""
        n, n_l, c, even, carriers = self._rows_at_0()
        even = np.maximum(even - carriers, 0)
        return self.posterior(n - 1, np.minimum(n_l, n - 1), c, even, carriers)

    def chance_of_one_less(self, label: Any, count: Any) -> Floats:
        """Probability that the carrier that does not count is one of a new row's neighbors."""
        return np.asarray(count / np.maximum(self.counted.carriers(label), 1))

    def _rows_at_0(self) -> Rows:
        q = self.counted.q
        group, label = np.divmod(np.arange(self.counted.groups * q), q)
        return self.rows(label, 0, group)

    def _mean(self, here: Floats, below: Floats, label: Any, drawn: Any) -> Floats:
        """The mean of posteriors over the draws, `drawn` of which hit one of the neighbors."""
        carriers = np.maximum(self.counted.carriers(label), 1)
        return np.asarray(((carriers - drawn) * here + drawn * below) / carriers)
