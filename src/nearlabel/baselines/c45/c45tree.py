"""C4.5: a decision tree for each label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nearlabel.baselines.baseline import Baseline
from nearlabel.baselines.c45.c45_columns import Columns
from nearlabel.baselines.c45.c45_growing import GrowingData
from nearlabel.baselines.c45.c45_trees import MOST_VALUES, C45Forest, c45_tree
from nearlabel.common.arrays import Array, Csr, Floats, Integers, Matrix
from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, check_flag
from nearlabel.methods.fields import Integer, Real


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
