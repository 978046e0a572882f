"""Experiments: how a data set is divided and scaled, and how well a method does on it."""

from nearlabel.experiments.protocols import (
    SPLITS,
    SplitResult,
    evaluate_splits,
    splits,
    usual_split,
)
from nearlabel.experiments.scaling import SCALES, scaler

__all__ = ["SCALES", "SPLITS", "SplitResult", "evaluate_splits", "scaler", "splits", "usual_split"]
