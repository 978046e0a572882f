"""Multi-label learning by nearest neighbors.

The public names load on first use, so that ``import nearlabel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearlabel import datasets, experiments, metrics
    from nearlabel.common.files import FileError
    from nearlabel.common.versions import show_versions
    from nearlabel.experiments.tuning import GraphSearchCV
    from nearlabel.graph import NeighborGraph
    from nearlabel.labels.scores import LabelScores, RankedLabels
    from nearlabel.methods import (
        IBLR,
        BRkNN,
        CalibratedRanking,
        DMLkNN,
        LAMLkNN,
        MallowskNN,
        MLCWkNN,
        MLkNN,
        PositivekNN,
    )
    from nearlabel.methods.balancedknn import BalancedkNN
    from nearlabel.methods.thresholds import LabelThresholds
    from nearlabel.persistence.models import load, save
    from nearlabel.search import ExactSearch, InvertedLists, neighbor_graph

__version__ = "0.1.0"

_HOMES = {
    "BRkNN": "nearlabel.methods",
    "BalancedkNN": "nearlabel.methods.balancedknn",
    "CalibratedRanking": "nearlabel.methods",
    "DMLkNN": "nearlabel.methods",
    "IBLR": "nearlabel.methods",
    "ExactSearch": "nearlabel.search",
    "InvertedLists": "nearlabel.search",
    "GraphSearchCV": "nearlabel.experiments.tuning",
    "FileError": "nearlabel.common.files",
    "LAMLkNN": "nearlabel.methods",
    "LabelScores": "nearlabel.labels.scores",
    "LabelThresholds": "nearlabel.methods.thresholds",
    "MLCWkNN": "nearlabel.methods",
    "MLkNN": "nearlabel.methods",
    "MallowskNN": "nearlabel.methods",
    "NeighborGraph": "nearlabel.graph",
    "PositivekNN": "nearlabel.methods",
    "RankedLabels": "nearlabel.labels.scores",
    "load": "nearlabel.persistence.models",
    "neighbor_graph": "nearlabel.search",
    "save": "nearlabel.persistence.models",
    "show_versions": "nearlabel.common.versions",
}
_MODULES = ("datasets", "experiments", "metrics")

__all__ = [
    "IBLR",
    "BRkNN",
    "BalancedkNN",
    "CalibratedRanking",
    "DMLkNN",
    "ExactSearch",
    "FileError",
    "GraphSearchCV",
    "InvertedLists",
    "LAMLkNN",
    "LabelScores",
    "LabelThresholds",
    "MLCWkNN",
    "MLkNN",
    "MallowskNN",
    "NeighborGraph",
    "PositivekNN",
    "RankedLabels",
    "__version__",
    "datasets",
    "experiments",
    "load",
    "metrics",
    "neighbor_graph",
    "save",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"nearlabel.{name}")
    else:
        raise AttributeError(f"module 'nearlabel' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
