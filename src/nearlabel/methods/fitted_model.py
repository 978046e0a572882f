"""A fitted model: what its author writes, what it learned from, and how it is changed unseen.

`AnsweringModel`, `LivingModel` and the functions of this package are written for `FittedModel`;
`NeighborClassifier` in `base.py` adds scikit-learn's interface.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, cast

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_integer, check_n_jobs
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.labels.block_counts import BlockCounts
from nearlabel.labels.scores import LabelScores, labels_from
from nearlabel.methods.items import Items
from nearlabel.methods.label_forms import LabelForms
from nearlabel.methods.learned_counts import LearnedCounts, RowChange
from nearlabel.search import Metric, is_plugged, is_precomputed

# What `_rows_to_learn_from` says of a method that learns nothing from neighbors.
NO_ROWS = np.empty(0, np.int64)
_Model = TypeVar("_Model", bound="FittedModel")
_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Needs:
    """What a method needs.

    Attributes
    ----------
    vectors : bool or str
        The vectors, not only the graph; or the name of the parameter that decides this.
    graph : bool
        The neighbors of queries. A method without them searches by itself.
    dense_scores : bool
        Room for a score of every label in every row: it has no default scores.
    counts : bool
        How often labels occur among the neighbors of training rows. Leave-one-out does not remove a
        row from the counts of the others, and so is optimistic if most rows are neighbors.
    all_rows : bool
        All training rows as neighbors, if ``n_neighbors=None``.
    """

    vectors: bool | str = False
    graph: bool = True
    dense_scores: bool = False
    counts: bool = False
    all_rows: bool = False


class Training(NamedTuple):
    """The data that a method learns from.

    Attributes
    ----------
    graph : NeighborGraph
        The k neighbors of the training rows `rows`, each left out of its own.
    Y : csr_array, shape (n, q)
        The labels of all training rows.
    X : vectors of all training rows, or None if the model is fitted from a graph alone
    chosen : ndarray of int, or None for all
        The training rows that the method asked for.
    n_jobs : int
        Threads.
    progress : callable or None
        Called with (steps done, total steps) if learning takes long.
    counted : object or None
        What a method's `by_blocks` has counted, in place of the neighbors of all rows: the graph
        then has none of them.
    """

    graph: NeighborGraph
    Y: Csr
    X: Matrix
    chosen: Array | None
    n_jobs: int
    progress: Progress | None
    counted: Any = None

    @property
    def rows(self) -> Array:
        """The training rows whose neighbors are in the graph."""
        return np.arange(self.Y.shape[0]) if self.chosen is None else self.chosen


@dataclass(frozen=True)
class History:
    """How many rows were added, forgotten and relabelled since a model was fitted."""

    added: int = 0
    forgotten: int = 0
    relabelled: int = 0


class FittedModel(LabelForms, ABC):
    """A method with the training items that it has learned from."""

    keeps_items = True
    needs: ClassVar[Needs] = Needs()
    """What the method asks for."""
    by_blocks: ClassVar[type[BlockCounts] | None] = None
    """What `_learn` counts on all training rows, where blocks of them can be counted apart."""
    kept_by_changes: ClassVar[str] = ""
    """What a fit learns that changes keep as it is, for people."""

    n_neighbors: int | None
    metric: Metric
    search: object
    n_jobs: int | None

    n_neighbors_: int
    n_features_in_: int
    feature_names_in_: Array
    search_recall_: Recall | None
    history_: History
    items_: Items
    _is_outdated: bool = False  # whether it learns again before it answers

    # The hooks: what the author of a method writes.

    def _check_parameters(self) -> None:
        """Refuse parameters of the method's own that `settings` does not check."""

    def _rows_to_learn_from(self, Y: Csr, X: Matrix) -> Array | None:
        """The training rows whose neighbors `_learn` wants to see; None for all.

        Called before anything is searched, so that a method can refuse data it has no room for. Y
        has the labels and X the vectors, or None, of all training rows. By default none where a
        method learns nothing.
        """
        return NO_ROWS if type(self)._learn is FittedModel._learn else None

    def _learn(self, seen: Training) -> None:
        """Learn from the neighbors of training rows: set what `stored` declares, no more."""

    def _learn_on(self, seen: Training) -> None:
        """Learn again from training rows that have changed, and keep what `refresh` is for."""
        self._learn(seen)

    def _follow(self, change: RowChange) -> bool:
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
    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        """Score the labels of queries from their k neighbors among the training rows.

        Called for runs of rows, by several threads: it must not change the model.
        """

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
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
    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        """The numbers that make the score of a label of one query, in the method's own words.

        `count` is how many of its neighbors carry the label, and is told in any case.
        """

    def _voters(self, X: Matrix) -> tuple[NeighborGraph, NeighborGraph]:
        """The neighbors of queries; and these with the next nearest one, if there is any.

        Only a method that searches by itself has others than those of the graph; it is asked for
        one query at a time.
        """
        items, k, n_jobs = self.items_, self.n_neighbors_, check_n_jobs(self.n_jobs)
        n = len(items)
        if isinstance(X, sparse.csr_array) and is_precomputed(items.metric) and k < n:
            held = np.diff(X.indptr)
            if held.min() <= k:
                raise ValueError(
                    f"explain needs the {k + 1} nearest training rows, one more than n_neighbors; "
                    f"row {held.argmin()} of X has {held.min()}"
                )
        further = items.neighbors(X, min(k + 1, n), n_jobs=n_jobs)
        return further.head(k), further

    def _replace_items(self, items: Items) -> None:
        """Set other training items, from which nothing was learned yet."""
        self.items_ = items

    @abstractmethod
    def _caught_up(self) -> Self:
        """A state that has learned from all rows; learns now if that was deferred."""

    # What follows from the hooks.

    @property
    def _labels(self) -> Csr:
        """The labels of the training rows, shape (n, q)."""
        return self.items_.labels

    @property
    def _totals(self) -> Array:
        """How many training rows carry each label, shape (q,)."""
        return self.items_.totals

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, as `fit` does, without any data."""
        self._checked_settings()
        check_n_jobs(self.n_jobs)

    def _checked_settings(self) -> dict[str, object]:
        """The method's own parameters as a fitted model keeps them, all but `n_jobs` checked."""
        self._check_parameters()
        settings = {
            value.attribute: value.check(getattr(self, value.key)) for value in self.settings
        }
        if not (self.n_neighbors is None and self.needs.all_rows):
            check_integer(self.n_neighbors, "n_neighbors", low=1)
        if self.metric == "precomputed" and uses_vectors(self):
            raise ValueError(
                f"metric='precomputed': {type(self).__name__} needs the vectors themselves, "
                "not only distances"
            )
        return settings

    def _learn_from(self, seen: Training, *, on: bool = False) -> None:
        """Learn from the neighbors of training rows, and prepare.

        `on` says that what only `refresh` learns stays.
        """
        before = set(vars(self))
        (self._learn_on if on else self._learn)(seen)
        declared = {field.attribute for field in self.stored}
        wrong = (vars(self).keys() - before - declared) | (declared - vars(self).keys())
        if wrong:
            raise TypeError(
                f"{type(self).__name__}: _learn must set what stored declares, and nothing else; "
                f"they differ in {', '.join(sorted(wrong))}"
            )
        self._prepare()


