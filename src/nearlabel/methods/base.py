"""The base of all methods: scikit-learn's contract once, around the hooks of a method.

The hooks are in `fitted_model.py`: what a method says that it needs, what it learns from the
neighbors of the training rows, and how it scores labels from the neighbors of queries. Here it
becomes an estimator, with the answers of `answers.py` and the changes of `living_model.py`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from nearlabel.common.arrays import Array, Csr, LabelsLike, Matrix, MatrixLike, Tree
from nearlabel.common.journal import save_tree
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import (
    Labels,
    check_labels,
    check_n_jobs,
    check_same_length,
    checked_vectors,
    refuse_arguments,
)
from nearlabel.graph import NeighborGraph, as_self_graph
from nearlabel.methods.answers import ROWS_A_SEARCH, AnsweringModel, first_neighbors
from nearlabel.methods.fitted_model import (
    FittedModel,
    History,
    Training,
    keeps_neighbors,
    next_state,
    uses_vectors,
)
from nearlabel.methods.items import Items
from nearlabel.methods.label_forms import LabelForm
from nearlabel.methods.living_model import LivingModel
from nearlabel.methods.model_trees import model_from, model_tree, unfitted_from
from nearlabel.search import Metric, VectorStore, check_metric, check_search


class TrainingRows:
    """Training rows, and a way to find their neighbors: a search in this process, or a graph.

    `nearlabel.distributed` finds them on a cluster.

    Parameters
    ----------
    X : vectors, or None if only the graph is given
    graph : NeighborGraph, optional
        Neighbors that were found before.
    """

    def __init__(self, X: MatrixLike | None, graph: NeighborGraph | None = None) -> None:
        self._X, self._graph = X, graph
        self.searches = graph is None  # which takes most of the time
        self.are_kept = graph is None  # neighbors, which changes update

    def vectors(self, model: FittedModel, n: int) -> Matrix:
        """The vectors of n training rows, checked, or None; the model notes their features."""
        if self._graph is not None:
            check_same_length(graph=len(self._graph), y=n)
            if self._X is None:
                if uses_vectors(model):
                    raise ValueError(
                        f"X is missing: {type(model).__name__} needs the vectors, not only a graph"
                    )
                for name in ("n_features_in_", "feature_names_in_"):
                    vars(model).pop(name, None)
                return None
        X = checked_vectors(partial(validate_data, model), self._X, "X")
        check_same_length(X=X.shape[0], y=n)
        if self._graph is not None:  # what a search would refuse is refused now
            check_metric(model.metric)
            check_search(model.search)
        return X

    def neighbors(
        self,
        model: FittedModel,
        rows: Array | None,
        *,
        and_spare: bool,
        n_jobs: int,
        searching: Progress | None,
        learning: Progress | None,
    ) -> tuple[NeighborGraph, Any]:
        """The neighbors of some training rows of a model, of all if None, maybe more than k.

        And what the method's `by_blocks` has counted in their place, if anything.
        """
        k = model.n_neighbors_
        if self._graph is None:
            graph = model.items_.left_out_neighbors(
                rows, k, and_spare=and_spare, n_jobs=n_jobs, progress=searching
            )
            return graph, None
        graph = first_neighbors(self._graph, min(k, len(model.items_) - 1))
        return graph if rows is None else graph.take(rows), None


@dataclass(repr=False, eq=False)
class NeighborClassifier(AnsweringModel, LivingModel, ClassifierMixin, BaseEstimator):
    """A method that reads labels off a neighbor graph. Its fields are the parameters of all."""

    n_neighbors: int | None = 10
    _: KW_ONLY
    metric: Metric = "euclidean"
    search: Any = "auto"
    n_jobs: int | None = None

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        *,
        label_names: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
        separator: str | None = None,
        progress: Progress | None = None,
        **unknown: object,
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
        return self._fit(TrainingRows(X), labels, ids, progress)

    def fit_graph(
        self,
        graph: NeighborGraph | Csr,
        y: LabelsLike,
        X: MatrixLike | None = None,
        *,
        label_names: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
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
        return self._fit(TrainingRows(X, as_self_graph(graph)), labels, ids, progress)

    def _fit_rows(
        self, X: MatrixLike, labels: Labels, ids: object, progress: Progress | None
    ) -> Self:
        return self._fit(TrainingRows(X), labels, ids, progress)

    def _fit(
        self, source: TrainingRows, labels: Labels, ids: object, progress: Progress | None
    ) -> Self:
        """Learn on a copy and become it when all went well.

        A fit that fails or is interrupted leaves this model as it was.
        """
        model, Y = next_state(self), labels.matrix
        settings, n_jobs = self._checked_settings(), check_n_jobs(self.n_jobs)
        if self._journal is not None:
            self._journal.refuse_closed()
        n = Y.shape[0]
        X = source.vectors(model, n)
        k = usable_neighbors(self, n)
        store = None if X is None else VectorStore(X, ids)
        asked = None if self.n_neighbors is None else int(self.n_neighbors)
        model.items_ = Items(Y, self.metric, self.search, store, asked=asked)
        model.n_neighbors_, model.history_ = k, History()
        model.__dict__.pop("_is_outdated", None)
        model.classes_, model.label_names_ = labels.classes, labels.names
        model.__dict__.update(settings, _form=LabelForm(labels.sparse, labels.tags))
        rows = model._rows_to_learn_from(Y, X)
        is_kept = rows is None and source.are_kept and keeps_neighbors(model)
        searching = learning = None
        if progress is not None:
            searched, learned = 0, n
            if source.searches:
                searched = n if rows is None else len(rows)
                learned = 1 + searched // ROWS_A_SEARCH
            stages = Stages(progress, searched + learned)
            searching, learning = stages.next(searched), stages.next(learned)
        graph, counted = source.neighbors(
            model,
            rows,
            and_spare=is_kept,
            n_jobs=n_jobs,
            searching=searching,
            learning=learning,
        )
        model.search_recall_ = graph.recall
        near = graph.head(k) if graph.k > k else graph
        model._learn_from(Training(near, Y, X, rows, n_jobs, learning, counted))
        model.items_.graph = graph if is_kept else None
        if learning is not None:
            learning(1, 1)
        if self._journal is not None:
            model._fold_journal()
        self.__dict__ = model.__dict__
        return self

    def _with_known(self, X: Matrix, known: dict[Hashable, Any]) -> NeighborClassifier:
        """The model, or one that learns the same from X with what an earlier one has found out.

        What others can use, whatever their numbers of neighbors, is kept in `known`.
        """
        return self

    # Files.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of arrays and JSON; `nearlabel.load` reads it.

        The file is complete or it is not there: it is written under another name first.

        Parameters
        ----------
        path : path of the file
        """
        with self._settled() as state:
            save_tree(path, model_tree(state), self._journal)

    def _tree(self) -> Tree:
        with self._settled() as state:
            return model_tree(state)

    @classmethod
    def _from_tree(cls, tree: Tree, version: int) -> Self:
        model: Self = model_from(unfitted_from(cls, tree["parameters"]), tree, version)
        return model

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = super().__getstate__().copy()  # others may cache something
        state.pop("_journal", None)  # there is one writer
        return state


def usable_neighbors(model: NeighborClassifier, n: int) -> int:
    """The neighbors of a query among n training rows: `n_neighbors`, at most n - 1."""
    if n < 2:
        raise ValueError("X has 1 sample; neighbors among the training rows need at least 2")
    k = model.n_neighbors
    if k is None:
        return n
    if k > n - 1 and model.needs.graph:
        warnings.warn(
            f"n_neighbors={k} is more than the number of other training rows; using {n - 1}",
            UserWarning,
            stacklevel=4,
        )
    return min(int(k), n - 1)
