"""The estimators by name: what model files, the command line and comparisons can choose from."""

from __future__ import annotations

from typing import Any

from nearlabel.methods import BRkNN, LAMLkNN, MallowskNN, MLkNN, PositivekNN

ALGORITHMS: dict[str, Any] = {
    kind.__name__: kind for kind in (MLkNN, LAMLkNN, MallowskNN, BRkNN, PositivekNN)
}
