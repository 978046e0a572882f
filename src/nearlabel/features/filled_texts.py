"""A step before vectorizers and encoders, which differ in what counts as a missing string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from nearlabel.common.arrays import Array
from nearlabel.common.messages import as_word
from nearlabel.common.tag_lists import is_gap


class FilledTexts(TransformerMixin, BaseEstimator):
    """Replaces missing strings (None, NaN and NA) by empty ones.

    In pandas a missing string is any of these, in polars null, which becomes None. Numbers become
    strings: pandas reads a column of categories as numbers if all of them look like numbers.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: there is nothing to learn."""
        return self

    def transform(self, X: Any) -> Array:
        """The strings as an object array of the same shape as X."""
        cells = np.asarray(X, dtype=object)
        texts = [
            cell if isinstance(cell, str) else "" if is_gap(cell) else as_word(cell)
            for cell in cells.flat
        ]
        return np.array(texts, dtype=object).reshape(cells.shape)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the columns, which stay the same."""
        return input_features

    def _tree(self) -> dict[str, Any]:
        return {"class": type(self).__name__}

    @classmethod
    def _from_tree(cls, _: Mapping[str, Any], __: int) -> Self:
        return cls()

    def __sklearn_is_fitted__(self) -> bool:
        return True
