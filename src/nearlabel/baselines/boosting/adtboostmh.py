"""ADTBoost.MH: an alternating decision tree for several labels."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from nearlabel.baselines.baseline import Baseline
from nearlabel.baselines.boosting.alternating_tree import AlternatingTree, Parents
from nearlabel.baselines.boosting.boosting_weights import (
    LARGEST_OUTPUT,
    block_outputs,
    check_rounds,
    equal_weights,
    exact_weights,
    log_ratios,
    multiply,
)
from nearlabel.baselines.boosting.node_search import NodeSearch
from nearlabel.baselines.boosting.sorted_columns import SortedColumns
from nearlabel.baselines.named_columns import feature_names, label_number
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress
from nearlabel.methods.data_units import DataUnits
from nearlabel.methods.fields import Integer, Numbers, Reals

_SMOOTHING = 1.0  # added to W+ and W-, whose weights begin at 1


@dataclass(repr=False, eq=False)
class ADTBoostMH(Baseline):
    """ADTBoost.MH, boosting of an alternating decision tree with several labels [1]_.

    A prediction node holds one real number per label, and below it any number of conditions, each
    with a prediction node for rows that meet it and one for rows that do not. A row reaches many
    nodes at once, and the score of a label is the sum over all of them; it is predicted where that
    is above 0. Each round of boosting adds one condition, below the prediction node and with the
    cut that most reduce the exponential loss.

    Parameters
    ----------
    n_rounds : int, default=50
        How many conditions are learned.

    Attributes
    ----------
    root_ : ndarray of float, shape (q,)
        The values of the root, which every row reaches.
    parents_ : ndarray of int, shape (n_rounds,)
        The prediction node that each condition stands below. Node 0 is the root. Round t, counted
        from 0, makes node 2t + 1, for rows that meet its condition, and node 2t + 2 for the others.
    features_, cuts_ : ndarray of int and of float, shape (n_rounds,)
        The condition: the feature is at most the cut. Infinite where no feature varies.
    outputs_ : ndarray of float, shape (n_rounds, 2, q)
        The values of both nodes.
    losses_ : ndarray of float, shape (n_rounds,)
        Z of each condition when it was chosen.
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    Notes
    -----
    Missing values are NaN: a row that lacks the feature of a condition reaches nothing below it.
    The article leaves details open: here the values are smoothed by 1, as Freund and Mason do in
    the tree for one label [2]_, the cuts below every node are those of all training rows, and of
    equally good conditions the one at the oldest node, of the lowest feature with the lowest cut is
    taken. The weights take 2nq numbers: the method is not for very many labels.

    References
    ----------
    .. [1] F. De Comité, R. Gilleron and M. Tommasi, "Learning multi-label alternating decision
       trees from texts and data", Machine Learning and Data Mining in Pattern Recognition, 2003.
    .. [2] Y. Freund and L. Mason, "The alternating decision tree learning algorithm", International
       Conference on Machine Learning, 1999.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.ADTBoostMH(n_rounds=2).fit(X, y)
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[ 0.437734,  0.512455, -1.707168,  1.707168]])
    >>> print(model.tree_text(label=1))
    +0.255
    | 1: x0 <= 2.5: -0.351
    | 1: x0 > 2.5: +0.601
    | 2: x0 <= 0.5: -0.518
    | 2: x0 > 0.5: +0.608
    """

    n_rounds: int = 50

    title = "ADTBoost.MH"
    settings = (Integer("n_rounds", "_n_rounds", low=1),)
    stored = (
        Reals("root", "root_", "q", low=-LARGEST_OUTPUT, high=LARGEST_OUTPUT),
        Numbers("features", "features_", "t", below="d"),
        Reals("cuts", "cuts_", "t", high=np.inf),
        Parents("parents", "parents_"),
        Reals("outputs", "outputs_", "tsq", low=-LARGEST_OUTPUT, high=LARGEST_OUTPUT),
        Reals("losses", "losses_", "t", low=0),
    )
    takes_missing = True

    def _learn(self, X: Any, Y: Csr, progress: Progress | None) -> None:
        (n, q), rounds = Y.shape, self._n_rounds
        check_rounds(rounds, q)
        weights = equal_weights(Y, 1.0, self.title)
        self.root_ = log_ratios(weights.sum(axis=0), _SMOOTHING)
        multiply(weights, np.tile(self.root_, (2, 1)), np.zeros(n, np.int8))
        self.features_, self.cuts_ = np.empty(rounds, np.int64), np.empty(rounds)
        self.parents_, self.losses_ = np.empty(rounds, np.int64), np.empty(rounds)
        self.outputs_ = np.empty((rounds, 2, q))
        search = NodeSearch(SortedColumns.of(X))
        for t in range(rounds):
            # No round makes the sum of the weights greater: n q is above all of them.
            exact = exact_weights(weights, float(n * q))
            node, stump, loss = search.best(exact)
            sides = search.split(node, stump)
            self.parents_[t], self.losses_[t] = node, loss
            self.features_[t], self.cuts_[t] = stump.feature, stump.cut
            self.outputs_[t] = block_outputs(exact, sides, _SMOOTHING)
            multiply(weights, self.outputs_[t], sides)
            if progress is not None:
                progress(t + 1, rounds)

    def _prepare(self) -> None:
        if self.outputs_.shape[:2] != (self._n_rounds, 2) or len(self.parents_) != self._n_rounds:
            raise ValueError("its nodes are not two for each round")
        self._tree_of_nodes = AlternatingTree(
            self.root_, self.parents_, self.features_, self.cuts_, self.outputs_
        )

    def _scores(self, X: Any) -> Floats:
        return self._tree_of_nodes.scores(X)

    def _decide(self, scores: Floats) -> Array:
        return scores > 0

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(expit(2 * scores))

    def tree_text(self, label: int | str | None = None) -> str:
        """Print the tree, a line for each prediction node.

        Parameters
        ----------
        label : int or str, optional
            The column of a label, or its name: its values alone are printed. By default those of
            all labels.

        Returns
        -------
        str
            Nodes stand below the node that their condition belongs to, one step further in, with
            the round that added them, the condition and their values.
        """
        check_is_fitted(self)
        if label is not None:
            labels = [("", label_number(self, label))]
        else:
            columns = range(len(self.root_))
            labels = [(one_line(str(self.name_of(column))), column) for column in columns]
        return "\n".join(self._tree_of_nodes.lines(feature_names(self), labels))

    def _in_units(self, units: DataUnits) -> Self:
        """A copy whose tree shows names and cuts of the data before scaling."""
        model, tree = copy(self), self._tree_of_nodes
        model.feature_names_in_ = units.names
        model._tree_of_nodes = tree._replace(cuts=units.cuts(tree.features, tree.cuts))
        return model
