"""A search for the best parameters that reads one graph for all of them."""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.common.arrays import LabelsLike, Matrix, MatrixLike, Tree
from nearlabel.common.validation import (
    Labels,
    canonical_vectors,
    check_dense_size,
    check_labels,
    check_same_length,
    refuse_arguments,
)
from nearlabel.experiments.candidates import Trial, best_place, try_candidates
from nearlabel.experiments.folds import NeighborSearch
from nearlabel.experiments.protocols import Part
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.forwarding import ForwardedAnswers, if_delegate_has
from nearlabel.metrics import METRICS, Scorer, scorer
from nearlabel.search import Progress


class GraphSearchCV(ForwardedAnswers, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Exhaustive search over parameters of a method, and over methods, on one neighbor graph.

    In the interface of scikit-learn's ``GridSearchCV``. The neighbors are searched once for each
    `metric` in the grid, as many as the greatest `n_neighbors` asks for, and every candidate and
    every fold reads that graph.

    Parameters
    ----------
    estimator : neighbor method of nearlabel
        Scaling goes before: ``make_pipeline(MinMaxScaler(), GraphSearchCV(MLkNN(), …))``.
    param_grid : dict of str to sequence, or list of such dicts
        Values to try for each parameter. The key "estimator" holds methods to try in place of
        `estimator`.
    scoring : str, Scorer, or list or dict of these, default="ranking_loss"
        Names of metrics, see `nearlabel.metrics.METRICS`; ``metrics.scorer(name, convention=…)``
        for another convention than "paper". Losses are negated: greater is better.
    cv : "loo", int, splitter or iterable of (train, test), default="loo"
        "loo": each row is scored from its own neighbors without itself, with its own entry taken
        out of the method's tables; its place among the neighbors of other rows stays, so that it
        flatters where more than a quarter of all rows are neighbors: a warning says so. Else
        held-out rows are hidden from every row: an int is the number of folds, neither shuffled
        nor stratified for several labels, as in scikit-learn. The rows of a fold are taken in the
        order of X, which decides between equal distances.
    refit : bool, str or callable, default=True
        Whether the best candidate learns from all rows, from the same graph. With several metrics:
        the name of the one that decides, or a function of `cv_results_` that gives a place in it.

    Attributes
    ----------
    cv_results_ : dict of arrays, one value per candidate
        As in scikit-learn, except that means are over the folds on which a metric is defined.
    best_index_, best_params_, best_score_
        Of the best candidate. Of candidates with one score the one with the smallest `n_neighbors`
        is taken, then the first in the grid.
    best_estimator_ : estimator
        Fitted to all rows.
    scorer_, multimetric_, n_splits_, refit_time_, classes_, n_features_in_
        As in scikit-learn.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(300, 5, 6, random_state=0)
    >>> search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": range(1, 31)}).fit(data.X, data.Y)
    >>> sorted(search.best_params_)
    ['n_neighbors']
    >>> methods = {"estimator": [nl.MLkNN(), nl.BRkNN()], "n_neighbors": [5, 10]}
    >>> len(nl.GraphSearchCV(nl.MLkNN(), methods).fit(data.X, data.Y).cv_results_["params"])
    4
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        scoring: Any = "ranking_loss",
        cv: Any = "loo",
        refit: Any = True,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.cv = cv
        self.refit = refit

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        *,
        label_names: Iterable[str] | None = None,
        ids: npt.ArrayLike | None = None,
        separator: str | None = None,
        progress: Progress | None = None,
        **unknown: object,
    ) -> Self:
        """Search the neighbors once, try every candidate, and fit the best.

        Parameters
        ----------
        X, y, label_names, ids, separator
            As in `MLkNN.fit`.
        progress : callable, optional
            Called with (steps done, steps in all): a step is a row that was searched, or that a
            candidate has answered for.

        Returns
        -------
        self
        """
        refuse_arguments("fit", unknown)
        scorers = _scorers(self.scoring)
        self._check_refit(scorers)
        grid = list(ParameterGrid(self.param_grid))
        models = [self._model(parameters) for parameters in grid]
        search = copy(self)  # so that a search that fails or is interrupted changes nothing
        for name in [name for name in vars(search) if name.endswith("_")]:
            delattr(search, name)
        labels = check_labels(y, label_names, separator)
        given, X = X, canonical_vectors(validate_data(search, X, accept_sparse="csr"))
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        parts = self._parts(X, labels)
        trial = try_candidates(X, labels.matrix, parts, models, scorers, progress=progress)
        search.multimetric_ = not isinstance(self.scoring, str | Scorer)
        search.scorer_ = scorers if search.multimetric_ else scorers["score"]
        search.n_splits_ = len(parts)
        search.cv_results_ = _results(grid, trial)
        place = self._best_place(search.cv_results_, models)
        if place is not None:
            search.best_index_, search.best_params_ = place, grid[place]
            if not callable(self.refit):
                decisive = self.refit if isinstance(self.refit, str) else "score"
                search.best_score_ = float(search.cv_results_[f"mean_test_{decisive}"][place])
        if place is not None and self.refit is not False:
            start = time.perf_counter()
            graph, best = trial.graphs.get(NeighborSearch.of(models[place])), clone(models[place])
            names = {"label_names": label_names, "ids": ids, "separator": separator}
            if graph is None:
                search.best_estimator_ = best.fit(given, y, **names)
            else:
                search.best_estimator_ = best.fit_graph(graph, y, given, **names)
            search.refit_time_ = time.perf_counter() - start
            search.classes_ = search.best_estimator_.classes_
        self.__dict__ = search.__dict__
        return self

    def _model(self, parameters: Tree) -> NeighborClassifier:
        """The unfitted model of a point of the grid."""
        own = dict(parameters)
        model = own.pop("estimator", self.estimator)
        if not isinstance(model, NeighborClassifier):
            raise TypeError(
                "estimator must be a neighbor method of nearlabel (scaling goes first: "
                f"make_pipeline(scaler, GraphSearchCV(MLkNN(), …))); got {model!r}"
            )
        if "search" in model.get_params(deep=False):
            own.setdefault("search", model.search)  # the same object: a clone would have a copy
        chosen: NeighborClassifier = clone(model).set_params(**own)
        chosen.check_parameters()
        return chosen

    def _parts(self, X: Matrix, labels: Labels) -> list[Part]:
        n = X.shape[0]
        if isinstance(self.cv, str):
            if self.cv != "loo":
                raise ValueError(
                    "cv must be 'loo', a number of folds, a splitter or an iterable of "
                    f"(train, test); got {self.cv!r}"
                )
            return [Part(np.arange(n), np.arange(n), left_out=True)]
        target = None  # plain folds of several labels look at no y, as in scikit-learn
        if isinstance(labels.classes, np.ndarray):
            target = labels.matrix.toarray().ravel()
        elif self.cv is not None and not isinstance(self.cv, numbers.Integral):
            check_dense_size("the labels, for a splitter", labels.matrix.shape, 1, "cv='loo'")
            target = labels.matrix.toarray()
        splitter = check_cv(self.cv, target, classifier=target is not None)
        parts = [_as_part(train, test, n) for train, test in splitter.split(X, target)]
        if not parts:
            raise ValueError("cv holds no folds (a generator is empty at its second use)")
        return parts

    def _check_refit(self, scorers: Mapping[str, Scorer]) -> None:
        single = isinstance(self.scoring, str | Scorer)
        if self.refit is False or callable(self.refit) or (self.refit is True and single):
            return
        if self.refit is True or self.refit not in scorers:
            raise ValueError(
                f"refit must be {'True, ' if single else ''}False, a callable or the name of the "
                f"metric that decides: {', '.join(map(repr, scorers))}; got {self.refit!r}"
            )

    def _best_place(self, results: Tree, models: Sequence[NeighborClassifier]) -> int | None:
        """The candidate for which a metric or a callable decides, if one does."""
        if callable(self.refit):
            place = self.refit(results)
            if not (isinstance(place, int | np.integer) and 0 <= place < len(models)):
                raise ValueError(
                    f"refit must give a place in cv_results_, 0 to {len(models) - 1}; "
                    f"it gave {place!r}"
                )
            return int(place)
        means = results.get(f"mean_test_{self.refit if isinstance(self.refit, str) else 'score'}")
        if means is None:
            return None
        if np.isnan(means).all():
            warnings.warn(
                "scoring: the metric is not defined on any row of this data (ranking metrics "
                "need rows with some of the labels, not all); every candidate counts the same",
                UserWarning,
                stacklevel=3,
            )
        return best_place(means, models)

    def _delegate(self) -> NeighborClassifier:
        if self.refit is False:
            raise AttributeError("refit=False: there is no best_estimator_ to ask")
        best: NeighborClassifier = vars(self).get("best_estimator_", self.estimator)
        return best

    @if_delegate_has("score")
    def score(self, X: MatrixLike, y: LabelsLike) -> float:
        """Score the best estimator on X and the true labels y, by the metric that chose it."""
        check_is_fitted(self)
        chosen = self.scorer_
        if isinstance(chosen, Mapping):
            if not isinstance(self.refit, str):
                raise ValueError("score: refit must name one of the metrics of scoring")
            chosen = chosen[self.refit]
        return float(chosen(self._delegate(), X, y))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags.pairwise = own.input_tags.pairwise
        tags.input_tags.sparse = own.input_tags.sparse
        tags.target_tags = own.target_tags
        tags.classifier_tags = own.classifier_tags
        return tags


