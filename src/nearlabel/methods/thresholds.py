"""One cut per label, learned by leave-one-out, in place of a method's own decision."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import clone

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, Tree
from nearlabel.common.validation import check_choice, check_dense_size, check_integer, check_real
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.labels.decisions import f1_cuts
from nearlabel.labels.scores import LabelScores, labels_from
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Choice, Field, Reals
from nearlabel.methods.fitted_model import NO_ROWS, Needs, Training, uses_vectors
from nearlabel.methods.inner_methods import learned, unlearned
from nearlabel.methods.items import Items
from nearlabel.methods.model_trees import learned_tree, read_learned


class _Inner(Field):
    """The wrapped method, which shares the items."""

    def write(self, model: Any, learned: Tree) -> None:
        learned[self.key] = learned_tree(model.estimator_)

    def read(self, model: Any, learned: Tree, sizes: dict[str, int]) -> None:
        inner = unlearned(model.estimator, model, model.items_, model.n_neighbors_)
        read_learned(inner, learned[self.key])
        model.estimator_ = inner


class LabelThresholds(NeighborClassifier):
    """Any nearlabel method with a separate cut for each label.

    A method uses the same cut for every label, and so hardly ever predicts a rare one. Here each
    training row is scored as if it were new, from its neighbors without itself, and each label gets
    the cut with the best F1 on these scores [1]_. The ranking is the method's.

    Parameters
    ----------
    estimator : neighbor method of nearlabel
        Such as ``MLkNN()``. Scaling goes first, as in ``make_pipeline(MinMaxScaler(),
        LabelThresholds(MLkNN()))``.
    objective : {"f1"}, default="f1"
        What a cut maximizes.
    min_f1 : float, default=0.1
        If even the best cut has a lower F1 on the training rows, the label is left to the method:
        such a cut would predict it for nearly every row.
    min_rows : int, default=3
        Labels with fewer training rows are left to the method.

    Attributes
    ----------
    estimator_ : estimator
        The fitted method.
    cuts_ : ndarray of shape (q,)
        The cut of each label, in the method's scores; nan for labels left to the method.
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in the method.

    Notes
    -----
    `predict_proba` returns the method's probabilities, or one close to 1/2 if the cut decides
    otherwise.

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

    estimator_: NeighborClassifier
    title = "learnt cuts"
    stored = (
        Reals("cuts", "cuts_", "q", nan=True),
        _Inner("estimator", "estimator_"),
        Choice("probabilities", "_chances", choices=("own", "moved"), absent="moved"),
    )
    n_neighbors = property(attrgetter("estimator.n_neighbors"))
    metric = property(attrgetter("estimator.metric"))
    search = property(attrgetter("estimator.search"))
    n_jobs = property(attrgetter("estimator.n_jobs"))

    def __init__(
        self,
        estimator: NeighborClassifier,
        objective: str = "f1",
        min_f1: float = 0.1,
        min_rows: int = 3,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.min_f1 = min_f1
        self.min_rows = min_rows

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """What the wrapped method needs, given its parameters."""
        return replace(self.estimator.needs, vectors=uses_vectors(self.estimator))

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, NeighborClassifier) or isinstance(
            self.estimator, LabelThresholds
        ):
            raise TypeError(
                "estimator must be a neighbor method of nearlabel (scaling goes first: "
                f"make_pipeline(scaler, LabelThresholds(MLkNN()))); got {self.estimator!r}"
            )
        self.estimator.check_parameters()
        check_choice(self.objective, "objective", ("f1",))
        check_real(self.min_f1, "min_f1", low=0, high=1)
        check_integer(self.min_rows, "min_rows", low=1)

    def _rows_to_learn_from(self, Y: Csr, X: Matrix) -> Array | None:
        self.estimator._rows_to_learn_from(Y, X)  # may raise an error
        if self.needs.dense_scores:
            # 64 bytes a score, while all scores of a label are sorted.
            what, instead = "the leave-one-out scores", "a method that scores few labels"
            check_dense_size(what, Y.shape, 64, instead)
        return None if self.needs.graph else NO_ROWS

    def _learn(self, seen: Training) -> None:
        graph, Y, X = seen.graph, seen.Y, seen.X
        inner = unlearned(self.estimator, self, self.items_, self.n_neighbors_)
        inner = learned(inner, seen, seen.progress)
        left_out = inner._left_out_scores(graph, X, np.arange(Y.shape[0]))
        cuts = f1_cuts(left_out, Y, least=float(self.min_f1))
        few = label_totals(Y) < self.min_rows
        self.estimator_, self._chances = inner, "own"
        self.cuts_ = np.where(few | np.isinf(cuts), np.nan, cuts)

    def _learn_on(self, seen: Training) -> None:
        chances = self._chances
        self._learn(seen)
        self._chances = chances

    def _with_known(self, X: Matrix, known: dict[Hashable, Any]) -> NeighborClassifier:
        inner = self.estimator._with_known(X, known)
        return self if inner is self.estimator else clone(self).set_params(estimator=inner)

    def _replace_items(self, items: Items) -> None:
        """Set other training items, also for the wrapped method."""
        super()._replace_items(items)
        if "estimator_" in vars(self):
            self.estimator_ = copy(self.estimator_)
            self.estimator_._replace_items(items)

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        return self.estimator_._scores(graph, X)

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        return self.estimator_._left_out_scores(graph, X, rows)

    def _voters(self, X: Matrix) -> tuple[NeighborGraph, NeighborGraph]:
        return self.estimator_._voters(X)

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        cut = np.isfinite(self.cuts_)
        own = self.estimator_._decide(scores, graph)
        own.data[cut[own.indices]] = 0
        own.eliminate_zeros()
        return own + labels_from(scores, np.where(cut, self.cuts_, np.inf))

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        own = self.estimator_._probabilities(scores.copy(), label)
        if self._chances == "own":
            return own
        # In older files, the odds are divided by those of the cut.
        cut = np.isfinite(self.cuts_[label])
        at = self.estimator_._probabilities(np.where(cut, self.cuts_[label], 0.5), label)
        yes, no = own * (1 - at), (1 - own) * at
        moved = np.divide(yes, yes + no, where=yes + no > 0, out=np.full(own.shape, 0.5))
        return np.asarray(np.where(cut, moved, own))

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        terms = {**self.estimator_._terms(label, count, graph, X)}
        if np.isfinite(self.cuts_[label]):
            terms["cut"] = float(self.cuts_[label])
        return terms
