"""Methods whose scores are not probabilities, which are learned from leave-one-out scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Floats, Tree
from nearlabel.labels.calibration import Calibration
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Field, Reals


class CalibratedMethod(NeighborClassifier):
    """A method whose probabilities are frequencies on left-out training rows.

    `_learn` sets `_calibration`, and `stored` declares it as `StoredCalibration`.
    """

    _calibration: Calibration | None  # None if the model is from an older file

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        if self._calibration is None:
            return self._uncalibrated(scores, label)
        return self._calibration.of(scores)

    @abstractmethod
    def _uncalibrated(self, scores: Floats, label: Array) -> Floats:
        """A substitute for probabilities if none were learned."""


@dataclass(frozen=True)
class StoredCalibration(Field):
    """The knots of a calibration; None if an older file has none."""

    key: str = "scores"
    attribute: str = "_calibration"

    def write(self, model: object, learned: Tree) -> None:
        known: Calibration | None = getattr(model, self.attribute)
        if known is not None:
            learned["scores"], learned["chances"] = known

    def read(self, model: object, learned: Tree, sizes: dict[str, int]) -> None:
        if "scores" not in learned:
            setattr(model, self.attribute, None)
            return
        knots: dict[str, int] = {}
        scores = Reals("scores", "", "m").check(learned["scores"], knots)
        chances = Reals("chances", "", "m", low=0, high=1).check(learned["chances"], knots)
        if np.any(np.diff(scores) <= 0) or np.any(np.diff(chances) < 0):
            raise ValueError("its scores and probabilities must both be increasing")
        setattr(model, self.attribute, Calibration(scores, chances))
