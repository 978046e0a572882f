"""The vectors of a part, prepared once for all models that want them alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nearlabel.common.arrays import Csr
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.protocols import Part
from nearlabel.search import is_precomputed

AS_THEY_ARE = Preparing()


class PartVectors(NamedTuple):
    """Training and test vectors of a part, in leave-one-out the same, and how they were scaled."""

    train: Any
    test: Any
    scale: str = "none"


class PreparedParts:
    """The vectors of each part, prepared by what its training rows say.

    Those of one part are kept at a time, so ask for all metrics of a part before the next. The
    labels Y are needed where the scale is to be chosen or a distance to be learned.
    """

    def __init__(self, X: Any, Y: Csr | None = None, preparing: Preparing = AS_THEY_ARE) -> None:
        self.X, self._Y, self._preparing = X, Y, preparing
        self._part: Part | None = None
        self._kept: dict[Any, Any] = {}

    @property
    def is_needed(self) -> bool:
        """Whether rows are not vectors as they are."""
        return self._preparing.is_needed(self.X)

    def of(self, part: Part, metric: Any) -> PartVectors:
        """The vectors of a part, for a metric, by which the best scale may differ."""
        if part is not self._part:
            self._part, self._kept = part, {}
        given = is_precomputed(metric)
        rows: PartVectors = self._once(("rows", given), lambda: self._rows(part, given))
        labels = None if self._Y is None else self._Y[part.train]
        name = metric if isinstance(metric, str) else None  # others have no scale chosen for them
        preparing: Preparing = self._once(
            ("preparing", name), lambda: self._preparing.chosen(rows.train, labels, metric)
        )
        made: PartVectors = self._once(
            ("vectors", given, preparing), lambda: _prepared(rows, labels, preparing)
        )
        return made

    def _rows(self, part: Part, given: bool) -> PartVectors:
        """Training and test rows as they are; of `given` distances those to training rows."""
        train = self.X[part.train]
        train = train[:, part.train] if given else train
        if part.left_out:
            return PartVectors(train, train)
        test = self.X[part.test]
        return PartVectors(train, test[:, part.train] if given else test)

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def _prepared(rows: PartVectors, labels: Csr | None, preparing: Preparing) -> PartVectors:
    transformer = preparing.transformer(rows.train)
    if transformer is None:
        return rows._replace(scale=preparing.scale)
    train = transformer.fit_transform(rows.train, labels)
    test = train if rows.test is rows.train else transformer.transform(rows.test)
    return PartVectors(train, test, preparing.scale)
