"""Metrics for multi-label ranking and classification, in named conventions."""

from nearlabel.metrics.conventions import CONVENTIONS
from nearlabel.metrics.label_results import LabelResults, per_label
from nearlabel.metrics.probabilities import Reliability, calibration_error, reliability
from nearlabel.metrics.ranking import (
    average_precision,
    coverage,
    macro_auc,
    macro_average_precision,
    mean_inverse_rank,
    one_error,
    precision_at,
    ranking_loss,
    success_rate,
)
from nearlabel.metrics.scorers import METRICS, Scorer, evaluate, per_row, scorer
from nearlabel.metrics.sets import (
    example_f1,
    hamming_loss,
    jaccard,
    macro_f1,
    micro_f1,
    subset_accuracy,
)

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "LabelResults",
    "Reliability",
    "Scorer",
    "average_precision",
    "calibration_error",
    "coverage",
    "evaluate",
    "example_f1",
    "hamming_loss",
    "jaccard",
    "macro_auc",
    "macro_average_precision",
    "macro_f1",
    "mean_inverse_rank",
    "micro_f1",
    "one_error",
    "per_label",
    "per_row",
    "precision_at",
    "ranking_loss",
    "reliability",
    "scorer",
    "subset_accuracy",
    "success_rate",
]
