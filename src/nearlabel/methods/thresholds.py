"""One cut a label, learnt by leave-one-out, in place of a method's own decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_choice, check_dense_size, check_integer, check_real
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.labels.decisions import f1_cuts, labels_from
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.base import NeighborModel
from nearlabel.methods.explaining import NeighborClassifier
from nearlabel.methods.fitting import NO_ROWS
from nearlabel.methods.registry import METHODS
from nearlabel.methods.registry import method as method_named
from nearlabel.methods.storing import stored_array

_OBJECTIVES = ("f1",)
_BYTES_A_SCORE = 64  # while all scores of a label are sorted


class LabelThresholds(NeighborClassifier):
    """Any method of nearlabel, with a cut of its own for each label.

    A method decides for a label at one and the same score, and so hardly ever for a rare one. Here
    each training row is scored as if it were new, from its neighbors without itself, and each
    label gets the cut with the best F1 on these scores [1]_. The ranking stays the method's.

    Parameters
    ----------
    estimator : estimator of nearlabel
        Such as ``MLkNN()``. Scaling goes before, as ``make_pipeline(MinMaxScaler(),
        LabelThresholds(MLkNN()))``.
    objective : {"f1"}, default="f1"
        What a cut makes best.
    min_f1 : float, default=0.1
        Where even the best cut has a lower F1 on the training rows, the label is left to the
        method: such a cut gives it to nearly everything.
    min_rows : int, default=3
        Labels that fewer training rows carry are left to the method.

    Attributes
    ----------
    estimator_ : estimator
        The fitted method.
    cuts_ : ndarray of shape (q,)
        The cut of each label, in scores of the method; not a number where its own decision stays.
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in the method.

    Notes
    -----
    `predict_proba` moves the method's probabilities so that the cut is at 1/2: the odds are divided
    by those of the cut.

    References
    ----------
    .. [1] Y. Yang, "A study of thresholding strategies for text categorization", SIGIR 2001, where
       this is SCut, and the lower bound on F1 the guard of SCutFBR.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(500, 6, 12, random_state=0)
    >>> model = nl.LabelThresholds(nl.MLkNN()).fit(data.X[:400], data.Y[:400])
    >>> own = model.estimator_.predict(data.X[400:])
    >>> f1 = nl.metrics.macro_f1
    >>> f1(data.Y[400:], own) < f1(data.Y[400:], model.predict(data.X[400:]))
    True
    """

    def __init__(
        self, estimator: Any, objective: str = "f1", min_f1: float = 0.1, min_rows: int = 3
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.min_f1 = min_f1
        self.min_rows = min_rows

    # How to search is the method's to say.
    n_neighbors = property(lambda self: self.estimator.n_neighbors)
    metric = property(lambda self: getattr(self.estimator, "metric", None))
    search = property(lambda self: self.estimator.search)
    n_jobs = property(lambda self: self.estimator.n_jobs)
    _all_rows_allowed = property(lambda self: self.estimator._all_rows_allowed)
    _dense_scores = property(lambda self: self.estimator._dense_scores)

    _needs_graph = property(lambda self: self.estimator._needs_graph)
    _learns_from_counts = property(lambda self: self.estimator._learns_from_counts)

    @property
    def _needs_vectors(self) -> bool:
        return bool(self.estimator._needs_vectors)

    def _usable_neighbors(self, n: int) -> int:
        return int(self.estimator._usable_neighbors(n))

    def _check_size(self, Y: Csr, X: Any) -> None:
        self.estimator._check_size(Y, X)
        if self._dense_scores:
            what = "the leave-one-out scores"
            check_dense_size(what, Y.shape, _BYTES_A_SCORE, "a method that scores few labels")

    def _training_rows(self, n: int) -> Array | None:
        return None if self._needs_graph else NO_ROWS

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, NeighborModel) or isinstance(
            self.estimator, LabelThresholds
        ):
            raise TypeError(
                "estimator must be an estimator of nearlabel (scaling goes before: "
                f"make_pipeline(scaler, LabelThresholds(MLkNN()))); got {self.estimator!r}"
            )
        self.estimator._check_parameters()
        check_choice(self.objective, "objective", _OBJECTIVES)
        check_real(self.min_f1, "min_f1", low=0, high=1)
        check_integer(self.min_rows, "min_rows", low=1)

    def _learn(
        self, graph: NeighborGraph, Y: Csr, X: Any, rows: Array, progress: Progress | None
    ) -> None:
        inner, n = self._inner(), Y.shape[0]
        wanted = inner._training_rows(n)
        if wanted is None:
            inner._learn(graph, Y, X, rows, progress)
        else:
            inner._learn(graph.take(wanted), Y, X, wanted, progress)
        left_out = inner._left_out_scores(graph, X, np.arange(n))
        cuts = f1_cuts(left_out, Y, least=float(self.min_f1))
        few = label_totals(Y) < self.min_rows
        self.estimator_ = inner
        self.cuts_ = np.where(few | np.isinf(cuts), np.nan, cuts)

    def _search_by(self, search: Any) -> None:
        super()._search_by(search)
        self.estimator_._search_by(search)

    def _use_threads(self, n_jobs: int) -> None:
        for one in (self.estimator, self.estimator_):
            one._use_threads(n_jobs)

    def _inner(self) -> Any:
        """A copy of the method that keeps the same items, and has learned nothing yet."""
        inner = clone(self.estimator)
        inner.__dict__.update(self._items())
        return inner

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        scores: LabelScores = self.estimator_._scores(graph, X)
        return scores

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        scores: LabelScores = self.estimator_._left_out_scores(graph, X, rows)
        return scores

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        cut = np.isfinite(self.cuts_)
        own = self.estimator_._decide(scores, graph)
        own.data[cut[own.indices]] = 0
        own.eliminate_zeros()
        return own + labels_from(scores, np.where(cut, self.cuts_, np.inf))

    def _probabilities(self, scores: Floats) -> Floats:
        cut = np.isfinite(self.cuts_)
        own = self.estimator_._probabilities(scores.copy())
        at = self.estimator_._probabilities(np.where(cut, self.cuts_, 0.5)[None])
        yes, no = own * (1 - at), (1 - own) * at
        moved = np.divide(yes, yes + no, where=yes + no > 0, out=np.full(own.shape, 0.5))
        return np.asarray(np.where(cut, moved, own))

    def _voters(self, X: Any) -> tuple[NeighborGraph, NeighborGraph]:
        voters: tuple[NeighborGraph, NeighborGraph] = self.estimator_._voters(X)
        return voters

    def _scores_without(self, further: NeighborGraph, X: Any, left_out: Array) -> LabelScores:
        scores: LabelScores = self.estimator_._scores_without(further, X, left_out)
        return scores

    def _terms(self, label: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:
        terms = {**self.estimator_._terms(label, graph, X)}
        if np.isfinite(self.cuts_[label]):
            terms["cut"] = float(self.cuts_[label])
        return terms

    def _learned(self) -> dict[str, Any]:
        return {"cuts": self.cuts_, "estimator": self.estimator_._learned()}

    def _recall(self, learned: Mapping[str, Any]) -> None:
        cuts = stored_array(learned, "cuts", "f", 1)
        if len(cuts) != self._labels.shape[1] or np.isinf(cuts).any():
            raise ValueError("its cuts are not those of its labels")
        inner = self._inner()
        inner._recall(learned["estimator"])
        self.estimator_, self.cuts_ = inner, cuts

    def _stored_parameter(self, name: str, value: Any) -> Any:
        if name != "estimator":
            return super()._stored_parameter(name, value)
        if type(value).__name__ not in METHODS:
            raise TypeError(
                f"a {type(value).__name__}, a class of yours, cannot be written to a file: "
                "nearlabel would not know it again (joblib or pickle keep any object)"
            )
        return {"class": type(value).__name__, "parameters": value._stored_parameters()}

    @classmethod
    def _parameter(cls, name: str, stored: Any) -> Any:
        if name != "estimator":
            return super()._parameter(name, stored)
        kind = method_named(stored["class"])
        return kind(**{key: kind._parameter(key, one) for key, one in stored["parameters"].items()})
