"""DML-kNN."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.formulas.count_posteriors import Ratio, posterior
from nearlabel.formulas.similar_counts import AdmissibleRows
from nearlabel.graph import NeighborGraph
from nearlabel.labels.block_counts import BlockNeighborCounts
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.scores import DenseScores, LabelScores
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Choice, Integer, Real
from nearlabel.methods.fitted_model import Needs, Training
from nearlabel.methods.learned_counts import NeighborCounts
from nearlabel.methods.mlknn import priors


@dataclass(repr=False, eq=False)
class DMLkNN(NeighborClassifier):
    """Dependent multi-label k nearest neighbors: all labels of a neighborhood jointly [1]_ [2]_.

    Like ML-kNN, but the evidence for a label is the number of neighbors with *every* label. Its
    likelihood is estimated from the training rows whose neighborhoods, each row itself left out,
    have the same count of that label, and counts of all others that differ by at most a tolerance.
    Bayes' rule gives the posterior by which labels are ranked; a label is predicted if it is at
    least 1/2.

    Parameters
    ----------
    tolerance : int, default=6
        Delta of the paper: the greatest difference in the number of neighbors with another label.
        With k or more all rows count, as in ML-kNN.
    denominator : {"labels", "counts"}, default="labels"
        How often the smoothing is added in the denominators of the likelihoods: once per label, as
        in Mulan, or once per possible count, k + 1 times, as in ML-kNN.
    n_neighbors, smoothing, metric, search, n_jobs
        As in `MLkNN`.

    Attributes
    ----------
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    References
    ----------
    .. [1] Z. Younes, F. Abdallah and T. Denoeux, "Multi-label classification algorithm derived from
       k-nearest neighbor rule with label dependencies", European Signal Processing Conference,
       2008.
    .. [2] Z. Younes, F. Abdallah, T. Denoeux and H. Snoussi, "A dependent multilabel classification
       method derived from the k-nearest neighbor rule", EURASIP Journal on Advances in Signal
       Processing, 2011.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> nl.DMLkNN(n_neighbors=3, tolerance=0).fit(X, y).predict_proba([[2.2, 0.4]]).round(6)
    array([[0.75    , 0.294118, 0.106383, 0.893617]])
    """

    tolerance: int = 6
    smoothing: float = 1.0
    denominator: str = "labels"

    title = "DML-kNN"
    # The admissible rows, and so the scores of all labels, depend on the query.
    needs = Needs(dense_scores=True, counts=True)
    settings = (
        Integer("tolerance", "_tolerance", low=0),
        # Three factors of the formula grow with s: their product stays finite.
        Real("smoothing", "_smoothing", low=0, high=1e99),
        Choice("denominator", "_denominator", ("labels", "counts")),
    )
    stored = (NeighborCounts(),)
    by_blocks = BlockNeighborCounts

    def _learn(self, seen: Training) -> None:
        counts = seen.counted  # C_il
        self._counts = neighbor_counts(seen.graph, seen.Y) if counts is None else counts

    def _prepare(self) -> None:
        """Arrange the rows now, so that predictions do not modify the model."""
        _ = self._rows

    @cached_property
    def _rows(self) -> AdmissibleRows:
        items = self.items_
        labels = items.labels if items.alive is None else items.labels[items.places]
        return AdmissibleRows.of(self._counts, labels, self.n_neighbors_, self._tolerance)

    def _posterior(self, n: int, n_l: Array, V: Array, U: Array) -> Floats:
        """P(H_1 | c) if n_l of n rows have a label, and V and U admissible rows have count c_l."""
        s, k, q = self._smoothing, self.n_neighbors_, self._labels.shape[1]
        # The published numbers were computed with q where ML-kNN has k + 1.
        cells = q if self._denominator == "labels" else k + 1
        prior, no_prior = priors(s, n, n_l)
        likelihood = Ratio(s + V, s * cells + n_l)
        no_likelihood = Ratio(s + U, s * cells + n - n_l)
        return posterior(prior, likelihood, no_prior, no_likelihood)

    def _scores(self, graph: NeighborGraph, X: Matrix, rows: Array | None = None) -> LabelScores:
        scores, n, n_l = np.empty((len(graph), len(self._totals))), len(self.items_), self._totals
        for place, (_, V, U) in self._rows.tallies(neighbor_counts(graph, self._labels)):
            if rows is None:
                scores[place] = self._posterior(n, n_l, V, U)
            else:  # a training row is one of n, and admissible for itself with equal counts
                y = self._labels[rows[place]].toarray()
                scores[place] = self._posterior(n - 1, n_l - y, V - y, U - (1 - y))
        return DenseScores(scores)

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        return self._scores(graph, X, rows)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        _, (admissible, V, U) = next(self._rows.tallies(neighbor_counts(graph, self._labels)))
        prior, _ = priors(self._smoothing, len(self.items_), self._totals[label])
        return {
            "prior": float(prior.value),
            "admissible": int(admissible[0]),
            "with": int(V[0, label]),
            "without": int(U[0, label]),
        }
