"""The estimators by name: what model files, the command line and comparisons can choose from."""

from __future__ import annotations

from typing import Any

from nearlabel.methods import BRkNN, DMLkNN, LAMLkNN, MallowskNN, MLCWkNN, MLkNN, PositivekNN

_KINDS = (MLkNN, LAMLkNN, DMLkNN, MallowskNN, PositivekNN, BRkNN, MLCWkNN)

ALGORITHMS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