# What fitted models have in common that share their items.
OF_ITEMS = {
    *("items_", "n_neighbors_", "n_features_in_", "feature_names_in_", "search_recall_"),
    *("classes_", "label_names_", "history_", "_form"),
}


def uses_vectors(model: FittedModel) -> bool:
    """Whether a model needs vectors, given its parameters."""
    vectors = model.needs.vectors
    return bool(getattr(model, vectors)) if isinstance(vectors, str) else vectors


def follows_changes(model: FittedModel) -> bool:
    """Whether what a model has learned, if anything, is updated after a change of the rows."""
    has_hook = type(model)._follow is not FittedModel._follow
    return has_hook or all(isinstance(field, LearnedCounts) for field in model.stored)


def keeps_neighbors(model: FittedModel) -> bool:
    """Whether the counts of a model follow changes, for which the neighbors of all rows are stored.

    Not with an external search, which may not find spare neighbors.
    """
    search = model.items_.search
    is_outside = not isinstance(search, str) and is_plugged(search)
    return model.needs.counts and follows_changes(model) and not is_outside


def state_of(model: _Model) -> _Model:
    """The current state of a model."""
    state = object.__new__(type(model))
    state.__dict__ = vars(model)
    return state


def of_one_state(
    answer: Callable[Concatenate[_Model, _Parameters], _Answer],
) -> Callable[Concatenate[_Model, _Parameters], _Answer]:
    """Let a method of a model read one state of it from beginning to end.

    A change makes a new state that replaces the old one atomically. So readers neither wait for a
    change nor see a partial one.
    """

    @wraps(answer)
    def answered(self: _Model, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        state = state_of(self)
        if state._is_outdated:
            warnings.warn(
                f"the training rows were changed, so {type(self).__name__} learns again before it "
                "predicts; make several changes at once, or refresh it when there is time: "
                "refresh(), or 'nearlabel forget MODEL --compact'",
                UserWarning,
                stacklevel=2,
            )
            state = self._caught_up()  # not a later state, which may have to learn again, too
        return answer(state, *args, **kwargs)

    return cast(Callable[Concatenate[_Model, _Parameters], _Answer], answered)


def next_state(model: _Model) -> _Model:
    """A copy of a model to be changed, without cached values."""
    state = object.__new__(type(model))
    cached = _cached_names(type(model))
    known = vars(model).copy()  # atomic: a reader may cache something meanwhile
    state.__dict__ = {name: value for name, value in known.items() if name not in cached}
    return state


@lru_cache(maxsize=64)
def _cached_names(kind: type[object]) -> frozenset[str]:
    """Attributes of a class that are computed on first access."""
    return frozenset(
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, cached_property)
    )
