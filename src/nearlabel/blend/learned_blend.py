"""The fitted state of a blend: readings of pairs of a row and a label, and their weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import expit

from nearlabel.blend.evidence import Pairs, frequency_log_odds
from nearlabel.blend.pooled_logistic import CrossFitted
from nearlabel.blend.readings import (
    BlendReading,
    MethodReadings,
    RidgeReading,
    ScoredRows,
    numbered,
)
from nearlabel.blend.voting_forest import VotingForest
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.scores import DefaultScores, LabelScores

DENSE_LABELS = 2_000  # up to this number, every label is scored for every row
TOUCHED_LABELS = 300  # about how many labels of a row are scored if there are more


@dataclass(eq=False)
class LearnedBlend:
    """Everything that a blend has learned, except the plain items."""

    plain: MethodReadings  # on the graph of the vectors
    totals: Array  # (q,): how many training rows have each label
    n: int  # training rows
    learned: MethodReadings | None = None  # the same methods on the graph of the learned rows
    regressions: list[RidgeReading] = field(default_factory=list)
    forest: VotingForest | None = None
    logistic: CrossFitted = field(init=False)  # the weights
    # How often a row has a label that none of its neighbors has, relative to how often the labels'
    # frequencies predict that. Only with many labels, where such labels are not scored.
    missed: float = 1.0

    @property
    def q(self) -> int:
        """Labels."""
        return len(self.totals)

    @property
    def is_dense(self) -> bool:
        """Whether every label is scored for every row."""
        return self.q <= DENSE_LABELS or not self.plain.methods

    @property
    def _of_graphs(self) -> list[MethodReadings]:
        """The readings of neighbors."""
        return [self.plain] if self.learned is None else [self.plain, self.learned]

    @property
    def _readings(self) -> list[BlendReading]:
        """All readings, in the order of their columns; those of neighbors first."""
        forest = [] if self.forest is None else [self.forest]
        return [*self._of_graphs, *self.regressions, *forest]

    @property
    def names(self) -> list[str]:
        """The unique names of the columns."""
        names = numbered([name for reading in self._readings for name in reading.names])
        return [*names, "frequency"] if self.is_dense else names

    def columns(self, rows: ScoredRows, pairs: Pairs | None = None) -> tuple[Pairs, Floats]:
        """The columns of all readings, shape (p, f), for the pairs of rows and labels, (p,).

        By default the pairs with all labels, or if there are many with those of some neighbor.
        """
        near = [(reading.in_graph(rows), reading.items.labels) for reading in self._of_graphs]
        if pairs is None and self.is_dense:
            pairs = Pairs.every(rows.X.shape[0], self.q)
        elif pairs is None:
            pairs = Pairs.carried([neighbor_counts(part.graph, Y) for part, Y in near])
        # Tables and regressions leave out a training row, and so does the frequency. Next to them,
        # the share of all rows would reveal the row's labels: the two differ only for these.
        totals, n = self.totals[pairs.label], self.n
        if rows.left_out is not None:
            totals, n = totals - pairs.truth(rows.left_out.own), n - 1
        frequency, columns = frequency_log_odds(totals, n), []
        parts = [part for part, _ in near]
        parts += [rows] * (len(self._readings) - len(near))
        for reading, part in zip(self._readings, parts, strict=True):
            columns += reading.columns(part, pairs, frequency)
        # With many labels, a single weight of the frequency fits the rare labels, which make up
        # most pairs, and ranks the frequent ones, which belong on the first ranks, too low.
        return pairs, np.column_stack([*columns, frequency] if self.is_dense else columns)

    def probabilities(
        self, pairs: Pairs, columns: Floats, rows: Array | None = None
    ) -> LabelScores:
        """Probabilities of all labels, from the columns of pairs.

        Given the numbers of training rows, by weights learned without these rows.
        """
        if rows is None:
            odds = self.logistic.whole.log_odds(columns, pairs.label)
        else:
            odds = self.logistic.left_out_log_odds(columns, rows[pairs.row], pairs.label)
        return pairs.scores(expit(odds), None if pairs.is_all else self._defaults)

    @cached_property
    def _defaults(self) -> DefaultScores:
        """Probabilities of labels that no neighbor has."""
        return DefaultScores((self.missed * self.totals / self.n)[None])

    def missed_share(self, pairs: Pairs, truth: Array, own: Csr) -> float:
        """`missed` for rows with the labels `own`, given the pairs that are scored."""
        if pairs.is_all:
            return 1.0
        share = self.totals / self.n
        expected = own.shape[0] * share.sum() - share[pairs.label].sum()
        missed = own.nnz - np.count_nonzero(truth)
        return float(min(1.0, (missed + 0.5) / (expected + 0.5)))

    def runs(self, n: int) -> Iterator[slice]:
        """Runs of rows whose columns fit into memory."""
        cells = (self.q if self.is_dense else TOUCHED_LABELS) * len(self.names)
        step = max(1, 2**22 // cells)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))
