"""The fitted state of a blend: methods on two graphs, regressions, and their weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from nearlabel.blend.evidence import (
    Pairs,
    frequency_log_odds,
    reading_log_odds,
    ridge_columns,
    share_log_odds,
)
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.other_readings import OtherReading
from nearlabel.blend.pooled_logistic import CrossFitted
from nearlabel.blend.ridge_scores import RidgeScores, RidgeWeights
from nearlabel.blend.voting_forest import VotingForest
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.default_scores import DefaultScores
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.items import Items

DENSE_LABELS = 2_000  # up to this number, every label is scored for every row
TOUCHED_LABELS = 300  # about how many labels of a row are scored if there are more
_CELLS_AT_ONCE = 2**22


class Said(NamedTuple):
    """The scores of some rows by all readings, in the order of the columns, and their neighbors.

    For training rows that are left out, also the labels of the rows.
    """

    methods: list[LabelScores]
    regressions: list[RidgeScores]
    forest: list[LabelScores]
    others: list[Any]
    graphs: list[tuple[NeighborGraph, Csr]]
    own: Csr | None = None


@dataclass(eq=False)
class LearnedBlend:
    """Everything that a blend has learned, except the plain items.

    Attributes
    ----------
    plain, learned : list of estimators
        Methods fitted to the graph of the vectors, and to that of the learned rows.
    space : LabelSpace or None
        The transformer that makes learned rows.
    rows : Items or None
        The learned training rows, each left out, and the search among them.
    regressions : dict of RidgeWeights
        By kernel.
    forest : VotingForest or None
    others : list of OtherReading
        Classifiers without neighbors.
    logistic : CrossFitted or None
        The weights; None until they are learned.
    missed : float
        How often a row has a label that none of its neighbors has, relative to how often the
        labels' frequencies predict that. Only with many labels, where such labels are not scored.
    totals : ndarray of int, shape (q,)
        How many training rows have each label.
    n : int
        Training rows.
    """

    plain: list[Any]
    learned: list[Any] = field(default_factory=list)
    space: LabelSpace | None = None
    rows: Items | None = None
    regressions: dict[str, RidgeWeights] = field(default_factory=dict)
    forest: VotingForest | None = None
    others: list[OtherReading] = field(default_factory=list)
    logistic: CrossFitted | None = None
    missed: float = 1.0
    totals: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    n: int = 0

    @property
    def q(self) -> int:
        """Labels."""
        return len(self.totals)

    @property
    def is_dense(self) -> bool:
        """Whether every label is scored for every row."""
        return self.q <= DENSE_LABELS or not self.plain

    @property
    def names(self) -> list[str]:
        """The unique names of the columns."""
        names = _numbered([_name(one) for one in self.plain])
        names += [f"learned {name}" for name in names[: len(self.learned)]]
        for kernel in self.regressions:
            names += [f"{kernel} ridge", f"root of {kernel} ridge"]
            names += [] if self.is_dense else [f"log odds of {kernel} ridge"]
        names += [] if self.forest is None else ["forest"]
        names += _numbered([one.name for one in self.others])
        return [*names, "frequency"] if self.is_dense else names

    def said(self, graph: NeighborGraph, X: Any) -> Said:
        """The scores of all readings for new rows, whose plain neighbors are given."""
        methods = [one._scores(graph.head(one.n_neighbors_), X) for one in self.plain]
        graphs = [(graph, one._labels) for one in self.plain[:1]]
        if self.learned:
            assert self.space is not None
            assert self.rows is not None
            Z = self.space.transform(X)
            near = self.rows.neighbors(Z, self._widest())
            methods += [one._scores(near.head(one.n_neighbors_), Z) for one in self.learned]
            graphs.append((near, self.rows.labels))
        ridges = [one.scores(X) for one in self.regressions.values()]
        votes = [] if self.forest is None else [self.forest.scores(X)]
        return Said(methods, ridges, votes, [one.scores(X) for one in self.others], graphs)

    def said_left_out(
        self,
        graph: NeighborGraph,
        X: Any,
        places: Array,
        rows: Array,
        own: Csr,
        near: NeighborGraph | None = None,
    ) -> Said:
        """The scores of all readings for training rows, each left out.

        Parameters
        ----------
        graph, X : their plain neighbors and vectors
        places : ndarray of int
            Their positions among the plain items.
        rows : ndarray of int
            Their numbers among the learned rows, which have no gaps.
        own : csr_array
            Their labels.
        near : NeighborGraph, optional
            Their neighbors among the learned rows; searched if None.
        """
        methods = [
            one._left_out_scores(graph.head(one.n_neighbors_), X, places) for one in self.plain
        ]
        graphs = [(graph, one._labels) for one in self.plain[:1]]
        if self.learned:
            assert self.rows is not None
            assert self.rows.store is not None
            if near is None:
                near = self.rows.left_out_neighbors(rows, self._widest())
            Z = self.rows.store.take(rows)
            methods += [
                one._left_out_scores(near.head(one.n_neighbors_), Z, rows) for one in self.learned
            ]
            graphs.append((near, self.rows.labels))
        ridges = [one.left_out_scores(X, rows, own) for one in self.regressions.values()]
        votes = [] if self.forest is None else [self.forest.left_out_scores(rows)]
        others = [one.left_out[rows] for one in self.others]
        return Said(methods, ridges, votes, others, graphs, own)

    def _widest(self) -> int:
        return max(int(one.n_neighbors_) for one in self.learned)

    def pairs(self, said: Said, n: int) -> Pairs:
        """The pairs of n rows and labels that are scored."""
        if self.is_dense:
            return Pairs.every(n, self.q)
        return Pairs.carried([neighbor_counts(*one) for one in said.graphs])

    def columns(self, said: Said, pairs: Pairs) -> Floats:
        """The columns of all readings for pairs, shape (p, f)."""
        frequency = self._frequency(said, pairs)
        found = [
            reading_log_odds(model, pairs.of(scores), pairs.label, frequency)
            for model, scores in zip([*self.plain, *self.learned], said.methods, strict=True)
        ]
        for scores in said.regressions:
            found += ridge_columns(pairs.of(scores), log_odds=not self.is_dense)
        found += [share_log_odds(pairs.of(votes), frequency) for votes in said.forest]
        for other, values in zip(self.others, said.others, strict=True):
            found.append(other.column(values[pairs.row, pairs.label], frequency))
        # With many labels, a single weight of the frequency fits the rare labels, which make up
        # most pairs, and ranks the frequent ones, which belong on the first ranks, too low.
        return np.column_stack([*found, frequency] if self.is_dense else found)

    def _frequency(self, said: Said, pairs: Pairs) -> Floats:
        """Log odds of the labels' shares of the training rows, without a row that is left out.

        Tables and regressions leave it out, too. Next to them, the share of all rows would reveal
        the row's labels: the two differ only for these.
        """
        totals, n = self.totals[pairs.label], self.n
        if said.own is not None:
            totals, n = totals - pairs.truth(said.own), n - 1
        return frequency_log_odds(totals, n)

    def blended(self, said: Said, n: int, rows: Array | None = None) -> LabelScores:
        """Probabilities of all labels of n rows, from the scores of all readings.

        Given the numbers of training rows, by weights learned without these rows.
        """
        pairs = self.pairs(said, n)
        return self.probabilities(pairs, self.columns(said, pairs), rows)

    def probabilities(
        self, pairs: Pairs, columns: Floats, rows: Array | None = None
    ) -> LabelScores:
        """`blended`, from the columns of pairs."""
        assert self.logistic is not None
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
        step = max(1, _CELLS_AT_ONCE // cells)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _numbered(names: list[str]) -> list[str]:
    """The names, made unique."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if name in names[:place] else name
        for place, name in enumerate(names)
    ]


def _name(model: Any) -> str:
    return f"{model.title} (k = {model.n_neighbors_})"