def _scorers(scoring: object) -> dict[str, Scorer]:
    """Scorers by name; "score" names a single one, as in scikit-learn."""
    if isinstance(scoring, Mapping):
        named = {str(name): each for name, each in scoring.items()}
    elif isinstance(scoring, list | tuple | set):
        named = {each.metric if isinstance(each, Scorer) else each: each for each in scoring}
        if len(named) != len(scoring):
            raise ValueError(f"scoring holds a metric twice; name them in a dict: {scoring!r}")
    else:
        named = {"score": scoring}
    if not named:
        raise ValueError("scoring holds no metric")
    for name, each in named.items():
        if isinstance(each, str) and each in METRICS:
            named[name] = scorer(each)
        elif not isinstance(each, Scorer):
            raise ValueError(
                f"scoring must name metrics of nearlabel ({', '.join(METRICS)}), or be "
                f"nearlabel.metrics.scorer(…), or a list or a dict of these; got {each!r}"
            )
    return named


def _as_part(train: npt.ArrayLike, test: npt.ArrayLike, n: int) -> Part:
    """A fold of a splitter, as row numbers in the order of X; no row is on both sides."""
    try:
        rows = [np.arange(n)[np.asarray(side)] for side in (train, test)]
    except IndexError as error:
        raise ValueError(
            f"cv must hold rows of X, 0 to {n - 1}, or masks of them: {error}"
        ) from None
    if any(len(np.unique(side)) < len(side) for side in rows):
        raise ValueError("cv holds a row twice on one side")
    if np.intersect1d(rows[0], rows[1]).size:
        raise ValueError("cv holds a row in both the training and the test rows of a fold")
    if len(rows[0]) < 2 or not len(rows[1]):
        raise ValueError(
            f"cv must leave two training rows and a test row; got {len(rows[0])} and {len(rows[1])}"
        )
    return Part(np.unique(rows[0]), np.unique(rows[1]))


def _results(grid: list[Tree], trial: Trial) -> Tree:
    """What scikit-learn calls `cv_results_`."""
    results: Tree = {}
    for name, seconds in (("fit", trial.fit_seconds), ("score", trial.score_seconds)):
        results[f"mean_{name}_time"], results[f"std_{name}_time"] = seconds.mean(1), seconds.std(1)
    for name in dict.fromkeys(name for parameters in grid for name in parameters):
        column = np.ma.array(np.empty(len(grid), object), mask=True)
        for place, parameters in enumerate(grid):
            if name in parameters:
                column[place] = parameters[name]
        results[f"param_{name}"] = column
    results["params"] = grid
    for name, scores in trial.scores.items():
        for place, of_part in enumerate(scores.T):
            results[f"split{place}_test_{name}"] = of_part
        defined = trial.defined(name)
        mean = defined.mean(axis=1)
        results[f"mean_test_{name}"], results[f"std_test_{name}"] = mean, defined.std(axis=1)
        worst = np.where(np.isnan(mean), -np.inf, mean)
        results[f"rank_test_{name}"] = rankdata(-worst, method="min").astype(np.int32)
    return results
