"""The readings of a blend: methods on a graph, and ridge regressions.

A reading gives the columns of (row, label) pairs that a blend learns weights for: one or more
numbers that say how likely the row has the label. It scores training rows as if they were new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import logit

from nearlabel.blend.evidence import Pairs, bounded_log_odds, share_log_odds
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.ridge_scores import RidgeWeights
from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.graph import NeighborGraph
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.items import Items


class LeftOut(NamedTuple):
    """Training rows that are scored as if they were new."""

    places: Array  # among the plain items
    rows: Array  # their numbers among the learned rows, which have no gaps
    own: Csr  # their labels
    near: NeighborGraph | None = None  # among the learned rows; searched if None


class ScoredRows(NamedTuple):
    """Rows that are scored, new ones or training rows, with their neighbors among the vectors."""

    graph: NeighborGraph
    X: Matrix
    left_out: LeftOut | None = None


class BlendReading(Protocol):
    """What adds columns to a blend."""

    @property
    def names(self) -> list[str]:
        """The names of its columns."""

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """Its columns for pairs, each of shape (p,), given the log odds of the labels."""


@dataclass(eq=False)
class MethodReadings:
    """Methods that read one graph: that of the vectors, or that of a learned distance."""

    methods: list[NeighborClassifier]
    items: Items  # the training items of the graph; learned rows are those that were left out
    space: LabelSpace | None = None  # makes learned rows

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        names = numbered([f"{method.title} (k = {method.n_neighbors_})" for method in self.methods])
        return names if self.space is None else [f"learned {name}" for name in names]

    def in_graph(self, rows: ScoredRows) -> ScoredRows:
        """The rows as the methods see them: their vectors and neighbors in this graph."""
        if self.space is None:
            return rows
        left_out, k = rows.left_out, max(method.n_neighbors_ for method in self.methods)
        if left_out is None:
            Z = self.space.transform(rows.X)
            return ScoredRows(self.items.neighbors(Z, k), Z)
        assert self.items.store is not None
        among, near = left_out.rows, left_out.near
        near = self.items.left_out_neighbors(among, k) if near is None else near
        Z = self.items.store.take(among)
        return ScoredRows(near, Z, LeftOut(among, among, left_out.own))

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """A column per method for pairs of rows in the graph."""
        columns = []
        for method in self.methods:
            graph = rows.graph.head(method.n_neighbors_)
            if rows.left_out is None:
                scores = method._scores(graph, rows.X)
            else:
                scores = method._left_out_scores(graph, rows.X, rows.left_out.places)
            chance = np.asarray(method._uncalibrated(pairs.of(scores), pairs.label), np.float64)
            if method.needs.counts:  # methods with tables have smoothed probabilities
                columns.append(bounded_log_odds(chance))
            else:
                columns.append(share_log_odds(chance, frequency))
        return columns


@dataclass(eq=False)
class RidgeReading:
    """A ridge regression: its scores, their roots, and their log odds if requested.

    Roots separate small scores. With many labels, nearly all scores are close to 0, and weights
    that suit them rank the greatest too low: compared with the log odds of the methods, roots grow
    too slowly.
    """

    kernel: str
    weights: RidgeWeights
    log_odds: bool

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        name = f"{self.kernel} ridge"
        return [name, f"root of {name}", *([f"log odds of {name}"] if self.log_odds else [])]

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """Its columns for pairs."""
        if rows.left_out is None:
            scores = self.weights.scores(rows.X)
        else:
            scores = self.weights.left_out_scores(rows.X, rows.left_out.rows, rows.left_out.own)
        values = pairs.of(scores)
        columns = [np.clip(values, -1, 2), np.sqrt(np.clip(values, 0, 2))]
        if self.log_odds:
            columns.append(np.asarray(logit(np.clip(values, 1e-4, 0.99))))
        return columns


def numbered(names: list[str]) -> list[str]:
    """The names, made unique."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if name in names[:place] else name
        for place, name in enumerate(names)
    ]
