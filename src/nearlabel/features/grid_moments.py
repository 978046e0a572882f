"""Color moments in the blocks of a grid, as in the papers on scenes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from nearlabel.common.arrays import Array, Tree
from nearlabel.common.extras import extra_module
from nearlabel.common.validation import check_choice, check_integer, check_n_jobs
from nearlabel.features.picture_files import in_parallel
from nearlabel.features.pictures import Size, upright_rgb

# sRGB under the white D65, with the digits of scikit-image's rgb2luv.
_TO_XYZ = np.array(
    [
        [0.412453, 0.357580, 0.180423],
        [0.212671, 0.715160, 0.072169],
        [0.019334, 0.119193, 0.950227],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])
_WEIGHTS = np.array([1, 15, 3])  # u' = 4 X / (X + 15 Y + 3 Z), v' = 9 Y / (X + 15 Y + 3 Z)
_WHITE_U, _WHITE_V = 4 * _WHITE[0] / (_WEIGHTS @ _WHITE), 9 * _WHITE[1] / (_WEIGHTS @ _WHITE)
_TO_SUMS = np.array([_WEIGHTS @ _TO_XYZ, *_TO_XYZ[:2]])
_DARK = 0.008856  # up to this Y, L* is linear
_SHADES = np.arange(256) / 255
_LINEAR = np.where(_SHADES > 0.04045, ((_SHADES + 0.055) / 1.055) ** 2.4, _SHADES / 12.92)


class GridMoments(TransformerMixin, BaseEstimator):
    """Mean and variance of the colors in each block of a grid: 294 values per picture [1]_.

    A picture in CIE L*u*v* (from sRGB, white D65) is divided into 7 x 7 blocks; the borders are the
    exact sevenths, rounded down. Each of the three bands has first the 49 means, row by row, then
    the 49 variances, over all pixels of a block: the order of the public data set `scene`. The
    bands have different ranges: scale them, for example with `MinMaxScaler`, before computing
    distances.

    Parameters
    ----------
    grid : int, default=7
        Blocks per row and per column, up to 256. If a picture has fewer pixels per side, blocks
        share pixels.
    spread : {"variance", "deviation"}, default="variance"
        The second moment: the paper's, or its square root, which is less sensitive to outliers.
    max_pixels : int or None, default=1,000,000
        A picture with more pixels is reduced to a half, a quarter, an eighth … of its width and
        height until it fits. JPEG files are decoded to that size, which is several times faster;
        for others, squares of pixels are averaged. None uses every pixel.
    n_jobs : int or None, default=None
        Threads that read pictures; -1 means all cores.

    References
    ----------
    .. [1] Boutell, Luo, Shen and Brown. Learning multi-label scene classification. Pattern
           Recognition 37 (2004), 1757-1771.

    Examples
    --------
    >>> import numpy as np
    >>> from nearlabel.features import GridMoments
    >>> grey = np.full((70, 90, 3), 119, np.uint8)
    >>> moments = GridMoments().fit_transform([grey])
    >>> moments.shape
    (1, 294)
    >>> names = GridMoments().get_feature_names_out()
    >>> print(names[0], moments[0, 0].round(2))
    L_mean_0_0 50.03
    """

    def __init__(
        self,
        grid: int = 7,
        *,
        spread: str = "variance",
        max_pixels: int | None = 1_000_000,
        n_jobs: int | None = None,
    ) -> None:
        self.grid, self.spread = grid, spread
        self.max_pixels, self.n_jobs = max_pixels, n_jobs

    def fit(self, X: object, y: object = None) -> Self:
        """Check the parameters; nothing is learned, and no picture is read."""
        self._check_parameters()
        return self

    def transform(self, X: Iterable[object]) -> Array:
        """Compute the moments of pictures.

        Parameters
        ----------
        X : iterable of paths, bytes, binary files, PIL images or arrays
            Read lazily, so it can be a generator.

        Returns
        -------
        ndarray of shape (n, 6 * grid * grid), float64

        Raises
        ------
        UnreadablePicture
            For the first picture that cannot be read, with its name.
        """
        self._check_parameters()
        extra_module("PIL.Image", "GridMoments needs Pillow", "pictures")
        rows = [*in_parallel(X, self._moments, self.n_jobs)]
        return np.array(rows).reshape(-1, 6 * self.grid**2)

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Names such as L_mean_0_6: band, moment, row and column of the block."""
        self._check_parameters()
        blocks = [f"{row}_{column}" for row in range(self.grid) for column in range(self.grid)]
        names = [
            f"{band}_{moment}_{block}"
            for band in "Luv"
            for moment in ("mean", self.spread)
            for block in blocks
        ]
        return np.array(names, dtype=object)

    def _check_parameters(self) -> None:
        check_integer(self.grid, "grid", low=1, high=256)  # more would be pictures
        check_n_jobs(self.n_jobs)
        check_choice(self.spread, "spread", ("variance", "deviation"))
        if self.max_pixels is not None:
            check_integer(self.max_pixels, "max_pixels (or None)", low=1)

    def _moments(self, source: object) -> Array:
        smaller = None if self.max_pixels is None else partial(_reduced, most=self.max_pixels)
        image = upright_rgb(source, at_least=smaller)
        if self.max_pixels is not None:
            image = image.reduce(_factor(image.size, self.max_pixels))
        moments = grid_moments(np.asarray(image), self.grid)
        if self.spread == "deviation":
            np.sqrt(moments[:, 1], out=moments[:, 1])
        return moments.ravel()

    def _tree(self) -> Tree:
        return {"class": type(self).__name__, **self.get_params()}

    @classmethod
    def _from_tree(cls, tree: Tree, _: int) -> Self:
        given = {name: tree[name] for name in ("grid", "spread", "max_pixels", "n_jobs")}
        return cls(**given).fit(None)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def grid_moments(rgb: Array, grid: int) -> Array:
    """Mean and variance (3, 2, grid, grid) of L*, u* and v* in the blocks of a picture.

    Parameters
    ----------
    rgb : ndarray of uint8, (height, width, 3)
    """
    height, width, _ = rgb.shape
    tops, lefts = (np.arange(grid) * side // grid for side in (height, width))
    if height < grid:
        rgb, tops = rgb[tops], np.arange(grid)
    if width < grid:
        rgb, lefts = rgb[:, lefts], np.arange(grid)
    widths = np.diff(lefts, append=rgb.shape[1])
    moments = np.empty((3, 2, grid, grid))
    for row, band in enumerate(np.split(rgb, tops[1:])):
        luv, pixels = cie_luv(band), widths * len(band)
        mean = np.add.reduceat(luv.sum(axis=1), lefts, axis=1) / pixels
        luv -= np.repeat(mean, widths, axis=1)[:, None]
        np.multiply(luv, luv, out=luv)
        moments[:, 0, row] = mean
        moments[:, 1, row] = np.add.reduceat(luv.sum(axis=1), lefts, axis=1) / pixels
    return moments


def cie_luv(rgb: Array) -> Array:
    """L*, u* and v* (3, height, width) of pixels (height, width, 3) of uint8."""
    luv: Array = _TO_SUMS @ _LINEAR.take(np.moveaxis(rgb, -1, 0).reshape(3, -1))
    total, u, v = luv  # X + 15 Y + 3 Z, X and Y; overwritten in place below
    lightness = np.maximum(v, _DARK)
    np.log(lightness, out=lightness)  # with `exp`, twice as fast as `cbrt`
    lightness /= 3
    np.exp(lightness, out=lightness)
    lightness *= 116
    lightness -= 16
    np.copyto(lightness, 903.3 * v, where=v <= _DARK)
    np.copyto(total, 1, where=total == 0)  # black: u* and v* are 0, as its lightness is
    for values, factor, white in ((u, 4, _WHITE_U), (v, 9, _WHITE_V)):
        values *= factor
        values /= total
        values -= white
        values *= lightness
        values *= 13
    total[:] = lightness
    return luv.reshape(3, *rgb.shape[:2])


def _factor(size: Size, most: int) -> int:
    """The power of two by which a picture is reduced to at most `most` pixels."""
    factor = 1
    while math.prod(-(-side // factor) for side in size) > most:
        factor *= 2
    return factor


def _reduced(size: Size, most: int) -> Size:
    """The size to which a JPEG file is decoded, or slightly less."""
    factor = _factor(size, most)
    return max(size[0] // factor, 1), max(size[1] // factor, 1)
