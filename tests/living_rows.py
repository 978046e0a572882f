"""Rows that are added and removed, with neighbors by brute force, for comparison."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.graph import NeighborGraph
from nearlabel.search.interfaces import Arrivals, Reached
from nearlabel.search.living.kept_neighbors import HeadChanges


class LivingRows:
    """Points on a line, a label matrix, and who is alive: by place."""

    def __init__(self, x, Y, dtype=np.float64):
        self.x, self.Y = np.asarray(x), np.asarray(Y)
        self.alive = np.ones(len(self.x), bool)
        self.dtype = dtype

    def distances(self, places):
        """Distances from places to all rows; infinite to themselves and to removed rows."""
        far = np.abs(self.x[places][:, None] - self.x).astype(self.dtype)
        far[:, ~self.alive] = np.inf
        far[np.arange(len(places)), places] = np.inf
        return far

    def graph(self, places, k):
        """The k nearest alive others of each place, by (distance, place)."""
        far = self.distances(places)
        order = np.argsort(far, axis=1, kind="stable")[:, :k]
        distances = np.take_along_axis(far, order, axis=1)
        assert np.isfinite(distances).all()
        return NeighborGraph.unchecked(order.astype(np.int32), distances, len(self.x))

    def heads(self, k):
        """The k nearest of all alive rows, by place."""
        places = np.flatnonzero(self.alive)
        return dict(zip(places.tolist(), self.graph(places, k).indices.tolist(), strict=True))

    def added(self, x, Y):
        """With additional rows, and perhaps additional labels."""
        q = max(self.Y.shape[1], Y.shape[1])
        wide = [np.pad(part, ((0, 0), (0, q - part.shape[1]))) for part in (self.Y, Y)]
        new = LivingRows(np.concatenate([self.x, x]), np.concatenate(wide), self.dtype)
        new.alive[: len(self.x)] = self.alive
        return new

    def removed(self, places):
        """Without some rows."""
        new = LivingRows(self.x, self.Y, self.dtype)
        new.alive = self.alive.copy()
        new.alive[places] = False
        return new

    def relabelled(self, places, Y):
        """With other labels of some rows."""
        new = self.removed([])
        new.Y = self.Y.copy()
        new.Y[places] = Y
        return new

    def arrivals(self, first, k, limits, order):
        """Of the rows from `first` on; the pairs in a random order."""
        far = self.distances(np.arange(len(self.x)))[:first, first:]
        row, new = np.nonzero(far < limits[:, None])
        pairs = row, new + first, far[row, new]
        shuffled = order.permutation(len(row))
        neighbors = self.graph(np.arange(first, len(self.x)), k)
        return Arrivals(neighbors, Reached(*(part[shuffled] for part in pairs)))

    def labels(self):
        """The label matrix of all places."""
        return sparse.csr_array(self.Y.astype(np.int8))

    def fresh(self, k):
        """Graph and labels of only the alive rows, as if there had never been others."""
        places = np.flatnonzero(self.alive)
        number = np.cumsum(self.alive) - 1
        indices = number[self.graph(places, k).indices]
        graph = NeighborGraph.unchecked(indices, np.zeros(indices.shape), len(places))
        return graph, sparse.csr_array(self.Y[places].astype(np.int8))


@st.composite
def histories(draw, least):
    """States of rows, one after the other; at least `least` rows are alive in each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    n, q = draw(st.integers(least, least + 12)), draw(st.integers(1, 4))
    spread = draw(st.sampled_from([1, 4, 30]))  # duplicates, ties, few of either
    often = draw(st.sampled_from([0.0, 0.2, 0.6]))

    def some(m, q):
        return rng.integers(0, spread, m), (rng.random((m, q)) < often).astype(int)

    rows = LivingRows(*some(n, q), kind)
    states = [rows]
    for step in draw(st.lists(st.sampled_from(["add", "remove", "relabel"]), max_size=6)):
        alive = np.flatnonzero(rows.alive)
        if step == "add":
            q += draw(st.integers(0, 1))
            rows = rows.added(*some(draw(st.integers(1, 6)), q))
        elif step == "remove":
            most = draw(st.sampled_from([1, 3, len(alive)]))
            rows = rows.removed(rng.permutation(alive)[: min(most, len(alive) - least)])
        else:
            places = rng.permutation(alive)[: draw(st.integers(1, 3))]
            rows = rows.relabelled(places, some(len(places), q)[1])
        q = rows.Y.shape[1]
        states.append(rows)
    return states


def added(kept, arrivals, n_jobs=1):
    """Add rows to kept neighbors; return all changes of the first neighbors, by row."""
    parts = []
    kept.add(arrivals, parts.append, n_jobs=n_jobs)
    none = np.empty((0, kept.k), np.int32)
    parts.append(HeadChanges(np.empty(0, np.int64), none, none))
    rows, before, after = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(rows)
    return HeadChanges(rows[order], before[order], after[order])
