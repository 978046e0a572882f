"""ML-kNN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers, with_data
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_n_jobs, check_real
from nearlabel.formulas.bayes import posterior
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import (
    LabelHistograms,
    counts_and_own,
    label_histograms,
    label_totals,
    neighbor_counts,
)
from nearlabel.labels.ranks import DefaultScores
from nearlabel.labels.scores import LabelScores
from nearlabel.labels.sweep import CountSweep, bytes_of_sweep
from nearlabel.methods.explaining import NeighborClassifier
from nearlabel.methods.fitting import Sweep
from nearlabel.methods.storing import stored_counts

_SWEEP_BYTES = 2**28  # up to which a sweep over k takes dense counts


class MLkNN(NeighborClassifier):
    """Multi-label k nearest neighbors by maximum a posteriori [1]_ [2]_.

    For each label the number j of a row's neighbors that carry it is evidence E_j. Its likelihood
    is counted on the training rows, each with its own neighbors and itself left out, once over the
    rows that carry the label (H_1) and once over those that do not (H_0). Bayes' rule gives the
    posterior by which labels are ranked; a label is predicted where it is at least 1/2.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors, k of the paper. More than n - 1 are lowered to n - 1, in all formulas, with a
        warning.
    smoothing : float, default=1.0
        s of the paper: rows added to every cell of the counts. With 0, evidence that was never seen
        in training leaves the prior.
    metric : str or callable, default="euclidean"
        See `neighbor_graph`. Rescaling of features is left to a pipeline step.
    search : {"auto", "exact", "approximate"} or object, default="auto"
        A faiss index, a transformer, a function or a `Search`, too: see `neighbor_graph`.
    n_jobs : int, optional
        Threads; -1 for all cores. The result is the same.

    Attributes
    ----------
    n_neighbors_ : int
        Neighbors in use.
    classes_ : list of q arrays [0, 1], or the array of the two classes where y was 1-d
    label_names_ : ndarray of str, shape (q,), or None
        Names of the labels: given to `fit`, or the columns of a DataFrame, or the second class
        where y was 1-d.
    n_features_in_ : int
    search_recall_ : Recall or None
        How much of the true neighbors of the training rows an approximate search has found; None
        for an exact one, and where nothing had to be searched to learn.

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
    >>> model = nl.MLkNN(n_neighbors=3).fit(X, y)
    >>> model.predict([[2.2, 0.4]])
    array([[1, 0, 0, 1]])
    >>> model.predict_proba([[2.2, 0.4]]).round(6)
    array([[0.8     , 0.294118, 0.048544, 0.951456]])
    """

    title = "ML-kNN"

    _learns_from_counts = True

    def __init__(
        self,
        n_neighbors: int = 10,
        smoothing: float = 1.0,
        metric: Any = "euclidean",
        search: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.metric = metric
        self.search = search
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self.smoothing, "smoothing", low=0, high=1e100)

    def _learn(
        self, graph: NeighborGraph, Y: Csr, X: Any, rows: Array, progress: Progress | None
    ) -> None:
        n_jobs = check_n_jobs(self.n_jobs)
        counted = label_histograms(graph, Y, n_jobs=n_jobs, progress=progress)
        self._weigh(counted, float(self.smoothing))

    def _weigh(self, counted: LabelHistograms, s: float) -> None:
        """Posteriors of c[j] and c'[j], one cell a label and count j."""
        self._counted, self._s = counted, s
        self._posterior = counted.table(self._posterior_of)
        at_zero = self._posterior[counted.start[:-1]]  # j = 0
        self._defaults = DefaultScores(at_zero.reshape(counted.totals.shape))

    def _posterior_of(self, n: Array, n_with: Array, c_j: Array, c_prime_j: Array) -> Floats:
        """P(H_1 | E_j) where of n rows n_with carry a label, and c[j] and c'[j] have count j."""
        return posterior(self._s, self.n_neighbors_ + 1, n, n_with, c_j, c_prime_j)

    def _learned(self) -> dict[str, Any]:
        return {
            "smoothing": self._s,
            "with_label": self._counted.with_label,
            "without_label": self._counted.without_label,
        }

    def _recall(self, learned: Mapping[str, Any]) -> None:
        self._recall_cells(learned)

    def _recall_cells(self, learned: Mapping[str, Any], **groups: Any) -> None:
        cells = [stored_counts(learned, key) for key in ("with_label", "without_label")]
        counted = LabelHistograms.of_cells(self._labels, self.n_neighbors_, *cells, **groups)
        self._weigh(counted, check_real(learned["smoothing"], "smoothing", low=0, high=1e100))

    def _groups(self, X: Any) -> Array | None:
        """The tables that each query reads; None where there is but one."""
        return None

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        counts, group = neighbor_counts(graph, self._labels), self._groups(X)
        touched = with_data(counts, self._counted.values_at(counts, self._posterior, group))
        return LabelScores(touched, self._defaults, group=group, label_names=self.label_names_)

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        counted, group = self._counted, self._groups(X)
        both = counts_and_own(graph, self._labels, rows)
        carried, count = np.divmod(both.data, graph.k + 1)
        g = 0 if group is None else group[row_numbers(both)]
        cell = counted.cells(both.indices, count, g)
        touched = self._posterior_of(
            counted.n[g] - 1,
            counted.totals[g, both.indices] - carried,
            counted.with_label[cell] - carried,
            counted.without_label[cell] - (1 - carried),
        )
        # All other labels: the row was one of those without the label and with count 0.
        zero = counted.start[:-1]
        at_zero = self._posterior_of(
            np.repeat(counted.n - 1, counted.totals.shape[1]),
            np.minimum(counted.totals, counted.n[:, None] - 1).ravel(),
            counted.with_label[zero],
            np.maximum(counted.without_label[zero] - 1, 0),
        )
        defaults = at_zero.reshape(counted.totals.shape)
        names = self.label_names_
        return LabelScores(with_data(both, touched), defaults, group=group, label_names=names)

    def _sweep(self, Y: Csr, most: int) -> tuple[Any, Sweep] | None:
        if type(self) is not MLkNN or bytes_of_sweep(Y, most) > _SWEEP_BYTES:
            return None  # a subclass may count in another way
        return (MLkNN, float(self.smoothing)), self._left_out_sweep

    def _left_out_sweep(
        self, graph: NeighborGraph, Y: Csr, neighbors: Sequence[int]
    ) -> Iterator[LabelScores]:
        sweep, s, n = CountSweep(graph, Y), float(self.smoothing), Y.shape[0]
        totals = label_totals(Y)[:, None]
        n_with, others_with = np.minimum(totals, n - 1), np.maximum(totals - 1, 0)
        for k in neighbors:
            while sweep.k < k:
                sweep.add_neighbor()
            without, with_label = sweep.cells[:, :, : k + 1]
            # The row's own entry is taken out. Cells that no row is in are not looked up.
            table = np.stack(
                [
                    posterior(s, k + 1, n - 1, n_with, with_label, np.maximum(without - 1, 0)),
                    posterior(s, k + 1, n - 1, others_with, np.maximum(with_label - 1, 0), without),
                ]
            )
            yield LabelScores.unchecked(sweep.look_up(table))

    def _terms(self, label: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:
        s, k, counted, group = self._s, graph.k, self._counted, self._groups(X)
        g = 0 if group is None else int(group[0])
        count = int(np.sum(self._labels[graph.indices[0]].indices == label))
        cell = int(counted.cells(label, count, g))
        n, n_with = int(counted.n[g]), int(counted.totals[g, label])

        def likelihood(rows: int, total: int) -> float:  # P(E_j | H): of `total` rows, `rows`
            return (s + rows) / (s * (k + 1) + total) if s or total else 1 / (k + 1)

        return {
            "count": count,
            "prior": (s + n_with) / (2 * s + n),
            "likelihood_with": likelihood(int(counted.with_label[cell]), n_with),
            "likelihood_without": likelihood(int(counted.without_label[cell]), n - n_with),
        }
