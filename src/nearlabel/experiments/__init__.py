"""Experiments: how a data set is divided and scaled, and how well a method does on it."""

from typing import TYPE_CHECKING, Any

from nearlabel.experiments.evaluation import SplitResult, evaluate_splits
from nearlabel.experiments.protocols import SPLITS, Part, splits
from nearlabel.features.scales import SCALES, scaler

if TYPE_CHECKING:
    from nearlabel.experiments.tuning import GraphSearchCV

__all__ = [
    "SCALES",
    "SPLITS",
    "GraphSearchCV",
    "Part",
    "SplitResult",
    "evaluate_splits",
    "scaler",
    "splits",
]


def __getattr__(name: str) -> Any:
    if name == "GraphSearchCV":  # it takes parts of scikit-learn that the others do without
        from nearlabel.experiments.tuning import GraphSearchCV

        return GraphSearchCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
