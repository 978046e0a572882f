"""What a method behind transformers sees, in the names and units of the data before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats

# Each feature times a positive number, plus another one.
_SCALERS = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")


class DataUnits(NamedTuple):
    """Names of a method's features, and how their values become those before scaling."""

    names: list[str]
    slopes: Floats  # (d,)
    offsets: Floats  # (d,)

    @classmethod
    def before(cls, steps: Sequence[Any], width: int) -> DataUnits:
        """Those of the data that fitted transformers take, which return so many features."""
        steps = list(_in_order(steps))
        return cls(_names(steps, width), *_units(steps, width))

    def cuts(self, features: Array, cuts: Floats) -> Floats:
        """Cuts of features, each in the units of its feature."""
        return np.asarray(self.slopes[features] * cuts + self.offsets[features])


def _in_order(steps: Iterable[Any]) -> Iterator[Any]:
    """Transformers one after the other, those within pipelines, too, but for skipped ones."""
    for step in steps:
        if hasattr(step, "steps"):
            yield from _in_order(part for _, part in step.steps)
        elif step is not None and not isinstance(step, str):
            yield step


def _names(steps: Sequence[Any], width: int) -> list[str]:
    """The names that scikit-learn has for features; x0 and so on if a step has none."""
    names: Any = None
    try:
        for step in steps:
            names = step.get_feature_names_out(names)
    except (AttributeError, ValueError):
        names = None
    if names is None or len(names) != width:
        return [f"x{column}" for column in range(width)]
    known = [str(name) for name in names]
    if not any(getattr(step, "verbose_feature_names_out", False) is True for step in steps):
        return known
    # Without the name of a part of a ColumnTransformer: "tempo" for "numbers__tempo".
    ends = [name.partition("__")[2] for name in known]
    counts = Counter(ends)
    pairs = zip(known, ends, strict=True)
    return [end if end and counts[end] == 1 else name for name, end in pairs]


def _units(steps: Iterable[Any], width: int) -> tuple[Floats, Floats]:
    """Slopes and offsets back to the last step whose results are other than scaled features."""
    slopes, offsets = np.ones(width), np.zeros(width)
    for step in reversed(list(_in_order(steps))):
        kind = type(step).__name__
        if kind in _SCALERS:
            zeros, ones = step.inverse_transform(np.array([np.zeros(width), np.ones(width)]))
            slopes, offsets = slopes * (ones - zeros), offsets * (ones - zeros) + zeros
        elif kind == "ColumnTransformer" and not step.transformer_weights:
            for name, part, _ in step.transformers_:
                own = step.output_indices_[name]
                if own.stop > own.start:
                    each, plus = _units([part], own.stop - own.start)
                    slopes[own], offsets[own] = slopes[own] * each, offsets[own] * each + plus
            break
        elif kind != "SimpleImputer" or step.n_features_in_ != width:
            break
    return slopes, offsets
