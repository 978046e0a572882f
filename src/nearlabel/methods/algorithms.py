"""The estimators by name: what model files, the command line and comparisons can choose from."""

from __future__ import annotations

from typing import Any

from nearlabel.methods import (
    IBLR,
    BRkNN,
    DMLkNN,
    LAMLkNN,
    MallowskNN,
    MLCWkNN,
    MLkNN,
    PositivekNN,
)
from nearlabel.methods.balancedknn import BalancedkNN

_KINDS = (MLkNN, LAMLkNN, DMLkNN, MallowskNN, PositivekNN, BRkNN, MLCWkNN, IBLR, BalancedkNN)

ALGORITHMS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}


def algorithm(name: str, k: int, **shared: Any) -> Any:
    """An unfitted estimator with k neighbors, of each class where it is balanced.

    Of the `shared` parameters, such as the seed of a comparison, it takes those that it has.
    """
    kind = ALGORITHMS[name]
    known = kind().get_params()
    parameters = {key: value for key, value in shared.items() if key in known}
    parameters["n_neighbors" if "n_neighbors" in known else "per_class"] = k
    return kind(**parameters)
