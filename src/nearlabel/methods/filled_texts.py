"""A step before vectorizers and encoders, which differ in what they take for a missing text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from nearlabel.common.arrays import Array
from nearlabel.common.messages import as_word
from nearlabel.common.tag_lists import is_gap


class FilledTexts(TransformerMixin, BaseEstimator):
    """Columns of texts, of which those that are missing become empty: None, NaN, and NA.

    In pandas a missing text is any of these, in polars null, which becomes None. Numbers become
    texts: pandas reads a column of categories as numbers where all of them look like some.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: there is nothing to learn."""
        return self

    def transform(self, X: Any) -> Array:
        """The texts as an array of objects, of the shape of X."""
        cells = np.asarray(X, dtype=object)
        texts = [one if isinstance(one, str) else _filled(one) for one in cells.flat]
        return np.array(texts, dtype=object).reshape(cells.shape)

    def _tree(self) -> dict[str, Any]:
        return {"class": type(self).__name__}

    @classmethod
    def _from_tree(cls, _: Mapping[str, Any], __: int) -> Self:
        return cls()

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _filled(cell: Any) -> str:
    """What a cell becomes that is not a text."""
    return "" if is_gap(cell) else as_word(cell)
