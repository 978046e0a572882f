"""Posteriors given numbers of neighbors, by Bayes' rule on tables of training rows.

Ties are exact: numerators and denominators are multiplied before anything is divided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.labels.histograms import CountedRows, LabelHistograms, cell_values

# n, n_l, c[j] and c'[j], as `Counts`; and in how many parts each row is counted in c'[j].
Rows = tuple[Array, Array, Array, Array, Array | int]
_FEW_CELLS = 2**20  # of tables: posteriors of all of them take some milliseconds


class Ratio(NamedTuple):
    """A probability as numerator and denominator, so that nothing is rounded too early."""

    numerator: Array | float
    denominator: Array | float

    @property
    def value(self) -> Floats:
        """The quotient; nan where nothing was counted."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.numerator / self.denominator)


def posterior(prior: Ratio, likelihood: Ratio, other_prior: Ratio, other: Ratio) -> Floats:
    """P(H_1 | E) = P(H_1) P(E | H_1) / (P(H_1) P(E | H_1) + P(H_0) P(E | H_0)).

    The two priors, P(H_1) and P(H_0), have the same denominator.
    """
    # Both products multiplied by all denominators: for integer counts and an integer s these are
    # integers, so that equal hypotheses tie exactly below 2^53, and a tiny s does no harm.
    yes = prior.numerator * other.denominator * likelihood.numerator
    no = other_prior.numerator * likelihood.denominator * other.numerator
    either = np.asarray(yes + no)
    with np.errstate(invalid="ignore"):
        result = np.asarray(yes / either)
        if not either.all():
            # Departs from the paper, which has s > 0: without smoothing, unseen evidence gives the
            # prior, as in the authors' code; and 1/2 if there are no rows at all.
            known = np.asarray(prior.denominator) > 0
            result = np.where(either > 0, result, np.where(known, prior.value, 0.5))
    return result


@dataclass(frozen=True)
class CountPosteriors:
    """P(H_1 | E_j) of labels and counts, as published.

    `formula` is that of a method: a function of `Rows`.
    """

    counted: CountedRows
    k: int
    formula: Callable[..., Floats]

    def rows(self, label: Array | int, count: Array | int, group: Array | int = 0) -> Rows:
        """The row counts of labels and counts, in the tables of some groups."""
        return *self.counted.counts(label, count, group), 1

    def dense_rows(self) -> Rows:
        """`rows` of all labels and of counts from 0 to k, in the shape (groups q, k + 1)."""
        return *self.counted.compacted().dense(self.k), 1

    def computed(self, label: Array, count: Array, group: Array | int = 0) -> Floats:
        """Posteriors of new rows with the given counts of neighbors with a label."""
        return self.formula(*self.rows(label, count, group))

    def left_out(self, label: Array, count: Array, own: Array, group: Array | int = 0) -> Floats:
        """Posteriors of training rows left out of the tables; `own` is 1 if one has the label."""
        return self.formula(*_without(self.rows(label, count, group), own, 1 - own))

    def at_0(self, *, left_out: bool = False) -> Floats:
        """Posteriors at count 0 of rows without the label, of every label of every group."""
        counted = self.counted
        if "table" in vars(self) and isinstance(counted, LabelHistograms) and not left_out:
            return self.table[counted.start[:-1]]
        return self.computed_at_0(left_out=left_out)

    def computed_at_0(self, *, left_out: bool = False) -> Floats:
        """`at_0`, without the table."""
        label, group = self.counted.every_label
        rows = self.rows(label, 0, group)
        return self.formula(*(_without(rows, 0, rows[4]) if left_out else rows))

    def chance_of_one_less(self, label: int, count: int) -> float:  # noqa: ARG002
        """Probability that a new row's neighbor with a label is not counted: 0."""
        return 0.0

    def prepare(self) -> None:
        """Compute the table if it is small, so that no prediction has to."""
        counted = self.counted
        if isinstance(counted, LabelHistograms) and len(counted.with_label) <= _FEW_CELLS:
            _ = self.table

    @cached_property
    def table(self) -> Floats:
        """Posteriors of all labels and counts, in the order of the cells of `LabelHistograms`."""
        counted = self.counted
        assert isinstance(counted, LabelHistograms)
        table = np.empty(len(counted.with_label))
        q = len(counted.totals) // counted.groups
        for cells, stacked, count in counted.runs():
            group, label = np.divmod(stacked, q)
            table[cells] = self.computed(label, count, group)
        return table

    def at(self, label: Array, count: Array, group: Array | int = 0) -> Floats:
        """`computed`, from the table if there is one, or if many are asked for."""
        counted = self.counted
        if isinstance(counted, LabelHistograms) and (
            "table" in vars(self) or 2 * len(label) > len(counted.with_label)
        ):
            return cell_values(self.table, counted.start, label + group * counted.q, count)
        return self.computed(label, count, group)


