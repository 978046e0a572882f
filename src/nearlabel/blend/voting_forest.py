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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, canonical_csr, with_data
from nearlabel.labels.scores import LabelScores
from nearlabel.metrics import average_precision

MOST_ROWS = 30_000  # of a forest: with more, it would take longer than the rest of a blend
_TREES, _FEWEST_TREES = 150, 50
_ROWS_OF_ALL_TREES = 5_000  # with more rows, there are fewer trees
_PILOT_TREES = 30  # to choose the number of features per node
_SHARE_OF_FEATURES, _MOST_FEATURES = 0.2, 500
_TARGETS = 32  # more labels than that are combined into this many random sums [3]_
_MOST_DENSE_CELLS = 2**26
_CELLS_AT_ONCE = 2**22


class GrownTree(NamedTuple):
    """A tree, and the leaves of the training rows.

    Attributes
    ----------
    feature : ndarray of int32, shape (nodes,)
        The feature that a node splits on; -1 in a leaf.
    threshold : ndarray of float64, shape (nodes,)
        Rows with a value up to it go to the first child.
    children : ndarray of int32, shape (nodes, 2)
    leaf : ndarray of int32, shape (n,)
        Of each training row.
    drawn : ndarray of uint8, shape (n,)
        How often each row was drawn for the tree, by bootstrap.
    """

    feature: Array
    threshold: Array
    children: Array
    leaf: Array
    drawn: Array

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
    """Extremely randomized trees [2]_, each grown on a bootstrap sample.

    Attributes
    ----------
    trees : tuple of GrownTree
    labels : csr_array, shape (n, q)
        Of the training rows.
    """

    trees: tuple[GrownTree, ...]
    labels: Csr

    @classmethod
    def fit(cls, X: Any, Y: Csr, seed: int, n_jobs: int | None = None) -> Self:
        """Grow trees on rows with labels Y.

        A node tries a fifth of the features or the square root of their number, whichever gives the
        better out-of-bag average precision with a few first trees.
        """
        n, d = X.shape
        if sparse.issparse(X) and n * d > _MOST_DENSE_CELLS:
            X = sparse.csc_array(with_data(X, _single(X.data)))
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        else:  # trees grow several times faster on dense rows
            X = _single(X.toarray() if sparse.issparse(X) else X)
        targets = _targets(Y, seed)
        count = min(_TREES, max(_FEWEST_TREES, _TREES * _ROWS_OF_ALL_TREES // n))
        tried = max(1, round(d**0.5)), min(max(1, round(_SHARE_OF_FEATURES * d)), _MOST_FEATURES)
        grow = _Growing(X, targets, seed, n_jobs)
        pilots = {one: cls(grow.trees(one, range(_PILOT_TREES)), Y) for one in tried}
        best = tried[0]
        if len(pilots) > 1:
            left_out = {one: pilot.left_out_scores(np.arange(n)) for one, pilot in pilots.items()}
            precision = {one: average_precision(Y, each) for one, each in left_out.items()}
            best = max(tried, key=lambda one: np.nan_to_num(precision[one]))
        return cls(pilots[best].trees + grow.trees(best, range(_PILOT_TREES, count)), Y)

    def scores(self, X: Any) -> LabelScores:
        """The share of votes for each label of new rows."""
        leaves = [np.empty((len(self.trees), 0), np.int32)]
        for some in _blocks(X.shape[0], X.shape[1]):
            block = X[some].toarray() if sparse.issparse(X) else X[some]
            leaves.append(np.stack([tree.leaves(_single(block)) for tree in self.trees]))
        found = np.hstack(leaves)
        return self._votes(found, np.ones(found.shape, bool))

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
        for some in _blocks(m, count):
            at, which = nodes[:, some].T, asked[:, some].T
            row = np.broadcast_to(np.arange(len(at))[:, None], at.shape)[which]
            pairs = (share[some][row], (row, at[which]))
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

    def tree(self) -> dict[str, Any]:
        """The stored form."""
        joined = {
            name: np.concatenate([getattr(one, name) for one in self.trees])
            for name in GrownTree._fields
        }
        return {"nodes": [len(one.feature) for one in self.trees], **joined}

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], labels: Csr, d: int) -> Self:
        """From the stored form; a ValueError or the like if it is not valid."""
        n, ends = labels.shape[0], np.cumsum(tree["nodes"])
        parts: dict[str, list[Array]] = {
            name: np.split(tree[name], ends[:-1]) for name in ("feature", "threshold", "children")
        }
        for name in ("leaf", "drawn"):
            parts[name] = list(tree[name].reshape(len(ends), n))
        each = zip(*(parts[name] for name in GrownTree._fields), strict=True)
        trees = tuple(GrownTree(*one) for one in each)
        if not trees or len(tree["feature"]) != ends[-1]:
            raise ValueError("its trees have no nodes")
        for one in trees:
            one.check(d)
        return cls(trees, labels)


class _Growing(NamedTuple):
    """The data that trees are grown on."""

    X: Any
    targets: Any
    seed: int
    n_jobs: int | None

    def trees(self, features: int, numbers: Sequence[int]) -> tuple[GrownTree, ...]:
        """Trees with these numbers, whose nodes try that many features."""
        from joblib import Parallel, delayed

        grow = delayed(self._tree)
        how: dict[str, Any] = {"require": "sharedmem", "n_jobs": self.n_jobs}
        return tuple(Parallel(**how)(grow(features, number) for number in numbers))

    def _tree(self, features: int, number: int) -> GrownTree:
        from sklearn.tree import ExtraTreeRegressor

        n = self.targets.shape[0]
        random = np.random.default_rng((self.seed, number))
        drawn = np.bincount(random.integers(n, size=n), minlength=n)
        seed = int(random.integers(2**31 - 1))
        model = ExtraTreeRegressor(max_features=features, random_state=seed)
        model.fit(self.X, self.targets, sample_weight=drawn.astype(np.float64), check_input=False)
        grown = model.tree_
        X = sparse.csr_array(self.X) if sparse.issparse(self.X) else self.X
        return GrownTree(
            np.maximum(grown.feature, -1).astype(np.int32),
            np.asarray(grown.threshold, np.float64),
            np.column_stack([grown.children_left, grown.children_right]).astype(np.int32),
            grown.apply(X).astype(np.int32),
            np.minimum(drawn, 255).astype(np.uint8),
        )


def _targets(Y: Csr, seed: int) -> Array:
    """The targets of the trees: the labels, or random sums of them if there are many."""
    q = Y.shape[1]
    if q <= _TARGETS:
        return np.asarray(Y.toarray(), np.float64)
    mixed = np.random.default_rng(seed).normal(size=(q, _TARGETS)) / _TARGETS**0.5
    return np.asarray(Y @ mixed)


def _single(X: Any) -> Array:
    """Values as trees compare them: float32, clipped to its range."""
    most = np.finfo(np.float32).max
    if X.dtype != np.float32:
        X = np.clip(X, -most, most)
    return np.ascontiguousarray(X, dtype=np.float32)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _CELLS_AT_ONCE // max(1, width))
    return (slice(start, start + step) for start in range(0, n, step))
