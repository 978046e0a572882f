"""A forest in which the training rows in a row's leaves vote for its labels.

A forest is a neighbor method, too: its neighbors are the rows in the same leaves, found by the
features that matter for the labels [1]_.

References
----------
.. [1] Y. Lin and Y. Jeon, "Random forests and adaptive nearest neighbors", Journal of the American
   Statistical Association 101, 2006.
.. [2] P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006.
.. [3] A. Joly, P. Geurts and L. Wehenkel, "Random forests with random projections of the output
   space for high dimensional multi-label classification", ECML PKDD 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from nearlabel.blend.evidence import Pairs, share_log_odds
from nearlabel.blend.readings import ScoredRows
from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Array, Csr, Floats, Matrix, Tree, canonical_csr, with_data
from nearlabel.labels.scores import LabelScores
from nearlabel.metrics import average_precision

MOST_ROWS = 30_000  # of a forest: with more, it would take longer than the rest of a blend
_TREES, _FEWEST_TREES = 150, 50  # the fewer the more rows there are, from 5,000 on
_PILOT_TREES = 30  # to choose the number of features per node
_TARGETS = 32  # more labels than that are combined into this many random sums [3]_
_MOST_DENSE_CELLS = 2**26


class GrownTree(NamedTuple):
    """A tree, and the leaves of the training rows."""

    feature: Array  # (nodes,), int32: the feature that a node splits on; -1 in a leaf
    threshold: Array  # (nodes,), float64: rows with a value up to it go to the first child
    children: Array  # (nodes, 2), int32
    leaf: Array  # (n,), int32: of each training row
    drawn: Array  # (n,), uint8: how often each row was drawn for the tree, by bootstrap

    def check(self, d: int) -> None:
        """Raise a ValueError unless it is a valid tree over d features."""
        nodes, kinds = len(self.feature), "".join(array.dtype.kind for array in self)
        shapes = self.feature.shape == self.threshold.shape == (nodes,)
        if kinds != "ifiiu" or not shapes:
            raise ValueError("the arrays of its trees have wrong types or shapes")
        inner, leaf = self.feature >= 0, self.leaf
        below = self.children[inner]
        # Children come after their parent, so that every path ends.
        after = below > np.flatnonzero(inner)[:, None]
        is_whole = nodes > 0 and self.children.shape == (nodes, 2) and after.all()
        ends = is_whole and (below < nodes).all() and np.isfinite(self.threshold).all()
        if not (ends and (self.feature < d).all() and (leaf >= 0).all() and (leaf < nodes).all()):
            raise ValueError("its trees do not match its features and rows")

    def leaves(self, X: Array) -> Array:
        """The leaf of each row of X, which is float32."""
        node = np.zeros(len(X), np.int32)
        going = np.flatnonzero(self.feature[node] >= 0)
        while len(going):
            at = node[going]
            is_more = X[going, self.feature[at]] > self.threshold[at]
            node[going] = self.children[at, is_more.astype(np.intp)]
            going = going[self.feature[node[going]] >= 0]
        return node


@dataclass(frozen=True, eq=False)
class VotingForest:
    """Extremely randomized trees [2]_, each grown on a bootstrap sample."""

    trees: tuple[GrownTree, ...]
    labels: Csr  # (n, q), of the training rows

    @classmethod
    def fit(cls, X: Matrix, Y: Csr, seed: int, n_jobs: int | None = None) -> Self:
        """Grow trees on rows with labels Y.

        A node tries a fifth of the features or the square root of their number, whichever gives the
        better out-of-bag average precision with a few first trees.
        """
        n, d = X.shape
        if sparse.issparse(X) and n * d > _MOST_DENSE_CELLS:
            X = sparse.csc_array(with_data(X, _single(np.asarray(X.data))))
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        else:  # trees grow several times faster on dense rows
            X = _single(X if isinstance(X, np.ndarray) else X.toarray())
        targets = _targets(Y, seed)

        def grown(features: int, numbers: Sequence[int]) -> tuple[GrownTree, ...]:
            """Trees with these numbers, whose nodes try that many features."""
            trees = Parallel(require="sharedmem", n_jobs=n_jobs)
            grow = delayed(_grown_tree)
            return tuple(trees(grow(X, targets, features, (seed, number)) for number in numbers))

        count = min(_TREES, max(_FEWEST_TREES, _TREES * 5_000 // n))
        tried = max(1, round(d**0.5)), min(max(1, round(0.2 * d)), 500)
        pilots = {features: cls(grown(features, range(_PILOT_TREES)), Y) for features in tried}
        precision = [average_precision(Y, pilots[m].left_out_scores(np.arange(n))) for m in tried]
        best = tried[int(np.argmax(np.nan_to_num(precision)))]
        return cls(pilots[best].trees + grown(best, range(_PILOT_TREES, count)), Y)

    @property
    def names(self) -> list[str]:
        """The name of its column in a blend."""
        return ["forest"]

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """Its column in a blend for pairs: log odds of the shares of votes."""
        left_out = rows.left_out
        votes = self.scores(rows.X) if left_out is None else self.left_out_scores(left_out.rows)
        return [share_log_odds(pairs.of(votes), frequency)]

    def scores(self, X: Matrix) -> LabelScores:
        """The share of votes for each label of new rows."""
        parts = [np.empty((len(self.trees), 0), np.int32)]
        for rows in row_blocks(X.shape[0], X.shape[1], 1):
            block = _single(X[rows] if isinstance(X, np.ndarray) else X[rows].toarray())
            parts.append(np.stack([tree.leaves(block) for tree in self.trees]))
        leaves = np.hstack(parts)
        return self._votes(leaves, np.ones(leaves.shape, bool))

    def left_out_scores(self, rows: Array) -> LabelScores:
        """The same for training rows, by the trees that have not seen them."""
        leaves = np.stack([tree.leaf[rows] for tree in self.trees])
        return self._votes(leaves, np.stack([tree.drawn[rows] == 0 for tree in self.trees]))

    def _votes(self, leaves: Array, asked: Array) -> LabelScores:
        """Votes of the rows in the given leaves (T, m) of each row, by the selected trees."""
        count, m = leaves.shape
        share = 1.0 / np.maximum(asked.sum(axis=0), 1)
        nodes = leaves + self._first_nodes[:, None]
        parts = [sparse.csr_array((0, self.labels.shape[1]))]
        for rows in row_blocks(m, count, 1):
            at, which = nodes[:, rows].T, asked[:, rows].T
            row = np.broadcast_to(np.arange(len(at))[:, None], at.shape)[which]
            pairs = (share[rows][row], (row, at[which]))
            shape = (len(at), self._members.shape[0])
            parts.append(sparse.csr_array(pairs, shape=shape) @ self._members @ self.labels)
        return LabelScores.of(canonical_csr(sparse.vstack(parts, format="csr")))

    @cached_property
    def _first_nodes(self) -> Array:
        """The offset of each tree's nodes among the nodes of all trees."""
        sizes = np.array([len(tree.feature) for tree in self.trees], np.int64)
        return np.asarray(np.cumsum(sizes) - sizes)

    @cached_property
    def _members(self) -> Csr:
        """The share of each training row in a node's vote, shape (nodes, n)."""
        nodes, rows, drawn = [], [], []
        for first, tree in zip(self._first_nodes, self.trees, strict=True):
            voting = np.flatnonzero(tree.drawn)
            nodes.append(first + tree.leaf[voting])
            rows.append(voting)
            drawn.append(tree.drawn[voting].astype(np.float64))
        node, row, weight = (np.concatenate(each) for each in (nodes, rows, drawn))
        total = np.bincount(node, weight)
        shape = (int(self._first_nodes[-1]) + len(self.trees[-1].feature), self.labels.shape[0])
        return sparse.csr_array((weight / total[node], (node, row)), shape=shape)

    def tree(self) -> Tree:
        """The stored form."""
        names = ("feature", "threshold", "children", "leaf", "drawn")
        arrays = zip(names, zip(*self.trees, strict=True), strict=True)
        joined = {name: np.concatenate(parts) for name, parts in arrays}
        return {"nodes": [len(tree.feature) for tree in self.trees], **joined}

    @classmethod
    def from_tree(cls, tree: Tree, labels: Csr, d: int) -> Self:
        """From the stored form; a ValueError or the like if it is not valid."""
        ends = np.cumsum(tree["nodes"])
        nodes = [np.split(tree[name], ends[:-1]) for name in ("feature", "threshold", "children")]
        rows = [tree[name].reshape(len(ends), labels.shape[0]) for name in ("leaf", "drawn")]
        trees = tuple(GrownTree(*arrays) for arrays in zip(*nodes, *rows, strict=True))
        if not trees or len(tree["feature"]) != ends[-1]:
            raise ValueError("its trees have no nodes")
        for grown in trees:
            grown.check(d)
        return cls(trees, labels)


