"""Labels in the form in which the user gave them: shared by all fitted models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.arrays import Csr
from nearlabel.common.tag_lists import TagForm, holds_texts
from nearlabel.common.validation import known_tags, label_matrix


class LabelForm(Protocol):
    """The form of the labels given to `fit`."""

    @property
    def n_labels(self) -> int:
        """The number of labels."""

    @property
    def sparse_output(self) -> bool:
        """Whether they were a sparse matrix; predictions are then sparse, too."""

    @property
    def tags(self) -> TagForm | None:
        """The form of tags; predictions then have the same form."""


class LabelForms:
    """The part of a fitted model that reads labels in any form."""

    keeps_items: ClassVar[bool]
    """Whether a model knows neighbors, and keeps the training items to find them among."""
    classes_: Any
    label_names_: Any
    _form: Any  # a LabelForm

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Predict the labels of each row, in the form of the y given to fit."""

    def label_matrix(self, y: Any) -> Csr:
        """Labels in any form that `fit` accepts, as the 0/1 matrix of this model's labels.

        Parameters
        ----------
        y : labels of n rows
            A matrix, tags, or classes, as given to `fit` or as returned by `predict`. A warning
            lists tags that the model does not know.

        Returns
        -------
        csr_array of int8, shape (n, q)
            One column for each of `label_names_`.
        """
        check_is_fitted(self)
        if isinstance(self.classes_, np.ndarray) and np.ndim(y) == 1:
            y = (np.asarray(y) == self.classes_[1]).reshape(-1, 1)
        matrix = label_matrix(y, "y", self.label_names_, self._separator_of(y))
        q = self._form.n_labels
        if matrix.shape[1] != q:
            raise ValueError(f"y must have {q} columns, one per label; got {matrix.shape[1]}")
        return matrix

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose label set is predicted exactly.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        y : true labels, in the form of the y given to fit
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the share.

        Returns
        -------
        float
        """
        decided, form = self.predict(X), self._form.tags
        if form is not None:  # a tag that the model does not know makes a row wrong
            true, given = (
                known_tags(one, "y", self.label_names_, self._separator_of(one))
                for one in (y, decided)
            )
            if true is not None and given is not None:
                pairs = zip(true.rows, given.rows, strict=True)
                is_right = [set(mine) == set(theirs) for mine, theirs in pairs]
                return float(np.average(is_right, weights=sample_weight))
            decided = self.label_matrix(decided)
        y = self.label_matrix(y) if hasattr(y, "columns") else y
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, decided, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags

    def _separator_of(self, y: Any) -> str | None:
        """The separator of the tags of y, if it has strings like the y given to fit."""
        form = self._form.tags
        return form.separator if form is not None and holds_texts(y) else None
