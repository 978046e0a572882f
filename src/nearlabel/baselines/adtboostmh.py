"""ADTBoost.MH: an alternating decision tree for several labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearlabel.baselines.stumps import (
    LARGEST_OUTPUT,
    LEFT,
    MISSING,
    RIGHT,
    Boosting,
    SortedColumns,
    Stump,
    best_stump,
    exact_weights,
    log_ratios,
    stump_sides,
)
from nearlabel.common.arrays import Booleans, Csr, Floats, Integers, Matrix
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress
from nearlabel.methods.fields import Integer, Numbers, Reals, Value, stored_array

_SMOOTHING = 1.0  # added to W+ and W-, whose weights begin at 1


class _Parents(Value):
    """The node that each condition stands below, one that is older than the condition."""

    def check(self, value: object, _: dict[str, int] | None = None) -> Integers:
        parents = stored_array(value, self.key, "i", 1)
        if np.any((parents < 0) | (parents > 2 * np.arange(len(parents)))):
            raise ValueError(f"its {self.key} are not nodes of a tree")
        return parents


@dataclass(repr=False, eq=False)
class ADTBoostMH(Boosting):
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
        _Parents("parents", "parents_"),
        Reals("outputs", "outputs_", "tsq", low=-LARGEST_OUTPUT, high=LARGEST_OUTPUT),
        Reals("losses", "losses_", "t", low=0),
    )

    def _learn(self, X: Matrix, Y: Csr, progress: Progress | None) -> None:
        n, q = Y.shape
        weights = self._start(Y, 1.0)
        self.root_ = log_ratios(weights.sum(axis=0), _SMOOTHING)
        weights *= np.exp(np.hstack([-self.root_, self.root_]))
        self.parents_, self.losses_ = np.empty(self._n_rounds, np.int64), np.empty(self._n_rounds)
        search = NodeSearch(SortedColumns.of(X))
        for t in range(self._n_rounds):
            # No round makes the sum of the weights greater: n q is above all of them.
            exact = exact_weights(weights, float(n * q))
            self.parents_[t], stump, self.losses_[t] = search.best(exact)
            sides = search.split(int(self.parents_[t]), stump)
            self._add(t, stump, sides, exact, _SMOOTHING, weights)
            if progress is not None:
                progress(t + 1, self._n_rounds)

    def _prepare(self) -> None:
        super()._prepare()
        if len(self.parents_) != self._n_rounds:
            raise ValueError("its nodes are not two for each round")

    def _scores(self, X: Matrix) -> Floats:
        sides = stump_sides(X, self.features_, self.cuts_)
        scores = np.tile(self.root_, (X.shape[0], 1))
        reached = np.zeros((2 * len(self.parents_) + 1, X.shape[0]), bool)
        reached[0] = True
        for t, parent in enumerate(self.parents_):
            for side in (LEFT, RIGHT):
                node = 2 * t + 1 + side
                reached[node] = reached[parent] & (sides[t] == side)
                scores[reached[node]] += self.outputs_[t, side]
        return scores

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
            labels = [("", self._label_number(label))]
        else:
            columns = range(len(self.root_))
            labels = [(one_line(str(self._name_of(column))), column) for column in columns]
        return "\n".join(self._lines(labels))

    def _lines(self, labels: list[tuple[str, int]]) -> Iterator[str]:
        """A line for each node, with its values for labels: pairs of a name and a column.

        Nodes below a condition follow the node that it belongs to, the oldest first.
        """
        names, waiting = self._shown_features(), [(0, 0)]
        while waiting:
            node, depth = waiting.pop()
            values, condition = self.root_, ""
            if node:
                t, side = divmod(node - 1, 2)
                values, sign = self.outputs_[t, side], ("<=", ">")[side]
                condition = f"{t + 1}: {names[self.features_[t]]} {sign} {self._shown_cut(t)}: "
            shown = [f"{name} {values[column]:+.3f}".lstrip() for name, column in labels]
            yield "| " * depth + condition + ", ".join(shown)
            for below in np.flatnonzero(self.parents_ == node)[::-1].tolist():
                waiting += [(2 * below + 2, depth + 1), (2 * below + 1, depth + 1)]

    def _shown_cut(self, t: int) -> str:
        """A cut with as many digits as it takes to tell the cuts of its feature apart."""
        cuts = np.unique(self.cuts_[self.features_ == self.features_[t]]).tolist()
        for digits in range(4, 17):
            if len({f"{cut:.{digits}g}" for cut in cuts}) == len(cuts):
                return f"{self.cuts_[t]:.{digits}g}"
        return f"{self.cuts_[t]:.17g}"


class NodeSearch:
    """The rows that reach each prediction node, and the best stump of each for its weights.

    A node is searched again only where a round changed the weights of rows that reach it.
    """

    def __init__(self, columns: SortedColumns) -> None:
        self._columns = columns
        self._reached: list[Booleans] = [np.ones(columns.n, bool)]
        self._best: dict[int, tuple[Stump, float]] = {}  # of nodes, with the weight W of their rows

    def best(self, weights: Floats) -> tuple[int, Stump, float]:
        """The node, the stump below it and its loss; of equal ones the oldest node.

        Z = W(rows that do not reach the node) + the loss of the stump on those that do.
        """
        total = float(weights.sum())
        losses = []
        for node, reached in enumerate(self._reached):
            if node not in self._best:
                inside = np.where(reached[:, None], weights, 0.0)
                stump = best_stump(self._columns, inside, reached)
                self._best[node] = stump, float(inside.sum())
            stump, weight = self._best[node]
            losses.append((total - weight) + stump.loss)
        node = int(np.argmin(losses))
        return node, self._best[node][0], losses[node]

    def split(self, node: int, stump: Stump) -> Integers:
        """Add the nodes of both sides; the side of each row, MISSING where it reaches neither."""
        sides = self._columns.sides(stump.feature, stump.place)
        sides[~self._reached[node]] = MISSING
        changed = sides != MISSING
        for place, reached in enumerate(self._reached):
            if np.any(reached & changed):
                self._best.pop(place, None)
        self._reached += [sides == LEFT, sides == RIGHT]
        return sides