@dataclass(frozen=True)
class EvenCounts(CountPosteriors):
    """P(H_1 | E_j) if one carrier of a label does not count.

    A training row is left out of its own neighbors. So for a row with a label there are n_l - 1
    other carriers, but for a row without it, and for a new row, n_l. Here one carrier, drawn at
    random, does not count: for a row with the label the row itself, for all others any of the n_l,
    of which j are neighbors. So for the rows without the label, c'[j] becomes

        (1 - j / n_l) c'[j] + (j + 1) / n_l c'[j + 1],

    here multiplied by n_l, so that it is an integer. A new row likewise gets the mean of two
    posteriors. n_l is always that of all rows, whichever group is counted.
    """

    def rows(self, label: Array | int, count: Array | int, group: Array | int = 0) -> Rows:
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
        n, n_l, c, c_prime = self.counted.compacted().dense(self.k)
        carriers = np.maximum(self.counted.carriers(self.counted.every_label[0]), 1)[:, None]
        count = np.arange(self.k + 1)
        even = (carriers - count) * c_prime
        even[:, :-1] += count[1:] * c_prime[:, 1:]
        return n, n_l, c, even, carriers

    def computed(self, label: Array, count: Array, group: Array | int = 0) -> Floats:
        """Posteriors of new rows with the given counts of neighbors with a label."""
        here, below = self.rows(label, count, group), self._rows_below(label, count, group)
        return self._mean(here, below, drawn=count)

    def left_out(self, label: Array, count: Array, own: Array, group: Array | int = 0) -> Floats:
        """Posteriors of training rows left out of the tables; `own` is 1 if one has the label.

        A row with the label has n_l - 1 other carriers already, like all rows in the tables, so
        nothing is drawn. A row without it was in two cells.
        """
        here, below = self.rows(label, count, group), self._rows_below(label, count, group)
        drawn = (1 - own) * count
        here = _without(here, own, (1 - own) * (here[4] - count))
        return self._mean(here, _without(below, own, drawn), drawn)

    at_0 = CountPosteriors.computed_at_0  # nothing is drawn, and no mean rounded, as in the table

    def chance_of_one_less(self, label: int, count: int) -> float:
        """Probability that the carrier that does not count is one of a new row's neighbors."""
        return float(count / max(int(self.counted.carriers(label)), 1))

    def _rows_below(self, label: Array, count: Array, group: Array | int) -> Rows:
        return self.rows(label, np.maximum(count - 1, 0), group)

    def _mean(self, here: Rows, below: Rows, drawn: Array) -> Floats:
        """The mean of posteriors over the draws, `drawn` of which hit one of the neighbors."""
        carriers = here[4]
        sum_of_draws = (carriers - drawn) * self.formula(*here) + drawn * self.formula(*below)
        return np.asarray(sum_of_draws / carriers)


def _without(rows: Rows, own: Array | int, gone: Array | int) -> Rows:
    """Row counts without one row: with the label if `own` is 1, else `gone` of c'[j] are its own.

    Nothing becomes negative: count 0 of a label may have no row without it to leave out.
    """
    n, n_l, c, c_prime, parts = rows
    return n - 1, np.minimum(n_l - own, n - 1), c - own, np.maximum(c_prime - gone, 0), parts
