"""ML-kNN."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.formulas.count_posteriors import CountPosteriors, EvenCounts, Ratio, Rows, posterior
from nearlabel.graph import NeighborGraph
from nearlabel.labels.block_counts import BlockCounts, BlockHistograms
from nearlabel.labels.histograms import CountedRows, label_histograms
from nearlabel.methods.counting import CountingMethod
from nearlabel.methods.fields import Choice, Field, Real
from nearlabel.methods.fitted_model import Needs, Training
from nearlabel.methods.learned_counts import Histograms


def priors(s: float, n: Array | int, n_l: Array) -> tuple[Ratio, Ratio]:
    """P(H_1) and P(H_0) if n_l of n rows have the label: Fig. 1, steps (1) and (2)."""
    return Ratio(s + n_l, 2 * s + n), Ratio(s + n - n_l, 2 * s + n)


def likelihoods(
    s: float, k: int, n: Array, n_l: Array, c: Array, c_prime: Array, parts: Array | int = 1
) -> tuple[Ratio, Ratio]:
    """P(E_j | H_1) and P(E_j | H_0) if c[j] and c'[j] rows have j neighbors with the label.

    c'[j] may be in fractions of rows, `parts` per row.
    """
    if s > 2.0**53:  # no precision is lost then, and products stay finite
        c_prime, parts = c_prime / parts, 1
    without = s * (k + 1) + n - n_l
    return Ratio(s + c, s * (k + 1) + n_l), Ratio(parts * s + c_prime, parts * without)


def posteriors(
    s: float, k: int, n: Array, n_l: Array, c: Array, c_prime: Array, parts: Array | int = 1
) -> Floats:
    """P(H_1 | E_j), by which labels are ranked and predicted (Eq. 3)."""
    with_label, without_label = likelihoods(s, k, n, n_l, c, c_prime, parts)
    prior, no_prior = priors(s, n, n_l)
    return posterior(prior, with_label, no_prior, without_label)


@dataclass(repr=False, eq=False)
class MLkNN(CountingMethod):
    """Multi-label k nearest neighbors by maximum a posteriori [1]_ [2]_.

    For each label, the number j of a row's neighbors with it is the evidence E_j. Its likelihood is
    estimated from the training rows, each left out of its own neighbors: once over the rows with
    the label (H_1) and once over the others (H_0). Bayes' rule gives the posterior by which labels
    are ranked; a label is predicted if it is at least 1/2.

    Parameters
    ----------
    n_neighbors : int, default=10
        k of the paper. If greater than n - 1, n - 1 is used in all formulas, with a warning.
    smoothing : float, default=1.0
        s of the paper: number of rows added to every cell of the counts. With 0, evidence that was
        never seen in training gives the prior.
    counts : {"paper", "even"}, default="paper"
        How neighbors with a label are counted: as published, or with one carrier of the label left
        out for every row. As published, a training row with a label has one carrier fewer among its
        possible neighbors than any other row, which biases the counts of rare labels.
    metric, search : default="euclidean", default="auto"
        The distance and how neighbors are searched: see `neighbor_graph`.
    n_jobs : int, optional
        Number of threads; -1 for all cores. The result is the same.

    Attributes
    ----------
    n_neighbors_, n_features_in_ : int
        Number of neighbors in use, and of features.
    classes_ : list of q arrays [0, 1], or the array of the two classes if y was 1-d
    label_names_ : ndarray of str, shape (q,), or None
        Given to `fit`, the columns of a DataFrame, or the second class if y was 1-d.
    search_recall_ : Recall or None
        Share of the true neighbors that an approximate search found in `fit`; None for an exact
        one.
    prior_ : ndarray of float, shape (q,)
        P(H_1): probability of the label before the neighbors are seen.
    likelihood_ : ndarray of float, shape (2, q, k + 1)
        P(E_j | H_0) and P(E_j | H_1), computed on access.

    References
    ----------
    .. [1] M.-L. Zhang and Z.-H. Zhou, "ML-KNN: a lazy learning approach to multi-label learning",
       Pattern Recognition 40(7), 2007.
    .. [2] M.-L. Zhang and Z.-H. Zhou, "A k-nearest neighbor based algorithm for multi-label
       classification", IEEE International Conference on Granular Computing, 2005.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> nl.MLkNN(n_neighbors=3).fit(X, y).predict_proba([[2.2, 0.4]]).round(6)
    array([[0.8     , 0.294118, 0.048544, 0.951456]])
    """

    smoothing: float = 1.0
    counts: str = field(default="paper", kw_only=True)

    title = "ML-kNN"
    needs = Needs(counts=True)
    settings = (
        Real("smoothing", "_smoothing", low=0, high=1e100),
        Choice("counts", "_kind_of_counts", ("paper", "even"), absent="paper"),
    )
    stored: ClassVar[tuple[Field, ...]] = (Histograms(),)

    by_blocks: ClassVar[type[BlockCounts] | None] = BlockHistograms

    def _learn(self, seen: Training) -> None:
        self._counted: CountedRows = seen.counted or label_histograms(  # c[j], c'[j]
            seen.graph, seen.Y, n_jobs=seen.n_jobs, progress=seen.progress
        )

    @cached_property
    def prior_(self) -> Floats:
        """P(H_1): probability of the label before the neighbors are seen."""
        n, n_l, *_ = self._counted.at_0()
        return self._by_group(priors(self._smoothing, n, n_l)[0].value)

    @property
    def likelihood_(self) -> Floats:
        """Likelihoods of every count, dense."""
        rows = self._by_count.dense_rows()
        with_label, without_label = likelihoods(self._smoothing, self.n_neighbors_, *rows)
        stacked = np.stack([without_label.value, with_label.value])
        return stacked.reshape(2, *self.prior_.shape, -1)

    @cached_property
    def _by_count(self) -> CountPosteriors:
        """The posteriors from the counts."""
        kind = EvenCounts if self._kind_of_counts == "even" else CountPosteriors
        formula = partial(posteriors, self._smoothing, self.n_neighbors_)
        return kind(self._counted, self.n_neighbors_, formula)

    def _by_group(self, values: Floats) -> Floats:
        """Values of every label of every group, in the shape of `prior_`."""
        return values

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        """The prior and the likelihoods of a label, counted on the group of the row.

        If a neighbor with the label may be the carrier that does not count, also the probability of
        that, and the likelihoods for one neighbor less: the score is the mean of both posteriors.
        """
        counted, groups = self._by_count, self._groups(X)
        group = 0 if groups is None else groups[0]
        n, n_l, *_ = rows = counted.rows(label, count, group)
        terms = {"prior": float(priors(self._smoothing, n, n_l)[0].value), **self._likely(rows)}
        if chance := counted.chance_of_one_less(label, count):
            less = self._likely(counted.rows(label, count - 1, group))
            terms["one_less"] = chance
            terms |= {f"{name}_one_less": value for name, value in less.items()}
        return terms

    def _likely(self, rows: Rows) -> dict[str, float]:
        """Both likelihoods; without smoothing, uniform over counts if there are no rows."""
        k = self.n_neighbors_
        values = (float(ratio.value) for ratio in likelihoods(self._smoothing, k, *rows))
        with_label, without = (1 / (k + 1) if np.isnan(value) else value for value in values)
        return {"likelihood_with": with_label, "likelihood_without": without}
