"""Labels and predictions in the form in which the user gave the labels, for all fitted models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.arrays import Array, Booleans, Csr, Floats, LabelsLike, MatrixLike
from nearlabel.common.tag_lists import TagForm, holds_texts
from nearlabel.common.validation import known_tags, label_matrix
from nearlabel.methods.fields import Field, Value

_NEXT = 2.0**-20  # how near to 1/2 a probability is moved that the decision does not follow
# The floats next to 0 and 1: predict_proba stays strictly inside (0, 1).
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - 2.0**-53


class LabelForm(NamedTuple):
    """The form of the labels given to `fit`, which predictions have as well.

    Attributes
    ----------
    is_sparse : bool
        Whether they were a sparse matrix.
    tags : TagForm or None
        The form of the tags, if they were tags.
    """

    is_sparse: bool
    tags: TagForm | None


class LabelForms:
    """What all fitted models share: what a method declares, and the forms of labels."""

    keeps_items: ClassVar[bool]
    """Whether a model knows neighbors, and keeps the training items to find them among."""
    title: ClassVar[str]
    """The method's name in print."""
    settings: ClassVar[tuple[Value, ...]] = ()
    """Its own parameters, which a fitted model keeps as they were: `smoothing` as `_smoothing`."""
    stored: ClassVar[tuple[Field, ...]] = ()
    """What `_learn` learns, as it stands in files; see `nearlabel.methods.fields`."""

    classes_: Any
    """`LabelClasses`, a list of q arrays [0, 1]; or the array of the two classes of a 1-d y."""
    label_names_: Array | None
    _form: LabelForm

    @property
    def _n_labels(self) -> int:
        """The number of labels."""
        return 1 if self._is_one_column else len(self.classes_)

    @property
    def _is_one_column(self) -> bool:
        """Whether y was 1-d: `classes_` has its two classes."""
        return isinstance(self.classes_, np.ndarray)

    @abstractmethod
    def predict(self, X: MatrixLike) -> Any:
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
        if self._is_one_column and np.ndim(y) == 1:
            y = (np.asarray(y) == self.classes_[1]).reshape(-1, 1)
        matrix = label_matrix(y, "y", self.label_names_, self._separator_of(y))
        q = self._n_labels
        if matrix.shape[1] != q:
            raise ValueError(f"y must have {q} columns, one per label; got {matrix.shape[1]}")
        return matrix

    def score(self, X: MatrixLike, y: LabelsLike, sample_weight: Any = None) -> float:
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
                known_tags(labels, "y", self.label_names_, self._separator_of(labels))
                for labels in (y, decided)
            )
            if true is not None and given is not None:
                pairs = zip(true.rows, given.rows, strict=True)
                is_right = np.array([set(mine) == set(theirs) for mine, theirs in pairs], float)
                return float(np.average(is_right, weights=sample_weight))
            decided = self.label_matrix(decided)
        y = self.label_matrix(y) if hasattr(y, "columns") else y
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, decided, sample_weight=sample_weight))

    def _in_form_of_y(self, decided: Csr) -> Any:
        """Label sets of a 0/1 matrix as `predict` gives them."""
        if self._form.tags is not None:
            assert self.label_names_ is not None
            return self._form.tags.rows(decided, self.label_names_)
        if self._is_one_column:
            return self.classes_[decided.toarray().ravel()]
        return sparse.csr_array(decided) if self._form.is_sparse else decided.toarray()

    def _in_columns_of_classes(self, chances: Floats) -> Floats:
        """Probabilities as `predict_proba` gives them: inside (0, 1), two where y was 1-d."""
        if self._is_one_column:
            chances = np.hstack([1 - chances, chances])
        return np.clip(chances, _SMALLEST, _LARGEST, out=chances)

    def _name_of(self, label: int) -> str | int:
        """The name of a label, or its column if it has none."""
        names = self.label_names_
        return label if names is None else names[label : label + 1].item()

    def _separator_of(self, y: LabelsLike) -> str | None:
        """The separator of the tags of y, if it has strings like the y given to fit."""
        form = self._form.tags
        return form.separator if form is not None and holds_texts(y) else None

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "metric", None) == "precomputed"
        tags.input_tags.positive_only = tags.input_tags.pairwise  # distances
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def beside_half(probabilities: Floats, decided: Booleans) -> Floats:
    """Probabilities above 1/2 where it is decided so, and at most 1/2 elsewhere.

    Those that were on the other side come next to 1/2, by their own order; 1/2 itself, which
    scikit-learn rounds down, becomes the next greater number where it is decided so.
    """
    low, high = decided & (probabilities <= 0.5), ~decided & (probabilities > 0.5)
    step = np.where(probabilities[low] < 0.5, probabilities[low] * _NEXT, 0.0)
    probabilities[low] = np.maximum(0.5 + step, np.nextafter(0.5, 1))
    probabilities[high] = 0.5 - (1 - probabilities[high]) * _NEXT
    return probabilities
