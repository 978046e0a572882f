"""The base of all methods: scikit-learn's contract once, around the hooks of a method.

A method says what it needs, what it learns from the neighbors of the training rows, and how it
scores labels from the neighbors of queries. Everything else is here, in `living_model.py`, which
has the changes of a fitted model, or in a collaborator: the items (`items.py`), answers by runs of
rows (`answers.py`), explanations (`explanations.py`) and files (`model_trees.py`).
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.journal import save_tree
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import (
    Labels,
    check_integer,
    check_labels,
    check_n_jobs,
    check_same_length,
    checked_vectors,
    refuse_arguments,
)
from nearlabel.graph import NeighborGraph, as_query_graph, as_self_graph
from nearlabel.labels.block_counts import BlockCounts
from nearlabel.labels.decisions import labels_from
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods import answers, explanations, retrieval
from nearlabel.methods.changes import Change, History
from nearlabel.methods.fields import Field, Value
from nearlabel.methods.fold_answers import FoldAnswers, FoldRows, answers_by_neighbors
from nearlabel.methods.items import Items, Training
from nearlabel.methods.label_forms import LabelForms
from nearlabel.methods.learned_counts import LearnedCounts
from nearlabel.methods.living_model import LivingModel
from nearlabel.methods.model_trees import model_from, model_tree
from nearlabel.methods.needs import Needs, needs_vectors
from nearlabel.methods.states import computed_names, of_one_state
from nearlabel.methods.training_sources import (
    GivenGraph,
    SearchedRows,
    TrainingSource,
    first_neighbors,
)
from nearlabel.search import (
    VectorStore,
    is_precomputed,
)

# What `_rows_to_learn_from` says of a method that learns nothing from neighbors.
NO_ROWS = np.empty(0, np.int64)
HOOKS = (
    "_check_parameters",
    "_rows_to_learn_from",
    "_learn",
    "_prepare",
    "_scores",
    "_left_out_scores",
    "_decide",
    "_probabilities",
    "_terms",
)


@dataclass(repr=False, eq=False)
class NeighborClassifier(LivingModel, ClassifierMixin, BaseEstimator):
    """A method that reads labels off a neighbor graph. Its fields are the parameters of all."""

    n_neighbors: int | None = 10
    _: KW_ONLY
    metric: Any = "euclidean"
    search: Any = "auto"
    n_jobs: int | None = None

    keeps_items = True
    title: ClassVar[str]
    """The method's name in print."""
    needs: ClassVar[Needs] = Needs()
    """What the method asks for."""
    settings: ClassVar[tuple[Value, ...]] = ()
    """Its own parameters, which a fitted model keeps as they were: `smoothing` as `_smoothing`."""
    stored: ClassVar[tuple[Field, ...]] = ()
    """What `_learn` learns, as it stands in files; see `nearlabel.methods.fields`."""
    by_blocks: ClassVar[type[BlockCounts] | None] = None
    """What `_learn` counts on all training rows, where blocks of them can be counted apart."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_learn" in vars(cls) and "stored" not in vars(cls):  # its files would lack something
            raise TypeError(
                f"{cls.__name__} defines _learn, so it must declare what it learns: stored = (…), "
                "with fields of nearlabel.methods.fields"
            )

    # The hooks: what the author of a method writes.

    def _check_parameters(self) -> None:
        """Refuse parameters of the method's own that `settings` does not check."""

    def _rows_to_learn_from(self, Y: Csr, X: Any) -> Array | None:
        """The training rows whose neighbors `_learn` wants to see; None for all.

        Called before anything is searched, so that a method can refuse data it has no room for. Y
        has the labels and X the vectors, or None, of all training rows. By default none where a
        method learns nothing.
        """
        return NO_ROWS if type(self)._learn is NeighborClassifier._learn else None

    def _learn(self, seen: Training) -> None:
        """Learn from the neighbors of training rows: set what `stored` declares, no more."""

    def _learn_on(self, seen: Training) -> None:
        """Learn again from training rows that have changed, and keep what `refresh` is for."""
        self._learn(seen)

    def _follow(self, change: Change) -> bool:
        """Bring what was learned up to date after a change of the training rows; say if it could.

        It must be what `_learn_on` would learn. The model has the changed items already. By default
        it updates counts: a method that learns something else and has no such hook learns again
        when it is next used.
        """
        for field in self.stored:
            if isinstance(field, LearnedCounts):
                field.follow(self, change)
        return True

    def _prepare(self) -> None:
        """Compute what follows from what was learned: after `_learn`, and when a file was read."""

    @abstractmethod
    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        """Score the labels of queries from their k neighbors among the training rows.

        Called for runs of rows, by several threads: it must not change the model.
        """

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        """Score the training rows `rows`, with vectors X, as if each were new.

        The graph leaves each row out of its own neighbors; a method with tables takes the row's own
        entry out of them, too. Its place among the neighbors of other rows stays.
        """
        return self._scores(graph, X)

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        """Label sets, shape (n, q): by default where the score is at least 1/2."""
        return labels_from(scores, 0.5)

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        """Probabilities of scores; by default the scores themselves.

        `label` has their columns, in a shape that fits: (q,) for a dense matrix of scores, or that
        of the scores for single ones.
        `predict_proba` moves them to the side of 1/2 that the decision is on.
        """
        return scores

    def _uncalibrated(self, scores: Floats, label: Array) -> Floats:
        """Probabilities before any calibration on the training rows; by default the same.

        Left-out scores of training rows go through this one: a calibration has seen their labels.
        """
        return self._probabilities(scores, label)

    @abstractmethod
    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Any) -> dict[str, float]:
        """The numbers that make the score of a label of one query, in the method's own words.

        `count` is how many of its neighbors carry the label, and is told in any case.
        """

    def _voters(self, X: Any) -> tuple[NeighborGraph, NeighborGraph]:
        """The neighbors of queries; and these with the next nearest one, if there is any.

        Only a method that searches by itself has others than those of the graph; it is asked for
        one query at a time.
        """
        return explanations.nearest_voters(self, X)

    # Learning.

    @property
    def _labels(self) -> Csr:
        """The labels of the training rows, shape (n, q)."""
        return self._items.labels

    @property
    def _totals(self) -> Array:
        """How many training rows carry each label, shape (q,)."""
        return self._items.totals

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, as `fit` does, without any data."""
        self._checked_settings()
        check_n_jobs(self.n_jobs)

    def _checked_settings(self) -> dict[str, Any]:
        """The method's own parameters as a fitted model keeps them, all but `n_jobs` checked."""
        self._check_parameters()
        settings = {one.attribute: one.check(getattr(self, one.key)) for one in self.settings}
        if not (self.n_neighbors is None and self.needs.all_rows):
            check_integer(self.n_neighbors, "n_neighbors", low=1)
        if needs_vectors(self) and is_precomputed(self.metric):
            raise ValueError(
                f"metric='precomputed': {type(self).__name__} needs the vectors themselves, "
                "not only distances"
            )
        return settings

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        label_names: Any = None,
        ids: Any = None,
        separator: str | None = None,
        progress: Progress | None = None,
        **unknown: Any,
    ) -> Self:
        """Search the neighbors of the training rows and learn from them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
            Training vectors; distances among them where ``metric="precomputed"``. Kept, not
            copied: do not write to them afterwards.
        y : array-like, sparse matrix or DataFrame of 0 and 1, shape (n, q), or tags of n rows
            Labels: column l of row i is 1 where item i carries label l. Or the tags of each row,
            str or int: a list, an array or a column of lists, tuples, sets or arrays, or of texts
            with a separator. Or 1-d with two classes.
        label_names : sequence of str, shape (q,), optional
            Names of the labels; by default the columns of y, where it is a DataFrame, or the tags
            in y, sorted.
        ids : sequence of str or int, shape (n,), optional
            Unique row ids, by which `explain` and `retrieve` name the rows; by default 0, 1, 2 …
        separator : str, optional
            What stands between two tags where y holds texts; by default found among ``;``, ``|``
            and ``,`` where that is certain.
        progress : callable, optional
            Called with (steps done, steps in all): a step is a row that was searched, or some that
            were learned from.

        Returns
        -------
        self
        """
        refuse_arguments("fit", unknown)
        labels = check_labels(y, label_names, separator)
        return self._fit(SearchedRows(X), labels, ids, progress)

    def fit_graph(
        self,
        graph: Any,
        y: Any,
        X: Any = None,
        *,
        label_names: Any = None,
        ids: Any = None,
        separator: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from neighbors that were searched before.

        Parameters
        ----------
        graph : NeighborGraph or sparse matrix
            At least `n_neighbors` neighbors of each training row among the others: from
            `neighbor_graph`, or a graph in scikit-learn's precomputed form.
        y, label_names, separator : labels and their names, as in `fit`
        X : training vectors, optional
            Needed by what searches later: `predict` and the like on new vectors; without them the
            model answers by `scores_from_graph`. A few methods look at vectors and say so where
            they are missing.
        ids : ids of the rows of X, as in `fit`
        progress : callable, optional
            Called with (steps done, steps in all).

        Returns
        -------
        self
        """
        labels = check_labels(y, label_names, separator)
        return self._fit(GivenGraph(as_self_graph(graph), X), labels, ids, progress)

    def _fit(
        self, source: TrainingSource, labels: Labels, ids: Any, progress: Progress | None
    ) -> Self:
        """Learn on a copy and become it when all went well.

        A fit that fails or is interrupted leaves this model as it was.
        """
        self.check_parameters()  # before anything takes long
        self._refuse_closed()
        model = copy(self)
        n = labels.matrix.shape[0]
        X = source.vectors(model, n)
        k = model._begin(X, labels, ids)
        rows = model._rows_to_learn_from(labels.matrix, X)
        searched, learned = 0, n
        if source.searches:
            searched = n if rows is None else len(rows)
            learned = 1 + searched // answers.ROWS_A_SEARCH
        stages = Stages(progress, searched + learned)
        searching, learning = stages.next(searched), stages.next(learned)
        found = source.neighbors(model, rows, searching, learning)
        graph = found.graph
        model.search_recall_ = graph.recall
        near, n_jobs = graph.head(k) if graph.k > k else graph, check_n_jobs(self.n_jobs)
        model._learn_from(near, rows, n_jobs, learning, counted=found.counted)
        model._items.graph = graph if found.is_kept else None
        if learning is not None:
            learning(1, 1)
        return self._replaced_by(model)

    def _begin(self, X: Any, labels: Labels, ids: Any) -> int:
        """Take checked training items, from which nothing is learned yet; returns k."""
        settings = self._checked_settings()
        k = self.usable_neighbors(labels.matrix.shape[0])
        store = None if X is None else VectorStore(X, ids)
        form = labels.sparse, labels.tags
        asked = None if self.n_neighbors is None else int(self.n_neighbors)
        self._items = Items(labels.matrix, *form, self.metric, self.search, store, asked=asked)
        self.n_neighbors_, self.history_ = k, History()
        self.__dict__.pop("_is_outdated", None)
        self.classes_, self.label_names_ = labels.classes, labels.names
        self.__dict__.update(settings)
        return k

    def _replaced_by(self, model: Self) -> Self:
        """Become a copy of this model that has been fitted."""
        journal = vars(self).get("_journal")
        if journal is not None:
            model._journal = journal
            model._fold_journal()
        self.__dict__ = model.__dict__
        return self

    def _learn_from(
        self,
        graph: NeighborGraph,
        rows: Array | None,
        n_jobs: int,
        progress: Progress | None,
        *,
        on: bool = False,
        counted: Any = None,
    ) -> None:
        """Learn from the neighbors of `rows`, of all training rows if None, and prepare.

        `on` says that what only `refresh` learns stays. `counted` is what `by_blocks` has counted.
        """
        for name in computed_names(type(self)) & vars(self).keys():
            del self.__dict__[name]
        items, before = self._items, set(vars(self))
        rows = np.arange(len(items)) if rows is None else rows
        learn = self._learn_on if on else self._learn
        learn(Training(graph, items.labels, items.vectors, rows, n_jobs, progress, counted))
        declared = {field.attribute for field in self.stored}
        wrong = (vars(self).keys() - before - declared) | (declared - vars(self).keys())
        if wrong:
            raise TypeError(
                f"{type(self).__name__}: _learn must set what stored declares, and nothing else; "
                f"they differ in {', '.join(sorted(wrong))}"
            )
        self._prepare()

    def usable_neighbors(self, n: int) -> int:
        """Neighbors of a query among n training rows: `n_neighbors`, n - 1 at most; n for None."""
        if n < 2:
            raise ValueError("X has 1 sample; neighbors among the training rows need at least 2")
        if self.n_neighbors is None:
            return n
        if self.n_neighbors > n - 1 and self.needs.graph:
            warnings.warn(
                f"n_neighbors={self.n_neighbors} is more than the number of other training rows; "
                f"using {n - 1}",
                UserWarning,
                stacklevel=5,
            )
        return min(int(self.n_neighbors), n - 1)

    # Answers.

    @of_one_state
    def label_scores(self, X: Any, *, progress: Progress | None = None) -> LabelScores:
        """Score every label for each row: what the method ranks by.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        LabelScores
            Of shape (n, q), without a dense matrix.
        """
        return answers.all_scores(self, self._check_queries(X), progress=progress)

    @of_one_state
    def left_out_scores(self, rows: Any = None) -> LabelScores:
        """Score every label for training rows, each as if it were new.

        A row is left out of its own neighbors and, where the method has tables, out of these. Its
        place among the neighbors of other rows stays. So these scores are those that `label_scores`
        gives for rows like the training rows: what to choose thresholds, parameters or weights by.

        Parameters
        ----------
        rows : array-like of int, optional
            Positions of training rows among `ids_`; by default all.

        Returns
        -------
        LabelScores
            Of shape (n, q).
        """
        check_is_fitted(self)
        return answers.left_out_scores(self, rows)

    @of_one_state
    def scores_from_graph(self, graph: Any, X: Any = None) -> LabelScores:
        """Score every label for queries whose neighbors were searched before.

        Parameters
        ----------
        graph : NeighborGraph or sparse matrix, n rows over the training rows
            Of at least `n_neighbors` neighbors.
        X : vectors of the queries, optional
            Needed only by methods that look at vectors.

        Returns
        -------
        LabelScores
        """
        graph, X = self._check_neighbors(graph, X)
        return answers.all_scores(self, X, graph)

    @of_one_state
    def predict(self, X: Any, *, progress: Progress | None = None) -> Any:
        """Decide the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        ndarray of int or csr_array, shape (n, q); tags of n rows; or ndarray of classes, shape (n,)
            In the form of the y given to fit.
        """
        return answers.label_sets(self, self._check_queries(X), progress=progress)

    @of_one_state
    def predict_from_graph(
        self, graph: Any, X: Any = None, *, scores: LabelScores | None = None
    ) -> Any:
        """Decide the labels of queries whose neighbors were searched before.

        Parameters
        ----------
        graph, X
            As in `scores_from_graph`.
        scores : LabelScores, optional
            What `scores_from_graph` gave for them, where that is known already.

        Returns
        -------
        As `predict`.
        """
        graph, X = self._check_neighbors(graph, X)
        if scores is None:
            return answers.label_sets(self, X, graph)
        check_same_length(graph=len(graph), scores=len(scores))
        return answers.in_the_form_of_y(self, self._decide(scores, graph))

    @of_one_state
    def predict_proba(self, X: Any, *, progress: Progress | None = None) -> Floats:
        """Probability of each label for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        ndarray of float, shape (n, q); (n, 2) where y was 1-d
            Strictly between 0 and 1, and above 1/2 for just the labels that `predict` gives: a
            probability on the other side becomes one next to 1/2, in the same order.
        """
        return answers.probabilities(self, self._check_queries(X), progress)

    @of_one_state
    def rank(self, X: Any, top: int = 10, *, progress: Progress | None = None) -> RankedLabels:
        """Rank the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
            Searched and ranked in blocks: neither the neighbors nor the scores of all rows are
            ever held at once, so a memory map of many rows works.
        top : int, default=10
            How many labels; all of them if there are fewer.
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        RankedLabels
            Best first; equal scores in the order of the columns. A sequence of rows, each a list of
            names and scores, and arrays of all rows.
        """
        top = check_integer(top, "top", low=1)
        return answers.ranked(self, self._check_queries(X), None, top, progress)

    @of_one_state
    def rank_from_graph(
        self, graph: Any, X: Any = None, top: int = 10, *, progress: Progress | None = None
    ) -> RankedLabels:
        """Rank the labels of queries whose neighbors were searched before.

        Parameters
        ----------
        graph, X
            As in `scores_from_graph`. The scores of all rows are never held at once.
        top, progress
            As in `rank`.

        Returns
        -------
        RankedLabels
        """
        top = check_integer(top, "top", low=1)
        graph, X = self._check_neighbors(graph, X)
        return answers.ranked(self, X, graph, top, progress)

    def fold_answers(self, Y: Csr, train: FoldRows, test: FoldRows | None) -> FoldAnswers:
        """What a copy says of test rows that learns from training rows with the labels Y.

        Without test rows, it says it of each training row as if that were new.
        """
        return answers_by_neighbors(self, Y, train, test)

    def with_known(self, X: Any, known: dict[Hashable, Any]) -> NeighborClassifier:
        """The model, or one that learns the same from X with what an earlier one has found out.

        What others can use, whatever their numbers of neighbors, is kept in `known`.
        """
        return self

    @property
    def can_sweep(self) -> bool:
        """Whether its leave-one-out scores for many k are those of `left_out_sweep`."""
        return False

    @of_one_state
    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest training rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d), optional
            By default the training rows themselves, each left out of its own neighbors by its row
            number: an equal row stays a neighbor.
        n_neighbors : int, optional
            By default that of the model.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of float, shape (n, n_neighbors)
            Only if `return_distance`.
        indices : ndarray of int, shape (n, n_neighbors)
            Training rows, nearest first, ties by row. They are numbered in order of arrival, and
            forgotten ones keep their numbers until `compact`.
        """
        check_is_fitted(self)
        X = None if X is None else self._check_queries(X)
        most = len(self._items) - (X is None)
        k = min(self.n_neighbors_, most) if n_neighbors is None else n_neighbors
        graph = self._items.neighbors(X, k, n_jobs=check_n_jobs(self.n_jobs))
        return (graph.distances, graph.indices) if return_distance else graph.indices

    @of_one_state
    def explain(self, x: Any, top: int = 5, *, labels: Any = None) -> Any:
        """Say why an item, or each of several, gets its labels.

        Parameters
        ----------
        x : array-like, sparse matrix or DataFrame, shape (d,) or (n, d)
            An item, or several, which are searched together.
        top : int, default=5
            How many of the best labels of each.
        labels : int, str or sequence of these, optional
            Columns or names of labels to explain instead, such as one that was expected and is
            missing.

        Returns
        -------
        Explanation, or list of n Explanation for more than one row
            For each label its score, the numbers that make it, the neighbors that carry it, and
            what the score would be without each of them.
        """
        return explanations.explain(self, x, top, labels)

    @of_one_state
    def retrieve(
        self, X: Any, top: int = 5, per_label: int = 8
    ) -> list[list[retrieval.LabelGroup]]:
        """For each of the best labels of each row, find the nearest items that carry it.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        top : int, default=5
            Labels of each row.
        per_label : int, default=8
            Items of each label, from all training items; fewer where fewer carry it.

        Returns
        -------
        list of n lists of LabelGroup
        """
        return retrieval.retrieve(self, X, top, per_label)

    label_matrix = of_one_state(LabelForms.label_matrix)
    score = of_one_state(LabelForms.score)

    @property
    def _form(self) -> Items:
        """How the labels were given."""
        return self._items

    def _check_queries(self, X: Any) -> Any:
        """Vectors of queries, checked."""
        check_is_fitted(self)
        return checked_vectors(partial(validate_data, self, reset=False), X, "X")

    def _check_neighbors(self, graph: Any, X: Any) -> tuple[NeighborGraph, Any]:
        """A graph of queries and their vectors, checked; only the neighbors in use."""
        check_is_fitted(self)
        graph = as_query_graph(graph, self._labels.shape[0])
        if X is not None:
            X = self._check_queries(X)
            check_same_length(graph=len(graph), X=X.shape[0])
        elif needs_vectors(self):
            raise ValueError(f"X is missing: {type(self).__name__} needs the vectors of queries")
        return first_neighbors(graph, self.n_neighbors_), X

    # Files, and scikit-learn.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of arrays and JSON; `nearlabel.load` reads it.

        The file is complete or it is not there: it is written under another name first.

        Parameters
        ----------
        path : path of the file
        """
        with self._settled() as state:
            save_tree(path, model_tree(state), vars(state).get("_journal"))

    def _tree(self) -> dict[str, Any]:
        with self._settled() as state:
            return model_tree(state)

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], version: int) -> Self:
        model: Self = model_from(cls, tree, version)
        return model

    def __getstate__(self) -> dict[str, Any]:
        # An answer at the same time may note what it has computed.
        state: dict[str, Any] = super().__getstate__().copy()
        state.pop("_journal", None)  # there is one writer
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise  # distances
        return tags
