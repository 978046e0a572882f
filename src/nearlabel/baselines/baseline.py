"""The base of the baselines: scikit-learn's contract once, around the hooks of a method.

Baselines learn from vectors and labels, without neighbors. Their answers have the forms of the
neighbor methods: `label_scores`, `rank`, `predict`, `predict_proba` and model files.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.common.arrays import (
    Booleans,
    Csr,
    Floats,
    LabelsLike,
    Matrix,
    MatrixLike,
    Tree,
    canonical_csr,
)
from nearlabel.common.files import write_tree
from nearlabel.common.mapped_arrays import checked_tree
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress
from nearlabel.common.validation import (
    ArgumentError,
    check_dense_size,
    check_integer,
    check_labels,
    check_same_length,
    checked_vectors,
    refuse_arguments,
)
from nearlabel.common.versions import package_versions
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import DenseScores, LabelScores
from nearlabel.methods.label_forms import LabelForm, LabelForms, beside_half
from nearlabel.methods.model_trees import (
    custom_class,
    form_tree,
    parameter_tree,
    read_features,
    read_form,
    unfitted_from,
)


@dataclass(repr=False, eq=False)
class Baseline(LabelForms, ClassifierMixin, BaseEstimator, ABC):
    """A method that learns labels from vectors, without neighbors.

    A method declares its parameters as dataclass fields, and writes the hooks.
    """

    keeps_items = False
    takes_missing: ClassVar[bool] = False
    """Whether vectors may have missing values, which are NaN."""

    # The hooks: what the author of a method writes.

    def _check_parameters(self) -> None:
        """Refuse parameters that `settings` does not check."""

    @abstractmethod
    def _learn(self, X: Matrix, Y: Csr, progress: Progress | None) -> None:
        """Learn from vectors, an array or ``csr_array``, and labels: set what `stored` declares."""

    def _prepare(self) -> None:
        """Compute what follows from what was learned: after `_learn`, and when a file was read."""

    @abstractmethod
    def _scores(self, X: Matrix) -> Floats:
        """What labels are ranked by, shape (m, q), finite, for m rows of vectors."""

    def _decide(self, scores: Floats) -> Booleans:
        """The labels of rows by their scores, an array of bool; by default those above 1/2."""
        return scores > 0.5

    def _probabilities(self, scores: Floats) -> Floats:
        """Probabilities of scores; by default the scores themselves."""
        return scores

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, as `fit` does, without any data."""
        self._checked_settings()

    def _checked_settings(self) -> Tree:
        self._check_parameters()
        return {field.attribute: field.check(getattr(self, field.key)) for field in self.settings}

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        *,
        label_names: Sequence[object] | None = None,
        separator: str | None = None,
        progress: Progress | None = None,
        **unknown: object,
    ) -> Self:
        """Learn from training rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        y, label_names, separator
            Labels and their names, as in `MLkNN.fit`.
        progress : callable, optional
            Called with (steps done, steps in all).

        Returns
        -------
        self
        """
        refuse_arguments("fit", unknown)
        settings = self._checked_settings()
        labels = check_labels(y, label_names, separator)
        model = copy(self)  # a fit that fails or is interrupted leaves this model as it was
        X = model._checked(X, reset=True)
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        if X.shape[0] < 2:
            raise ValueError("X has 1 sample; learning needs at least 2")
        model._form = LabelForm(labels.sparse, labels.tags)
        model.classes_, model.label_names_ = labels.classes, labels.names
        model.__dict__.update(settings)
        model._learn(X, labels.matrix, progress)
        model._prepare()
        self.__dict__ = model.__dict__
        return self

    def label_scores(self, X: MatrixLike, *, progress: Progress | None = None) -> LabelScores:
        """Score every label for each row: what the method ranks by.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        LabelScores
            Of shape (n, q).
        """
        return DenseScores(self._all_scores(X, progress), self.label_names_)

    def rank(
        self, X: MatrixLike, top: int = 10, *, progress: Progress | None = None
    ) -> RankedLabels:
        """Rank the labels of each row; the arguments and the result are those of `MLkNN.rank`."""
        top = check_integer(top, "top", low=1)
        return self.label_scores(X, progress=progress).rank(top)

    def predict(self, X: MatrixLike, *, progress: Progress | None = None) -> Any:
        """Decide the labels of each row, in the form of the y given to fit: see `MLkNN.predict`."""
        return self._in_form_of_y(self._decided_sets(self._all_scores(X, progress)))

    def predict_proba(self, X: MatrixLike, *, progress: Progress | None = None) -> Floats:
        """Probability of each label for each row: see `MLkNN.predict_proba`."""
        scores = self._all_scores(X, progress)
        chances = beside_half(self._probabilities(scores), self._decide(scores))
        return self._in_columns_of_classes(chances)

    def _decided_sets(self, scores: Floats) -> Csr:
        """Label sets by scores of shape (n, q), as a 0/1 matrix."""
        return canonical_csr(sparse.csr_array(self._decide(scores).astype(np.int64)))

    def _all_scores(self, X: MatrixLike, progress: Progress | None) -> Floats:
        """Scores of all rows, computed in runs of rows."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        n, q = X.shape[0], self._n_labels
        check_dense_size("the scores of all labels", (n, q), 8, "fewer rows")
        scores, step = np.empty((n, q)), max(1, 2**22 // q)
        for start in range(0, n, step):
            scores[start : start + step] = self._scores(X[start : start + step])
            if progress is not None:
                progress(min(start + step, n), n)
        return scores

    def _checked(self, X: MatrixLike, *, reset: bool) -> Matrix:
        """Vectors as an array or a ``csr_array`` of floats."""
        finite = "allow-nan" if self.takes_missing else True
        check = partial(
            validate_data, self, reset=reset, ensure_all_finite=finite, dtype=np.float64
        )
        return checked_vectors(check, X, "X")

    def _label_number(self, label: int | str) -> int:
        """The column of a label that is given by its name or by its column."""
        names = [] if self.label_names_ is None else self.label_names_.tolist()
        if label in names:
            return names.index(label)
        if names and isinstance(label, str):
            message = f"label must be a name or a column of a label; got {label!r}"
            raise ArgumentError(message, "label")
        return check_integer(label, "label", low=0, high=self._n_labels - 1)

    def _shown_features(self) -> list[str]:
        """Names of all features for a line of text, x0 and so on where they have none."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{column}" for column in range(self.n_features_in_)]
        return [one_line(str(name)) for name in names]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of arrays and JSON; `nearlabel.load` reads it."""
        write_tree(path, self._tree())

    def _tree(self) -> Tree:
        check_is_fitted(self)
        if not type(self).__module__.startswith("nearlabel."):
            raise custom_class(self)
        learned: Tree = {}
        for field in (*self.settings, *self.stored):
            field.write(self, learned)
        return {
            "class": type(self).__name__,
            "versions": package_versions(),
            "parameters": parameter_tree(self),
            "labels": self._n_labels,
            "features": self.n_features_in_,
            **form_tree(self),
            "learned": learned,
        }

    @classmethod
    def _from_tree(cls, tree: Tree, _: int) -> Self:
        tree = checked_tree(tree)
        model: Self = unfitted_from(cls, tree["parameters"])
        learned = tree["learned"]
        # A small file cannot name many labels.
        largest = max((part.size for part in learned.values() if hasattr(part, "size")), default=0)
        q = check_integer(tree["labels"], "labels", low=1, high=max(1, largest))
        d = check_integer(tree["features"], "features", low=1, high=2**31)
        read_form(model, tree, q)
        read_features(model, tree, d)
        sizes = {"q": q, "d": d}  # and others, by the first array that has them
        for field in (*cls.settings, *cls.stored):
            field.read(model, learned, sizes)
        model._prepare()
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_form")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.takes_missing
        return tags
