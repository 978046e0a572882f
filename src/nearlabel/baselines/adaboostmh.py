"""AdaBoost.MH with decision stumps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearlabel.baselines.stumps import (
    LARGEST_OUTPUT,
    Boosting,
    SortedColumns,
    best_stump,
    exact_weights,
    stump_sides,
)
from nearlabel.common.arrays import Csr, Floats, Matrix
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_dense_size
from nearlabel.labels.scores import DenseScores, LabelScores
from nearlabel.methods.fields import Choice, Integer, Numbers, Reals


@dataclass(repr=False, eq=False)
class AdaBoostMH(Boosting):
    """Real AdaBoost.MH on decision stumps [1]_, the learner of BoosTexter [2]_.

    Each round adds a stump: a feature, a cut, and for both sides of the cut one real number per
    label. The stump is the one that most reduces the exponential loss of all pairs of a row and a
    label, weighted by how badly the stumps before it did on them. The score of a label is the sum
    of the outputs of all stumps; it is predicted where that is above 0.

    Parameters
    ----------
    n_rounds : int, default=500
        How many stumps are learned.
    smoothing : {"program", "article"}, default="program"
        What is added to the weights whose ratio is the output of a stump: 0.5/(nq) for n rows and q
        labels, the default of the programs BoosTexter and icsiboost, or 1/(nq) as in the article
        [1]_. Published comparisons ran the program.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds,)
        The feature of each stump.
    cuts_ : ndarray of float, shape (n_rounds,)
        Its cut: values up to the cut are on the left. Infinite where no feature varies.
    outputs_ : ndarray of float, shape (n_rounds, 2, q)
        What it adds to the score of each label, left and right of the cut.
    normalizers_ : ndarray of float, shape (n_rounds,)
        The sum of the weights after each round, before they are normalized. Their product bounds
        the Hamming loss on the training rows.
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    Notes
    -----
    Missing values are NaN: a stump adds nothing to the scores of a row that lacks its feature.
    Equally good stumps: the lowest feature, then the lowest cut. A cut is the midpoint between two
    values that are next to each other in the training rows. All features are sorted once; a round
    then costs one pass over them, in O(q) per value that is stored. The weights take 2nq numbers:
    the method is not for very many labels.

    References
    ----------
    .. [1] R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated
       predictions", Machine Learning 37(3), 1999.
    .. [2] R. E. Schapire and Y. Singer, "BoosTexter: a boosting-based system for text
       categorization", Machine Learning 39(2-3), 2000.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.AdaBoostMH(n_rounds=2, smoothing="article").fit(X, y)
    >>> model.features_, model.cuts_
    (array([0, 0]), array([2.5, 0.5]))
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[ 0.360142,  0.684369, -1.45546 ,  1.45546 ]])
    >>> model.predict([[2.2, 0.4]])
    array([[1, 1, 0, 1]])
    """

    n_rounds: int = 500
    smoothing: str = "program"

    title = "AdaBoost.MH"
    settings = (
        Integer("n_rounds", "_n_rounds", low=1),
        Choice("smoothing", "_smoothing", choices=("program", "article")),
    )
    stored = (
        Numbers("features", "features_", "t", below="d"),
        Reals("cuts", "cuts_", "t", high=np.inf),
        Reals("outputs", "outputs_", "tsq", low=-LARGEST_OUTPUT, high=LARGEST_OUTPUT),
        Reals("normalizers", "normalizers_", "t", low=0),
    )

    def _learn(self, X: Matrix, Y: Csr, progress: Progress | None) -> None:
        n, q = Y.shape
        weights = self._start(Y, 1 / (n * q))
        smoothing = (0.5 if self._smoothing == "program" else 1.0) / (n * q)
        columns = SortedColumns.of(X)
        self.normalizers_ = np.empty(self._n_rounds)
        for t in range(self._n_rounds):
            exact = exact_weights(weights, 1.0)
            stump = best_stump(columns, exact)
            sides = columns.sides(stump.feature, stump.place)
            self._add(t, stump, sides, exact, smoothing, weights)
            self.normalizers_[t] = weights.sum()
            weights /= self.normalizers_[t]
            if progress is not None:
                progress(t + 1, self._n_rounds)

    def _scores(self, X: Matrix) -> Floats:
        for scores in self._after_rounds(X):  # noqa: B007
            pass
        return scores

    def _after_rounds(self, X: Matrix) -> Iterator[Floats]:
        """Scores after each round: one array, which the next round adds to."""
        scores = np.zeros((X.shape[0], self.outputs_.shape[2]))
        nothing = np.zeros((1, scores.shape[1]))  # what a stump says of rows without a value
        sides = stump_sides(X, self.features_, self.cuts_)
        for outputs, side in zip(self.outputs_, sides, strict=True):
            scores += np.vstack([outputs, nothing])[side]
            yield scores

    def staged_label_scores(self, X: Matrix) -> Iterator[LabelScores]:
        """Score every label for each row after each round, as fewer rounds would.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Yields
        ------
        LabelScores
            Of shape (n, q), `n_rounds` times. The last one is what `label_scores` gives.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        check_dense_size("the scores of all labels", (X.shape[0], self._n_labels), 8, "fewer rows")
        for scores in self._after_rounds(X):
            yield DenseScores(scores.copy(), self.label_names_)
