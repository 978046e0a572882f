"""A blend of several methods on two neighbor graphs."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nearlabel.blend.decision_cuts import OBJECTIVES, LabelDecision, learned_decision
from nearlabel.blend.evidence import Pairs
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.learned_blend import DENSE_LABELS, TOUCHED_LABELS, LearnedBlend
from nearlabel.blend.other_readings import OtherReading, check_others
from nearlabel.blend.pooled_logistic import CrossFitted
from nearlabel.blend.ridge import LabelRidge
from nearlabel.blend.rows import drawn_rows, seed_of
from nearlabel.blend.stored_blend import StoredBlend, StoredDecision
from nearlabel.blend.voting_forest import MOST_ROWS, VotingForest
from nearlabel.common.arrays import Array, Csr
from nearlabel.common.threads import one_blas_thread
from nearlabel.common.validation import check_choice, check_flag
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.brknn import BRkNN
from nearlabel.methods.items import Items, Training
from nearlabel.methods.living_model import FittedModel
from nearlabel.methods.mlknn import MLkNN
from nearlabel.methods.needs import Needs
from nearlabel.methods.positiveknn import PositivekNN
from nearlabel.search import VectorStore
from nearlabel.search.exact.equal_rows import equal_rows

_PAIRS = 2**20  # (row, label) pairs that weights and cuts are learned from
_SHOWN = 5  # readings in a summary


@dataclass(repr=False, eq=False)
class BlendedNeighbors(NeighborClassifier):
    """A blend of several methods on two neighbor graphs with ridge regressions and a forest.

    The neighbors of a row are searched twice: by the distance of the vectors, and by a distance
    learned from the labels (`LabelSpace`). Several methods read each of the two graphs; two ridge
    regressions, linear and on an RBF kernel, predict the labels without neighbors; and a forest has
    its own neighbors, the rows in the same leaves. The leave-one-out scores of all these readings
    are the inputs of one logistic regression over all (row, label) pairs [1]_. So the weight of
    each reading is learned, and the scores are calibrated probabilities. Labels with many examples
    get their own weights, shrunk towards the common ones.

    Parameters
    ----------
    n_neighbors : int, default=40
        Neighbors of a row in each graph; no reading may ask for more.
    readings : list of estimators, optional
        nearlabel's methods, each with its own number of neighbors, which read both graphs. By
        default ML-kNN with 10 and 30 neighbors, BRkNN weighted by distance with 30, and PositivekNN
        with 40. With an empty list, only the regressions remain.
    learn_distance : bool, default=True
        Whether to use a second graph, with a learned distance.
    ridge : bool, default=True
        Whether to use the scores of the ridge regressions.
    forest : bool or "auto", default="auto"
        Whether to use a forest of extremely randomized trees; "auto": with at most 30,000 rows.
    others : list of scikit-learn classifiers, optional
        Further readings, such as `ExtraTreesClassifier()` or a pipeline; wrap those for one label
        in a `OneVsRestClassifier`. Each is fitted five times: to all rows, and for each of four
        folds to the other rows, to score the training rows. At most 2,000 labels. A blend with
        others cannot be saved to a model file.
    objective : {"hamming", "micro_f1", "macro_f1", "cardinality"}, default="hamming"
        The metric that `predict` optimizes. "hamming": predict labels with probability 1/2 or more.
        "micro_f1" and "macro_f1": cuts learned from the leave-one-out probabilities; for micro F1
        one cut for all labels unless cuts per label are better on held-out rows. "cardinality":
        predict as many of the most probable labels as the probabilities add up to.
    random_state : int, RandomState or None, default=0
        Seed for sampling the rows that choices are based on if there are many.
    metric, search, n_jobs
        As in `MLkNN`. The learned distance is Euclidean.

    Attributes
    ----------
    weights_ : dict
        The standardized weight of each reading: what one standard deviation of it adds to the log
        odds of a label.
    label_space_ : LabelSpace or None
        The learned distance, and its chosen parameters.
    cuts_ : ndarray, shape (1,) or (q,)
        Probabilities from which labels are predicted.
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    Notes
    -----
    Scale the features first, in a pipeline: it matters more than the method. With up to 2,000
    labels all of them are scored for each row; with more, those that some neighbor has, and the
    others by their frequency. After a change of the training rows it learns again at the next
    query. If an eighth of the rows or more are duplicates, as with a few binary features, no
    distance is learned, and the weights are learned from one row of each kind: leave-one-out scores
    of duplicates reveal each other's labels.

    References
    ----------
    .. [1] D. H. Wolpert, "Stacked generalization", Neural Networks 5(2), 1992.
    .. [2] W. Cheng and E. Hüllermeier, "Combining instance-based learning and logistic regression
       for multilabel classification", Machine Learning 76, 2009, which blends labels of neighbors
       per label.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(300, 5, 6, labels_per_sample=2)
    >>> model = nl.BlendedNeighbors(20).fit(data.X[:200], data.Y[:200])
    >>> model.label_scores(data.X[200:]).shape
    (100, 6)
    >>> for reading in list(model.weights_)[:2] + list(model.weights_)[-3:]:
    ...     print(reading)
    ML-kNN (k = 10)
    ML-kNN (k = 20)
    root of rbf ridge
    forest
    frequency
    """

    n_neighbors: int | None = 40
    readings: Any = None
    learn_distance: bool = True
    ridge: bool = True
    forest: bool | str = "auto"
    others: Any = None
    objective: str = "hamming"
    random_state: Any = 0

    title = "Blend"
    stored = (StoredBlend("blend", "_blend"), StoredDecision("decision", "_decision"))

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """What it needs: room for a score of every label, unless there are too many."""
        items = vars(self).get("_items")
        are_few = items is None or items.labels.shape[1] <= DENSE_LABELS
        return Needs(vectors=True, dense_scores=are_few or not self._readings())

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each reading."""
        blend: LearnedBlend = self._blend
        assert blend.logistic is not None
        return dict(zip(blend.names, blend.logistic.whole.weights[:-1].tolist(), strict=True))

    @property
    def label_space_(self) -> LabelSpace | None:
        """The learned distance."""
        space: LabelSpace | None = self._blend.space
        return space

    @property
    def cuts_(self) -> Any:
        """Probabilities from which labels are predicted."""
        return self._decision.cuts

    def summary(self) -> str:
        """A summary in a few lines: the distance, the weights and the decision."""
        check_is_fitted(self)
        space, lines = self._blend.space, []
        if space is not None:
            joined = "" if space.weight_ == 1 else f", {1 - space.weight_:.0%} from the features"
            lines.append(
                f"learned distance: {space.kernel_} ridge regression of the labels, "
                f"{space.metric_}{joined}"
            )
        elif self.learn_distance and self._blend.plain:
            lines.append("no learned distance: too many training rows are duplicates")
        weights = sorted(self.weights_.items(), key=lambda one: -abs(one[1]))
        shown = ", ".join(f"{name} {weight:+.2f}" for name, weight in weights[:_SHOWN])
        lines.append(f"largest weights in the blend: {shown}")
        cuts = self.cuts_
        if self._decision.objective == "cardinality":
            decided = "as many labels as the probabilities add up to"
        elif len(cuts) == 1:
            decided = f"labels with a probability of at least {cuts[0]:.2f}"
        else:
            decided = f"a cut per label, from {cuts.min():.2f} to {cuts.max():.2f}"
        return "\n".join([*lines, f"predicted: {decided}"])

    def _check_parameters(self) -> None:
        for one in self._readings():
            is_method = isinstance(one, NeighborClassifier) and one.needs.graph
            if not is_method or hasattr(one, "estimator") or isinstance(one, BlendedNeighbors):
                raise TypeError(
                    "readings must be nearlabel methods that read a neighbor graph, such as "
                    f"MLkNN(10); got {one!r}"
                )
            one.check_parameters()
            if one.n_neighbors is None or one.n_neighbors > (self.n_neighbors or 0):
                raise ValueError(
                    f"readings: {one!r} needs {one.n_neighbors} neighbors, more than "
                    f"n_neighbors={self.n_neighbors}"
                )
        check_choice(self.objective, "objective", OBJECTIVES)
        check_flag(self.learn_distance, "learn_distance")
        check_flag(self.ridge, "ridge")
        if not isinstance(self.forest, str) or self.forest != "auto":
            check_flag(self.forest, "forest (or 'auto')")
        check_others(self.others)
        seed_of(self.random_state)

    def _readings(self) -> list[Any]:
        """The methods; the default ones with at most n_neighbors neighbors."""
        if self.readings is None:
            few, some, many = (min(k, self.n_neighbors or k) for k in (10, 30, 40))
            counted = [MLkNN(k) for k in sorted({few, some})]
            return [*counted, BRkNN(some, weights="distance"), PositivekNN(many, random_state=0)]
        if not isinstance(self.readings, list | tuple):
            raise TypeError(f"readings must be a list of methods; got {self.readings!r}")
        return list(self.readings)

    def _others(self, q: int) -> list[Any]:
        """The classifiers, or an error if there are too many labels for them."""
        others = check_others(self.others)
        if others and q > DENSE_LABELS:
            raise ValueError(f"others supports at most {DENSE_LABELS} labels; got {q}")
        return others

    def _learn(self, seen: Training) -> None:
        graph, X, Y = seen.graph, seen.X, seen.Y
        n, q = Y.shape
        others = self._others(q)
        seed, readings = seed_of(self.random_state), self._readings()
        plain = [self._reading(one, self._items, seen) for one in readings]
        blend = LearnedBlend(plain, totals=label_totals(Y), n=n)
        near = regression = None
        copies = equal_rows(X)  # None if there are few
        if self.learn_distance and readings and copies is None:
            blend.space = LabelSpace(random_state=seed, n_jobs=self.n_jobs)
            Z, regression = blend.space.left_out_rows(X, Y)
            blend.rows = Items(Y, True, None, "euclidean", self.search, VectorStore(Z))
            near = blend.rows.left_out_neighbors(None, graph.k, n_jobs=seen.n_jobs)
            again = seen._replace(graph=near, X=Z)
            blend.learned = [self._reading(one, blend.rows, again) for one in readings]
        if self.ridge:
            regression = regression or LabelRidge(random_state=seed).fit(X, Y)
            blend.regressions = {one: regression.weights(one) for one in regression.tried_}
        if n <= MOST_ROWS if isinstance(self.forest, str) else self.forest:
            blend.forest = VotingForest.fit(X, Y, seed, seen.n_jobs)
        blend.others = [OtherReading.fit(one, X, Y) for one in others]
        # Leave-one-out scores of equal rows differ only by the labels of the row left out: learned
        # from together, such rows would reveal each other's labels.
        rows = np.arange(n) if copies is None else np.sort(copies.copies[copies.starts[:-1]])
        most = max(1, _PAIRS // (q if blend.is_dense else TOUCHED_LABELS))
        rows = rows[drawn_rows(len(rows), most, seed)]
        own = Y[rows]
        nearest = None if near is None else near.take(rows)
        said = blend.said_left_out(graph.take(rows), X[rows], rows, rows, own, nearest)
        pairs = blend.pairs(said, len(rows))
        columns, truth = blend.columns(said, pairs), pairs.truth(own)
        parts = 1 < q <= DENSE_LABELS
        which = rows[pairs.row], pairs.label
        with one_blas_thread:  # the order of sums, and so the rounding, stays the same
            blend.logistic = CrossFitted.fit(columns, truth, *which, q, own=parts)
        blend.missed = blend.missed_share(pairs, truth, own)
        self._blend = blend
        self._decision: LabelDecision = learned_decision(
            blend.probabilities(pairs, columns, rows), own, self.objective
        )

    def _reading(self, estimator: Any, items: Items, seen: Training) -> Any:
        """A method that has learned from a graph."""
        inner = self._unlearned(estimator, items, min(int(estimator.n_neighbors), seen.graph.k))
        wanted = inner._rows_to_learn_from(seen.Y, seen.X)
        near = seen.graph.head(inner.n_neighbors_)
        near = near if wanted is None else near.take(wanted)
        inner._learn_from(near, wanted, seen.n_jobs, None)
        return inner

    def _unlearned(self, estimator: Any, items: Items, k: int) -> Any:
        """A copy of a method with items, from which it has not learned yet."""
        inner = clone(estimator)
        kept = vars(self).keys() & FittedModel.__annotations__.keys()
        vars(inner).update({name: vars(self)[name] for name in kept})
        vars(inner).update(inner._checked_settings())
        inner._items, inner.n_neighbors_ = items, k
        return inner

    def _have(self, items: Items) -> None:
        super()._have(items)
        if "_blend" in vars(self):
            self._blend = copy(self._blend)
            self._blend.plain = [copy(one) for one in self._blend.plain]
            for one in self._blend.plain:
                one._have(items)

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        blend, parts = self._blend, []
        for run in blend.runs(len(graph)):
            some = graph.rows(run.start, run.stop)
            parts.append(blend.blended(blend.said(some, X[run]), len(some)))
        return LabelScores.joined(parts)

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        blend, parts = self._blend, []
        among = np.searchsorted(self._items.places, rows)  # the learned rows have no gaps
        for run in blend.runs(len(graph)):
            some, own = graph.rows(run.start, run.stop), self._labels[rows[run]]
            said = blend.said_left_out(some, X[run], rows[run], among[run], own)
            parts.append(blend.blended(said, len(some), among[run]))
        return LabelScores.joined(parts)

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        return self._decision.labels(scores)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Any) -> dict[str, float]:
        """What each reading adds to the log odds, the strongest first."""
        blend = self._blend
        assert blend.logistic is not None
        pair = Pairs(np.zeros(1, np.intp), np.array([label]), (1, blend.q), False)
        columns = blend.columns(blend.said(graph, X), pair)
        parts = blend.logistic.whole.parts(columns, pair.label)[0].tolist()
        named = zip([*blend.names, "intercept"], parts, strict=True)
        return dict(sorted(named, key=lambda part: -abs(part[1])))
