"""Anderson's acceleration of a fixed-point iteration."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Floats

_REGULARIZATION = 1e-10
_FARTHEST = 10.0  # steps ahead: residuals that hardly differ say little of what is far away


class Anderson:
    """Extrapolates the steps of an iteration z -> g(z) to its fixed point [1]_.

    The next point is the combination of the latest images g(z) whose residuals g(z) - z, combined
    alike, are smallest.

    Parameters
    ----------
    size : int
        Numbers of a point.
    depth : int
        Earlier steps that are combined.

    References
    ----------
    .. [1] H. F. Walker and P. Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal
       on Numerical Analysis 49(4), 2011.
    """

    def __init__(self, size: int, depth: int) -> None:
        # Differences of consecutive residuals and images; the oldest is overwritten.
        self._residuals, self._images = np.zeros((depth, size)), np.zeros((depth, size))
        self.forget()

    def forget(self) -> None:
        """Start anew, as when the iteration has become another one."""
        self._steps = -1
        self._latest: tuple[Floats, Floats] | None = None

    def next(self, residual: Floats, image: Floats) -> Floats:
        """The point to go on from, after an iteration that led to `image`."""
        depth = len(self._residuals)
        if self._latest is not None:
            place = self._steps % depth
            np.subtract(residual, self._latest[0], out=self._residuals[place])
            np.subtract(image, self._latest[1], out=self._images[place])
        self._latest = residual, image
        self._steps += 1
        known = min(self._steps, depth)
        if known < 2:
            return image
        differences = self._residuals[:known]
        gram = differences @ differences.T
        gram[np.diag_indices(known)] += max(_REGULARIZATION * np.trace(gram), np.finfo(float).tiny)
        weights = np.linalg.solve(gram, differences @ residual)
        weights /= max(1.0, float(np.abs(weights).sum()) / _FARTHEST)
        return np.asarray(image - weights @ self._images[:known])