def _grown_tree(X: Matrix, targets: Floats, features: int, seed: tuple[int, int]) -> GrownTree:
    """A tree whose nodes try that many features."""
    from sklearn.tree import ExtraTreeRegressor

    n = targets.shape[0]
    random = np.random.default_rng(seed)
    drawn = np.bincount(random.integers(n, size=n), minlength=n)
    model = ExtraTreeRegressor(max_features=features, random_state=int(random.integers(2**31 - 1)))
    model.fit(X, targets, sample_weight=drawn.astype(np.float64), check_input=False)
    grown = model.tree_
    return GrownTree(
        np.maximum(grown.feature, -1).astype(np.int32),
        np.asarray(grown.threshold, np.float64),
        np.column_stack([grown.children_left, grown.children_right]).astype(np.int32),
        grown.apply(sparse.csr_array(X) if sparse.issparse(X) else X).astype(np.int32),
        np.minimum(drawn, 255).astype(np.uint8),
    )


def _targets(Y: Csr, seed: int) -> Floats:
    """The targets of the trees: the labels, or random sums of them if there are many."""
    q = Y.shape[1]
    if q <= _TARGETS:
        return np.asarray(Y.toarray(), np.float64)
    mixed = np.random.default_rng(seed).normal(size=(q, _TARGETS)) / _TARGETS**0.5
    return np.asarray(Y @ mixed)


def _single(X: Array) -> Array:
    """Values as trees compare them: float32, clipped to its range."""
    most = np.finfo(np.float32).max
    if X.dtype != np.float32:
        X = np.clip(X, -most, most)
    return np.ascontiguousarray(X, dtype=np.float32)
