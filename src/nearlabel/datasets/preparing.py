"""How the features of a data set become vectors: missing values, categories, text and scaling.

This affects results more than the method does. Everything is fitted to training rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Csr, Matrix
from nearlabel.common.messages import shown
from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.datasets.frames import is_frame, number_columns
from nearlabel.features.scales import SCALES, best_scale, scale_scores, scaler

if TYPE_CHECKING:
    from polars import DataFrame
    from sklearn.base import TransformerMixin
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer

IMPUTES = ("none", "mean", "median", "zero")


@dataclass(frozen=True)
class Preparing:
    """How features become vectors.

    Parameters
    ----------
    scale : {"none", "minmax", "standard", "rank", "tfidf", "auto"}
        Of numbers: unchanged; from 0 to 1; with mean 0 and variance 1; by rank among the training
        rows, from 0 to 1; counts of words weighted by their rarity, in rows of length 1; or
        whichever of these `scale_scores` finds best.
    impute : {"none", "mean", "median", "zero"}
        What replaces a missing number. A missing category is a category of its own.
    text : tuple of str
        The columns of a frame with free text.
    learn_distance : bool
        Whether to transform the vectors by `LabelSpace` in the end, which is fitted to the labels.
    """

    scale: str = "none"
    impute: str = "none"
    text: tuple[str, ...] = ()
    learn_distance: bool = False

    def __post_init__(self) -> None:
        check_choice(self.scale, "scale", SCALES)
        check_choice(self.impute, "impute", IMPUTES)

    def is_needed(self, X: Any) -> bool:
        """Whether X has to be transformed."""
        is_scaled = self.scale != "none" or self.impute != "none"
        return is_frame(X) or is_scaled or self.learn_distance

    def chosen(self, X: Any, Y: Csr, metric: object = "euclidean") -> Preparing:
        """The same, with scale "auto" replaced by the best for training rows with labels Y."""
        if self.scale != "auto":
            return self
        return replace(self, scale=best_scale(self.scale_scores(X, Y, metric)))

    def scale_scores(self, X: Any, Y: Csr, metric: object = "euclidean") -> dict[str, float]:
        """How well each scale does; missing values that would stay count as medians here."""
        if is_frame(X) and not number_columns(X):
            return {}

        def transformer(scale: str, rows: Matrix) -> TransformerMixin | None:
            impute = "median" if self.impute == "none" and has_gaps(rows) else self.impute
            plain = replace(self, scale=scale, impute=impute, learn_distance=False)
            return plain.transformer(rows)

        return scale_scores(X, Y, metric, transformer=transformer)

    def transformer(self, X: Any) -> TransformerMixin | None:
        """An unfitted scikit-learn transformer for training rows; None if none is needed."""
        if not self.is_needed(X):
            return None
        step = "learn_distance=True" if self.learn_distance else None
        step = "scale='tfidf'" if self.scale == "tfidf" else step
        if step is not None and self.impute == "none" and has_gaps(X):
            message = f"{step} takes no missing values; pass impute='median'"
            raise ArgumentError(message, step.partition("=")[0])
        if is_frame(X):
            steps = [self._of_columns(X)]
        else:
            steps = [None if sparse.issparse(X) else self._imputer(), scaler(self.scale, X)]
        if self.learn_distance:
            from nearlabel.blend.label_space import LabelSpace

            steps.append(LabelSpace())
        return _in_turn(*steps)

    def _of_columns(self, X: DataFrame) -> ColumnTransformer:
        """A transformer that selects columns of a frame by name."""
        from sklearn.compose import ColumnTransformer
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import OneHotEncoder

        from nearlabel.features.filled_texts import FilledTexts

        numbers = number_columns(X)
        words = [name for name in X.columns if name not in {*numbers, *self.text}]
        steps: list[tuple[str, TransformerMixin | str, str | list[str]]] = []
        if numbers:
            of_numbers = _in_turn(self._imputer(), scaler(self.scale, np.empty((len(X), 0))))
            steps.append(("numbers", "passthrough" if of_numbers is None else of_numbers, numbers))
        if words:  # a gap is a word of its own
            encoder = OneHotEncoder(handle_unknown="ignore")
            steps.append(("words", _in_turn(FilledTexts(), encoder), words))
        for place, name in enumerate(self.text, 1):
            if not X[name].str.contains(r"\w\w").any():
                raise ArgumentError(f"text: column {shown(name)} has no words", "text")
            steps.append((f"text{place}", _in_turn(FilledTexts(), TfidfVectorizer()), name))
        return ColumnTransformer(steps)

    def _imputer(self) -> SimpleImputer | None:
        """The imputer of numbers; a column without any values becomes zeros."""
        if self.impute == "none":
            return None
        from sklearn.impute import SimpleImputer

        strategy = "constant" if self.impute == "zero" else self.impute
        return SimpleImputer(strategy=strategy, fill_value=0, keep_empty_features=True)


def has_gaps(X: Any) -> bool:
    """Whether a number is missing."""
    if is_frame(X):
        return any(X[name].is_nan().any() for name in number_columns(X))
    values = X.data if sparse.issparse(X) else X
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _in_turn(*steps: TransformerMixin | None) -> TransformerMixin | None:
    """Transformers one after the other; those that are None are left out."""
    needed = [step for step in steps if step is not None]
    if len(needed) < 2:
        return needed[0] if needed else None
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*needed)
