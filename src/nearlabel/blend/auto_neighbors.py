"""Neighbors for those who do not want to choose."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Self

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.blend.blended_neighbors import BlendedNeighbors
from nearlabel.blend.time_budget import planned
from nearlabel.common.arrays import LabelsLike, Matrix, MatrixLike, Seed
from nearlabel.common.progress import Progress
from nearlabel.common.validation import (
    SMALLEST,
    check_choice,
    check_labels,
    check_real,
    check_same_length,
    checked_vectors,
)
from nearlabel.features.scales import SCALES, best_scale, scale_scores, scaler
from nearlabel.methods.answers import as_one_row
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.forwarding import ForwardedAnswers, forwarded
from nearlabel.methods.pipeline import make_pipeline
from nearlabel.persistence.models import save


class AutoNeighbors(ForwardedAnswers, ClassifierMixin, BaseEstimator):
    """The best that nearlabel has, with everything chosen on the training rows.

    The scale of the features is the one whose neighbors agree best about the labels, by
    leave-one-out. On the scaled features a `BlendedNeighbors` learns a distance from the labels,
    reads the neighbors by several methods, and weighs what they say.

    Parameters
    ----------
    objective : {"micro_f1", "macro_f1", "hamming", "cardinality"}, default="micro_f1"
        What `predict` is good for: see `BlendedNeighbors`.
    scale : {"auto", "none", "minmax", "standard", "rank", "tfidf"}, default="auto"
        How features are scaled. "auto" chooses by leave-one-out: among the first four for dense
        features, and between none and tf-idf for sparse ones.
    time_budget : float, optional
        Seconds that `fit` may take, about. Where the whole blend would take longer, by two trials
        on samples of the rows, parts of it are left out. The result then depends on the machine.
    search : default="auto"
        How neighbors are searched: see `neighbor_graph`.
    random_state : int, RandomState or None, default=0
        Seed of the rows that choices are made by where there are many.
    n_jobs : int, optional
        Threads; -1 for all cores. The result is the same.

    Attributes
    ----------
    pipeline_ : Pipeline
        What was fitted: the scaler, if any, and the blend. It has all that a fitted method has,
        such as `partial_fit`; `save` writes it, and `nearlabel.load` gives it back.
    scale_ : str
        The scale in use.
    scale_scores_ : dict
        Average precision by leave-one-out of ten neighbors for each scale that was compared.
    plan_ : str
        What was left out for the time budget, and why; empty if nothing was.
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    See Also
    --------
    BlendedNeighbors : The same on features as they are, with a choice of readings.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(300, 5, 6, labels_per_sample=2)
    >>> model = nl.AutoNeighbors().fit(data.X[:200], data.Y[:200])
    >>> model.scale_ in ("none", "minmax", "standard", "rank")
    True
    >>> model.rank(data.X[200:202], top=3).labels.shape
    (2, 3)
    """

    def __init__(
        self,
        objective: str = "micro_f1",
        *,
        scale: str = "auto",
        time_budget: float | None = None,
        search: object = "auto",
        random_state: Seed = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.objective = objective
        self.scale = scale
        self.time_budget = time_budget
        self.search = search
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        *,
        label_names: Sequence[object] | None = None,
        ids: Sequence[object] | None = None,
        separator: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Choose, and learn.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
            Numbers; words and texts are turned into such by steps of a pipeline before it.
        y, label_names, ids, separator, progress
            As `MLkNN.fit` takes them.

        Returns
        -------
        self
        """
        start = time.monotonic()
        check_choice(self.scale, "scale", SCALES)
        budget = self.time_budget
        if budget is not None:
            budget = check_real(budget, "time_budget (or None)", low=SMALLEST)
        blend = BlendedNeighbors(
            objective=self.objective,
            search=self.search,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        blend.check_parameters()
        labels = check_labels(y, label_names, separator)
        X = checked_vectors(partial(validate_data, self), X, "X")
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        self.scale_scores_ = scale_scores(X, labels.matrix) if self.scale == "auto" else {}
        self.scale_ = best_scale(self.scale_scores_) if self.scale == "auto" else self.scale
        self.plan_, transformer = "", scaler(self.scale_, X)
        if budget is not None:
            scaled = X if transformer is None else clone(transformer).fit_transform(X)
            left = max(budget - (time.monotonic() - start), 0.0)
            blend, self.plan_ = planned(blend, scaled, labels.matrix, left)
        steps = [blend] if transformer is None else [transformer, blend]
        self.pipeline_ = make_pipeline(*steps)
        self.pipeline_.fit(
            X, y, label_names=label_names, ids=ids, separator=separator, progress=progress
        )
        self.classes_, self.label_names_ = blend.classes_, blend.label_names_
        return self

    @property
    def blend_(self) -> BlendedNeighbors:
        """The fitted blend, the last step of the pipeline."""
        check_is_fitted(self)
        blend: BlendedNeighbors = self.pipeline_[-1]
        return blend

    def summary(self) -> str:
        """What was chosen, and why, in a few lines."""
        blend = self.blend_
        lines = [f"scale: {self.scale_}"]
        if self.scale_scores_:
            scores = ", ".join(f"{name} {value:.3f}" for name, value in self.scale_scores_.items())
            lines[0] += f" (average precision by leave-one-out: {scores})"
        lines += [self.plan_] if self.plan_ else []
        return "\n".join([*lines, blend.summary()])

    score = forwarded(NeighborClassifier.score)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted pipeline to a file, which `nearlabel.load` reads."""
        save(self, path)

    def _delegate(self) -> NeighborClassifier:
        model: NeighborClassifier = vars(self).get("pipeline_", BlendedNeighbors())
        return model

    def _forwarded_items(self, X: MatrixLike) -> Matrix:
        """Checked items."""
        check_is_fitted(self)
        return checked_vectors(partial(validate_data, self, reset=False), X, "X")

    def _forwarded_item(self, x: MatrixLike) -> Matrix:
        """A checked item, or several."""
        return self._forwarded_items(as_one_row(x))

    def __sklearn_tags__(self) -> Tags:
        return BlendedNeighbors().__sklearn_tags__()
