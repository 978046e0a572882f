"""C4.5: a decision tree for each label, read by rows, printed as J48 prints it, and in files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nearlabel.baselines.baseline import Baseline
from nearlabel.baselines.c45_growing import GrowingData, collapse, grown_tree, prune
from nearlabel.baselines.c45_splits import TOLERANCE, Columns, errors, majority
from nearlabel.common.arrays import Array, Csr, Floats, Integers, Matrix, Tree
from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, check_flag
from nearlabel.methods.fields import Field, Integer, Real, stored_array

MOST_VALUES = 2**16
"""How many values a nominal feature may have: every split on it has so many branches."""


class C45Nodes(NamedTuple):
    """A tree of m nodes, level by level: the children of a node stand side by side."""

    feature: Array  # (m,): of the split; -1 for a leaf
    cut: Floats  # (m,): of a numeric split; NaN elsewhere
    counts: Floats  # (m, C): weights of the classes
    first_child: Array  # (m,): its further children follow
    n_children: Array  # (m,): 0 for a leaf

    @classmethod
    def of(cls, feature: Array, cut: Floats, counts: Floats, n_values: Array) -> Self:
        """A tree of what is stored of it; a ValueError where it makes none."""
        size = np.where(n_values[feature] > 0, n_values[feature], 2)
        n_children = np.where(feature < 0, 0, size)
        first_child = 1 + np.cumsum(n_children) - n_children
        place = np.arange(len(feature))
        if 1 + n_children.sum() != len(feature) or np.any((first_child <= place) & (feature >= 0)):
            raise ValueError("its nodes are not those of a tree")
        if np.any(np.isnan(cut) != ((feature < 0) | (n_values[feature] > 0))):
            raise ValueError("its cuts are not those of its splits")
        return cls(feature, cut, counts, first_child, n_children)

    def children(self, node: int) -> range:
        """The numbers of a node's children."""
        first = int(self.first_child[node])
        return range(first, first + int(self.n_children[node]))

    def shares(self) -> Floats:
        """Share of each class in each node, shape (m, C); a node without rows has its parent's."""
        counts = self.counts.copy()
        for node in np.flatnonzero(self.n_children).tolist():
            for child in self.children(node):
                if counts[child].sum() < TOLERANCE:
                    counts[child] = counts[node]
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def scores(self, columns: Columns, shares: Floats) -> Floats:
        """Shares (m, ...) of the leaves that rows reach, weighted where they reach several."""
        scores = np.zeros((columns.n, *shares.shape[1:]))
        waiting = [(0, np.arange(columns.n), np.ones(columns.n))]
        while waiting:
            node, rows, weights = waiting.pop()
            if not self.n_children[node]:
                scores[rows] += np.multiply.outer(weights, shares[node])
                continue
            taken = columns.branches(int(self.feature[node]), float(self.cut[node]), rows)
            children = self.children(node)
            size = self.counts[children.start : children.stop].sum(axis=1)
            gaps = taken < 0
            for branch, child in enumerate(children):
                at = taken == branch
                if gaps.any() and size[branch] >= TOLERANCE:
                    part = np.where(gaps, weights * (size[branch] / size.sum()), weights)
                    at |= gaps
                    waiting.append((child, rows[at], part[at]))
                elif at.any():
                    waiting.append((child, rows[at], weights[at]))
        return scores

    def text(self, feature_names: Sequence[str], class_names: Sequence[object]) -> str:
        """The tree as J48 prints it, with the weight of each leaf and what of it is wrong."""
        if not self.n_children[0]:
            lines = [f": {self._leaf(0, 0, class_names)}"]
        else:
            lines = list(self._lines(feature_names, class_names))
        n_leaves = int((self.n_children == 0).sum())
        sizes = f"Number of Leaves  : \t{n_leaves}\n\nSize of the tree : \t{len(self.feature)}"
        return "\n".join(lines) + f"\n\n{sizes}"

    def _lines(self, feature_names: Sequence[str], class_names: Sequence[object]) -> Iterator[str]:
        waiting = [(0, branch, child, 0) for branch, child in enumerate(self.children(0))][::-1]
        while waiting:
            node, branch, child, depth = waiting.pop()
            name, cut = feature_names[self.feature[node]], float(self.cut[node])
            sign = ("<=", ">")[branch] if not math.isnan(cut) else "="
            value = branch if math.isnan(cut) else _short(cut)
            line = "|   " * depth + f"{name} {sign} {value}"
            if not self.n_children[child]:
                yield f"{line}: {self._leaf(child, node, class_names)}"
                continue
            yield line
            below = [(child, *numbered, depth + 1) for numbered in enumerate(self.children(child))]
            waiting.extend(below[::-1])

    def _leaf(self, node: int, parent: int, class_names: Sequence[object]) -> str:
        counts = self.counts[node]
        is_empty = counts.sum() < TOLERANCE
        name = class_names[majority(self.counts[parent] if is_empty else counts)]
        wrong = 0.0 if is_empty else errors(counts)
        of_them = f"/{_rounded(wrong)}" if wrong > TOLERANCE else ""
        return f"{name} ({_rounded(float(counts.sum()))}{of_them})"


