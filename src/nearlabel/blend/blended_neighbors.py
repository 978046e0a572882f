"""A blend of several methods on two neighbor graphs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearlabel.blend.decision_cuts import OBJECTIVES, LabelDecision, learned_decision
from nearlabel.blend.evidence import Pairs
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.learned_blend import DENSE_LABELS, TOUCHED_LABELS, LearnedBlend
from nearlabel.blend.pooled_logistic import CrossFitted
from nearlabel.blend.readings import LeftOut, MethodReadings, RidgeReading, ScoredRows
from nearlabel.blend.ridge import LabelRidge, label_ridges
from nearlabel.blend.rows import drawn_rows, seed_of
from nearlabel.blend.stored_blend import StoredBlend, StoredDecision, chosen_methods
from nearlabel.blend.voting_forest import MOST_ROWS, VotingForest
from nearlabel.common.arrays import Array, Csr, Floats, Matrix, Seed, Tree
from nearlabel.common.threads import one_blas_thread
from nearlabel.common.validation import check_choice, check_flag
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fitted_model import Needs, Training
from nearlabel.methods.inner_methods import learned, unlearned
from nearlabel.methods.items import Items
from nearlabel.search import VectorStore
from nearlabel.search.exact.equal_rows import equal_rows


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
    readings: Sequence[NeighborClassifier] | None = None
    learn_distance: bool = True
    ridge: bool = True
    forest: bool | str = "auto"
    objective: str = "hamming"
    random_state: Seed = 0

    title = "Blend"
    stored = (StoredBlend("blend", "_blend"), StoredDecision("decision", "_decision"))

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """What it needs: room for a score of every label, unless there are too many."""
        items = vars(self).get("items_")
        are_few = items is None or items.labels.shape[1] <= DENSE_LABELS
        return Needs(vectors=True, dense_scores=are_few or not chosen_methods(self))

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each reading."""
        blend: LearnedBlend = self._blend
        return dict(zip(blend.names, blend.logistic.whole.weights[:-1].tolist(), strict=True))

    @property
    def label_space_(self) -> LabelSpace | None:
        """The learned distance."""
        learned: MethodReadings | None = self._blend.learned
        return None if learned is None else learned.space

    @property
    def cuts_(self) -> Floats:
        """Probabilities from which labels are predicted."""
        return self._decision.cuts

    def summary(self) -> str:
        """A summary in a few lines: the distance, the weights and the decision."""
        check_is_fitted(self)
        space, lines = self.label_space_, []
        if space is not None:
            joined = "" if space.weight_ == 1 else f", {1 - space.weight_:.0%} from the features"
            lines.append(
                f"learned distance: {space.kernel_} ridge regression of the labels, "
                f"{space.metric_}{joined}"
            )
        elif self.learn_distance and self._blend.plain.methods:
            lines.append("no learned distance: too many training rows are duplicates")
        weights = sorted(self.weights_.items(), key=lambda named: -abs(named[1]))
        shown = ", ".join(f"{name} {weight:+.2f}" for name, weight in weights[:5])
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
        for reading in chosen_methods(self):
            is_method = isinstance(reading, NeighborClassifier) and reading.needs.graph
            is_nested = hasattr(reading, "estimator") or isinstance(reading, BlendedNeighbors)
            if not is_method or is_nested:
                raise TypeError(
                    "readings must be nearlabel methods that read a neighbor graph, such as "
                    f"MLkNN(10); got {reading!r}"
                )
            reading.check_parameters()
            if reading.n_neighbors is None or reading.n_neighbors > (self.n_neighbors or 0):
                raise ValueError(
                    f"readings: {reading!r} needs {reading.n_neighbors} neighbors, more than "
                    f"n_neighbors={self.n_neighbors}"
                )
        check_choice(self.objective, "objective", OBJECTIVES)
        check_flag(self.learn_distance, "learn_distance")
        check_flag(self.ridge, "ridge")
        if not isinstance(self.forest, str) or self.forest != "auto":
            check_flag(self.forest, "forest (or 'auto')")
        seed_of(self.random_state)

    @classmethod
    def _from_tree(cls, tree: Tree, version: int) -> Self:
        parameters = dict(tree["parameters"])
        if parameters.pop("others", None) is not None:  # in files of version 1.0, always None
            raise ValueError("its parameter others is not None")
        return super()._from_tree({**tree, "parameters": parameters}, version)

    def _learn(self, seen: Training) -> None:
        graph, X, Y = seen.graph, seen.X, seen.Y
        n, q = Y.shape
        seed = seed_of(self.random_state)
        plain = self._learned_methods(self.items_, graph, seen)
        blend = LearnedBlend(plain, label_totals(Y), n)
        near: NeighborGraph | None = None
        ridges: dict[str, LabelRidge] = {}
        copies = equal_rows(X)  # None if there are few
        if self.learn_distance and plain.methods and copies is None:
            space = LabelSpace(random_state=seed, n_jobs=self.n_jobs)
            Z, ridges = space.left_out_rows(X, Y)
            items = Items(Y, "euclidean", self.search, VectorStore(Z))
            near = items.left_out_neighbors(None, graph.k, n_jobs=seen.n_jobs)
            blend.learned = self._learned_methods(items, near, seen, space)
        if self.ridge:
            ridges = ridges or label_ridges(X, Y, random_state=seed)
            blend.regressions = [
                RidgeReading(kernel, ridge.weights(), not blend.is_dense)
                for kernel, ridge in ridges.items()
            ]
        if n <= MOST_ROWS if isinstance(self.forest, str) else self.forest:
            blend.forest = VotingForest.fit(X, Y, seed, seen.n_jobs)
        # Leave-one-out scores of equal rows differ only by the labels of the row left out: learned
        # from together, such rows would reveal each other's labels.
        rows = np.arange(n) if copies is None else np.sort(copies.copies[copies.starts[:-1]])
        most = max(1, 2**20 // (q if blend.is_dense else TOUCHED_LABELS))
        rows = rows[drawn_rows(len(rows), most, seed)]
        own = Y[rows]
        left_out = LeftOut(rows, rows, own, None if near is None else near.take(rows))
        pairs, columns = blend.columns(ScoredRows(graph.take(rows), X[rows], left_out))
        truth, row, may_differ = pairs.truth(own), rows[pairs.row], 1 < q <= DENSE_LABELS
        with one_blas_thread:  # the order of sums, and so the rounding, stays the same
            blend.logistic = CrossFitted.fit(columns, truth, row, pairs.label, q, own=may_differ)
        blend.missed = blend.missed_share(pairs, truth, own)
        self._blend = blend
        scores = blend.probabilities(pairs, columns, rows)
        self._decision: LabelDecision = learned_decision(scores, own, self.objective)

    def _learned_methods(
        self, items: Items, graph: NeighborGraph, seen: Training, space: LabelSpace | None = None
    ) -> MethodReadings:
        """The methods after they have learned from a graph of items."""
        seen = Training(graph, seen.Y, items.vectors, seen.chosen, seen.n_jobs, None)
        methods = [
            learned(unlearned(method, self, items, min(method.n_neighbors or 0, graph.k)), seen)
            for method in chosen_methods(self)
        ]
        return MethodReadings(methods, items, space)

    def _replace_items(self, items: Items) -> None:
        """Set other training items, also for the methods that have learned from them."""
        super()._replace_items(items)
        if "_blend" in vars(self):
            methods = [copy(method) for method in self._blend.plain.methods]
            for method in methods:
                method._replace_items(items)
            self._blend = copy(self._blend)
            self._blend.plain = MethodReadings(methods, items)

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        blend = self._blend
        runs = blend.runs(len(graph))
        parts = (ScoredRows(graph.rows(run.start, run.stop), X[run]) for run in runs)
        return LabelScores.joined([blend.probabilities(*blend.columns(part)) for part in parts])

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        blend, parts = self._blend, []
        among = np.searchsorted(self.items_.places, rows)  # the learned rows have no gaps
        for run in blend.runs(len(graph)):
            left_out = LeftOut(rows[run], among[run], self._labels[rows[run]])
            part = ScoredRows(graph.rows(run.start, run.stop), X[run], left_out)
            parts.append(blend.probabilities(*blend.columns(part), among[run]))
        return LabelScores.joined(parts)

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        return self._decision.labels(scores)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        """What each reading adds to the log odds, the strongest first."""
        blend = self._blend
        pair = Pairs(np.zeros(1, np.intp), np.array([label]), (1, blend.q), False)
        _, columns = blend.columns(ScoredRows(graph, X), pair)
        parts = blend.logistic.whole.parts(columns, pair.label)[0].tolist()
        named = zip([*blend.names, "intercept"], parts, strict=True)
        return dict(sorted(named, key=lambda part: -abs(part[1])))
