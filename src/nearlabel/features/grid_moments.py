"""Moments of colors in the blocks of a grid, as in the papers on scenes."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin

from nearlabel.common.arrays import Array


class GridMoments(TransformerMixin, BaseEstimator):
    """Mean and variance of the colors in each block of a grid."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: there is nothing to learn."""
        return self

    def transform(self, X: Any) -> Array:
        """The moments of each picture."""
        raise NotImplementedError