def c45_tree(data: GrowingData, confidence: float) -> C45Nodes:
    """The tree that C4.5 learns: grown, collapsed and pruned."""
    root = grown_tree(data)
    collapse(root)
    prune(root, data, confidence)
    nodes = [root]
    for node in nodes:
        nodes.extend(node.children)
    feature = np.array([-1 if node.split is None else node.split.feature for node in nodes])
    cut = np.array([math.nan if node.split is None else node.split.cut for node in nodes])
    counts = np.array([node.counts for node in nodes])
    return C45Nodes.of(feature, cut, counts, data.columns.n_values)


def _short(number: float) -> str:
    """A number with at most six decimals."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _rounded(weight: float) -> float:
    """A weight with two decimals; halves are rounded up, in whatever order it was added up."""
    return math.floor(weight * 100 + 0.5 + 1e-9) / 100


@dataclass(frozen=True)
class C45Forest(Field):
    """A tree of classes 0 and 1 for each label, and the numbers of values of nominal features."""

    key: str = "trees"
    attribute: str = "_trees"

    def write(self, model: Baseline, learned: Tree) -> None:
        """Add the nodes of all trees, and where these end."""
        trees: list[C45Nodes] = getattr(model, self.attribute)
        learned["n_values"] = model._n_values
        learned["tree_sizes"] = np.array([len(tree.feature) for tree in trees])
        for name in ("feature", "cut", "counts"):
            learned[name] = np.concatenate([getattr(tree, name) for tree in trees])

    def read(self, model: Baseline, learned: Mapping[str, Array], sizes: dict[str, int]) -> None:
        """Set the trees; a ValueError or the like where they are none of these features."""
        n_values = stored_array(learned["n_values"], "n_values", "i", 1)
        if len(n_values) != sizes["d"] or n_values.min() < 0 or n_values.max() > MOST_VALUES:
            raise ValueError("its numbers of values are not those of its features")
        tree_sizes = stored_array(learned["tree_sizes"], "tree_sizes", "i", 1)
        feature = stored_array(learned["feature"], "feature", "i", 1)
        cut = stored_array(learned["cut"], "cut", "f", 1)
        counts = stored_array(learned["counts"], "counts", "f", 2)
        n_nodes = len(feature)
        if len(tree_sizes) != sizes["q"] or np.any((tree_sizes < 1) | (tree_sizes > n_nodes)):
            raise ValueError("its trees are not those of its labels")
        ends = np.cumsum(tree_sizes)
        starts = ends - tree_sizes
        if not ends[-1] == n_nodes == len(cut) or counts.shape != (n_nodes, 2):
            raise ValueError("its trees have other numbers of nodes")
        if not -1 <= feature.min() <= feature.max() < sizes["d"]:
            raise ValueError("its splits are of other features")
        if np.isinf(cut).any() or not np.all((counts >= 0) & (counts < 2**53)):
            raise ValueError("its trees hold a number that cannot be")
        if counts[starts].sum(axis=1).min() < TOLERANCE:
            raise ValueError("its trees are of no rows")
        model._n_values = n_values
        trees = [
            C45Nodes.of(feature[at], cut[at], counts[at], n_values)
            for at in map(slice, starts, ends)
        ]
        setattr(model, self.attribute, trees)


@dataclass(repr=False, eq=False)
class C45Tree(Baseline):
    """Binary relevance with C4.5 decision trees [1]_ [2]_, as WEKA's J48 [3]_ grows them.

    Each label has a tree of its own. The score of a label is the share of the training rows in the
    leaf that carry it; a label is predicted where that is more than half.

    Parameters
    ----------
    confidence : float, default=0.25
        Confidence level of the errors that pruning expects, up to 0.5: a lower one prunes more.
    min_leaf : int, default=2
        Every split has at least two branches with so many rows. Both branches of a cut have at
        least a tenth of the node's rows per class, too, but need not have more than 25.
    nominal_features : array-like of int or bool, optional
        The columns with codes of categories, 0 to m - 1: by number, or by a mask of all columns.
        A split on such a column has m branches. All other columns are numeric.
    actual_cuts : bool, default=True
        Whether cuts are moved down to a value of the training rows, as in C4.5; otherwise they are
        halfway between two values of the node.

    Attributes
    ----------
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    Notes
    -----
    Missing values are NaN. A row whose value is missing goes down every branch with a part of its
    weight; so does a new row with a code that no training row has. Cuts do not separate
    values that differ by less than 1e-5, so that features of very small scale need a scaler.

    References
    ----------
    .. [1] J. R. Quinlan, "C4.5: Programs for Machine Learning", Morgan Kaufmann, 1993.
    .. [2] J. R. Quinlan, "Improved use of continuous attributes in C4.5", Journal of Artificial
       Intelligence Research 4, 1996.
    .. [3] I. H. Witten, E. Frank, M. A. Hall and C. J. Pal, "Data Mining: Practical Machine
       Learning Tools and Techniques", 4th edition, Morgan Kaufmann, 2016.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.C45Tree().fit(X, y)
    >>> model.predict([[0.5, 1]])
    array([[1, 1, 0, 1]])
    >>> print(model.tree_text(0).split("Number")[0].strip())
    x0 <= 1: 1 (3.0)
    x0 > 1: 0 (3.0)
    """

    confidence: float = 0.25
    min_leaf: int = 2
    nominal_features: npt.ArrayLike | None = None
    actual_cuts: bool = True

    title = "C4.5"
    settings = (
        Real("confidence", "_confidence", low=1e-6, high=0.5),
        Integer("min_leaf", "_min_leaf", low=1),
    )
    stored = (C45Forest(),)
    takes_missing = True

    def _check_parameters(self) -> None:
        check_flag(self.actual_cuts, "actual_cuts")
        _column_numbers(self.nominal_features)

    def _learn(self, X: Matrix, Y: Csr, progress: Progress | None) -> None:
        self._n_values = _numbers_of_values(X, self.nominal_features)
        columns = Columns(X, self._n_values)
        entries, by_label = columns.sorted_entries(), sparse.csc_array(Y)
        self._trees = []
        for label in range(Y.shape[1]):
            carries = np.zeros(columns.n, np.int64)
            carries[by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]] = 1
            is_actual = bool(self.actual_cuts)
            data = GrowingData(columns, entries, carries, 2, self._min_leaf, is_actual)
            self._trees.append(c45_tree(data, self._confidence))
            if progress is not None:
                progress(label + 1, Y.shape[1])

    def _prepare(self) -> None:
        self._shares = [tree.shares()[:, 1] for tree in self._trees]

    def _scores(self, X: Matrix) -> Floats:
        columns = Columns(X, self._n_values)
        for feature in np.flatnonzero(self._n_values).tolist():
            _check_codes(columns[feature], feature)
        trees = zip(self._trees, self._shares, strict=True)
        return np.stack([tree.scores(columns, shares) for tree, shares in trees], axis=1)

    def tree_text(self, label: int | str) -> str:
        """Print the tree of a label as J48 does.

        Parameters
        ----------
        label : int or str
            The column of the label, or its name.

        Returns
        -------
        str
            A line a branch. Leaves have the class, the weight of their training rows, and what of
            it belongs to the other class. The last lines have the numbers of leaves and nodes.
        """
        check_is_fitted(self)
        classes = self.classes_.tolist() if self._is_one_column else [0, 1]
        return self._trees[self._label_number(label)].text(self._shown_features(), classes)


def _column_numbers(features: npt.ArrayLike | None) -> Array:
    """Numbers or a mask of columns, as an array; whether they are columns is not known yet."""
    if features is None:
        return np.zeros(0, np.int64)
    given = np.asarray(features)
    is_whole = given.dtype.kind in "iu" or (
        given.dtype.kind == "f" and bool(np.all(given == np.floor(given)))
    )
    if given.ndim != 1 or not (is_whole or given.dtype == bool or not given.size):
        raise ArgumentError(
            "nominal_features must be numbers of columns, a mask of all columns or None; got "
            f"{features!r}",
            "nominal_features",
        )
    return given if given.dtype == bool else given.astype(np.int64)


def _numbers_of_values(X: Matrix, features: npt.ArrayLike | None) -> Integers:
    """How many values each feature has: 0 for a numeric one."""
    given, d = _column_numbers(features), X.shape[1]
    if given.dtype == bool:
        is_allowed = len(given) == d
        given = np.flatnonzero(given)
    else:
        is_allowed = not given.size or bool(0 <= given.min() <= given.max() < d)
    if not is_allowed:
        raise ArgumentError(
            f"nominal_features must be of the {d} columns of X; got {features!r}",
            "nominal_features",
        )
    n_values, columns = np.zeros(d, np.int64), Columns(X, np.zeros(d, np.int64))
    for feature in given.tolist():
        values = columns[feature]
        _check_codes(values, feature)
        n_values[feature] = 1 + np.max(values, initial=0.0, where=~np.isnan(values))
    return n_values


def _check_codes(values: Floats, feature: int) -> None:
    known = values[~np.isnan(values)]
    wrong = known[(known < 0) | (known >= MOST_VALUES) | (known != np.floor(known))]
    if len(wrong):
        raise ArgumentError(
            f"X must have codes from 0 to {MOST_VALUES - 1} in column {feature}, which "
            f"nominal_features names; got {wrong[0]:g}",
            "X",
        )
