"""PositivekNN: label ranking by positive samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    Matrix,
    Seed,
    canonical_csr,
    entries_at,
    row_numbers,
)
from nearlabel.common.validation import check_choice, check_real
from nearlabel.formulas.noisy_or import HIGHEST_RATE, LOWEST_RATE, by_frequency, log_sums
from nearlabel.formulas.rates import RateTrial, median_distance, rate_by_gradient, rate_by_grid
from nearlabel.graph import NeighborGraph
from nearlabel.labels.calibration import calibration
from nearlabel.labels.decisions import hamming_cut
from nearlabel.labels.scores import DefaultScores, LabelScores, labels_from
from nearlabel.methods.calibrated import CalibratedMethod, StoredCalibration
from nearlabel.methods.fields import Real
from nearlabel.methods.fitted_model import Needs, Training
from nearlabel.methods.learned_counts import RowChange
from nearlabel.metrics import ranking_loss

# Training rows that the rate and the cut are fitted to, and the total of their neighbors.
_ROWS, _FEWEST_ROWS, _NEIGHBORS = 4000, 100, 2**21


@dataclass(repr=False, eq=False)
class PositivekNN(CalibratedMethod):
    """Multi-label ranking by the neighbors with a label: positive samples [1]_.

    A neighbor at distance d with label l supports it with probability exp(-z d), independently of
    the others: P_l = 1 - prod (1 - exp(-z d_j)) over the neighbors with l. The neighbors without it
    are not evidence against it. Labels are ranked by S_l = -log(1 - P_l), which does not round to
    ties, and predicted if it reaches a cut common to all labels. P_l itself is a score, not a
    frequency; `predict_proba` returns how often labels with such an S were right on training rows,
    each left out of its own neighbors.

    Parameters
    ----------
    n_neighbors : int or None, default=40
        k of the paper; None for all training rows (the paper's Eq. 4).
    rate : "fit" or float, default="fit"
        z of exp(-z d), in units of 1 / distance. "fit": the rate with the least ranking loss on the
        training rows, each left out of its own neighbors.
    fit_by : {"grid", "gradient"}, default="grid"
        How the rate is fitted: by a grid and golden-section search, or by stochastic gradient
        descent on a smooth ranking loss from the best point of that grid.
    random_state : int, RandomState or None, default=None
        Seed for sampling the rows that the rate and the cut are fitted to if there are more than
        4,000, and for the batches of the gradient.
    metric, search, n_jobs
        As in `MLkNN`.

    Attributes
    ----------
    rate_ : float
        z in use.
    median_distance_ : float
        The median nonzero distance to a neighbor, over the rows the rate was fitted to.
    relative_rate_ : float
        ``rate_ * median_distance_``, which can be compared between data sets.
    loss_ : float
        Ranking loss on the training rows, each left out of its own neighbors, for choosing
        `n_neighbors`. A tie is an error; nan if every row has no label or all of them.
    cut_ : float
        The cut with the least Hamming loss on these rows: labels with at least this S are
        predicted. Infinite if predicting no labels is best. Not used with a single label, as with a
        1-d y: it is predicted if S of its carriers exceeds S of the other rows.
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    References
    ----------
    .. [1] H. Zhang, S. Kiranyaz and M. Gabbouj, "A k-nearest neighbor multilabel ranking algorithm
       with application to content-based image retrieval", 2017.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.PositivekNN(n_neighbors=3, rate=1.0).fit(X, y)
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[ 0.444686,  0.481883, -0.      ,  0.594915]])
    >>> model.rank([[2.2, 0.4]]).labels.tolist()
    [[3, 1, 0, 2]]
    >>> model.predict([[2.2, 0.4]])
    array([[1, 1, 0, 1]])
    """

    n_neighbors: int | None = 40
    rate: str | float = "fit"
    fit_by: str = "grid"
    random_state: Seed = None

    title = "PositivekNN"
    needs = Needs(all_rows=True)
    kept_by_changes = "the rate and the cut"
    stored = (
        Real("rate", "rate_", low=LOWEST_RATE, high=HIGHEST_RATE),
        Real("median_distance", "median_distance_", low=0),
        Real("loss", "loss_", low=0, high=1, absent=np.nan),
        Real("cut", "cut_", low=-1, absent=np.inf),
        StoredCalibration(),
    )

    def _check_parameters(self) -> None:
        if isinstance(self.rate, str):
            check_choice(self.rate, "rate (or a number)", ("fit",))
        else:
            check_real(self.rate, 'rate (or "fit")', low=LOWEST_RATE, high=HIGHEST_RATE)
        check_choice(self.fit_by, "fit_by", ("grid", "gradient"))
        check_random_state(self.random_state)

    def _rows_to_learn_from(self, Y: Csr, X: Matrix) -> Array | None:
        n = Y.shape[0]
        k = max(1, n - 1 if self.n_neighbors is None else min(int(self.n_neighbors), n - 1))
        most = max(_FEWEST_ROWS, min(_ROWS, _NEIGHBORS // k))
        if n <= most:
            return None
        chosen = check_random_state(self.random_state).choice(n, most, replace=False)
        return np.asarray(np.sort(chosen))

    def _learn(self, seen: Training) -> None:
        graph, Y, rows = seen.graph, seen.Y, seen.rows
        self.median_distance_ = median_distance(graph)
        ranked = _with_opposite(Y) if Y.shape[1] == 1 else Y  # a ranking needs two labels
        self.rate_ = self._fitted_rate(graph, ranked, ranked[rows])
        scores = order = self._left_out_scores(graph, seen.X, rows)
        self.cut_ = hamming_cut(scores, Y[rows])
        self._calibration = calibration(scores, Y[rows])
        if ranked is not Y:
            order = LabelScores.of(log_sums(graph, ranked, self.rate_, self.n_neighbors_))
        self.loss_ = ranking_loss(ranked[rows], order)

    def _fitted_rate(self, graph: NeighborGraph, Y: Csr, truth: Csr) -> float:
        if not isinstance(self.rate, str):
            return float(self.rate)
        trial = RateTrial(graph, Y, truth, self.n_neighbors_)
        if self.fit_by == "grid":
            return rate_by_grid(trial, self.median_distance_)
        random = check_random_state(self.random_state)
        return rate_by_gradient(trial, self.median_distance_, random)

    def _learn_on(self, seen: Training) -> None:
        """The rate and the cut stay until `refresh`."""

    def _follow(self, change: RowChange) -> bool:
        """So there is nothing to bring up to date."""
        return True

    def _prepare(self) -> None:
        self.relative_rate_ = self.rate_ * self.median_distance_
        _ = self._defaults

    @cached_property
    def _defaults(self) -> DefaultScores:
        return DefaultScores(by_frequency(self._totals, len(self.items_))[None])

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        S = log_sums(graph, self._labels, self.rate_, self.n_neighbors_)
        return LabelScores.of(S, self._defaults)

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        S = log_sums(graph, self._labels, self.rate_, self.n_neighbors_)
        # A row's own labels that no neighbor has: by their frequency among the others.
        own, others = self._labels[rows], len(self.items_) - 1
        row, label = row_numbers(own), own.indices
        missing = ~entries_at(S, row, label)[0]
        row, label = row[missing], label[missing]
        score = by_frequency(self._totals[label] - 1, others)
        untouched = sparse.csr_array((score, (row, label)), shape=S.shape)
        defaults = by_frequency(self._totals, others)
        return LabelScores.of(canonical_csr(S + untouched), DefaultScores(defaults[None]))

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        if self._labels.shape[1] > 1:
            return labels_from(scores, self.cut_)
        # A single label is predicted if S of its carriers exceeds that of the other rows.
        S = log_sums(graph, _with_opposite(self._labels), self.rate_, self.n_neighbors_).toarray()
        return sparse.csr_array((S[:, :1] > S[:, 1:]).astype(np.int64))

    def _uncalibrated(self, scores: Floats, label: Array) -> Floats:
        return -np.expm1(-np.maximum(scores, 0))  # P = 1 - exp(-S)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        score = self._scores(graph, X).at(np.zeros(1, np.intp), np.array([label]))[0]
        S = max(0.0, float(score))  # without a positive neighbor the score is slightly negative
        return {
            "rate": self.rate_,
            "log_sum": S,
            "probability": float(-np.expm1(-S)),
        }


def _with_opposite(Y: Csr) -> Csr:
    """A single label, and a second one of the rows without it."""
    return canonical_csr(np.hstack([Y.toarray(), 1 - Y.toarray()]).astype(np.int8))
