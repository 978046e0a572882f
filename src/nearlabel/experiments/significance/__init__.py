"""Whether algorithms differ: tests of two, tests of several, and the order of the ML-kNN paper."""

from nearlabel.experiments.significance.mean_ranks import Friedman, Nemenyi, friedman, nemenyi
from nearlabel.experiments.significance.orders import (
    PartialOrder,
    TotalOrder,
    partial_order,
    total_order,
)
from nearlabel.experiments.significance.pairs import Pair, paired_t, wilcoxon

__all__ = [
    "Friedman",
    "Nemenyi",
    "Pair",
    "PartialOrder",
    "TotalOrder",
    "friedman",
    "nemenyi",
    "paired_t",
    "partial_order",
    "total_order",
    "wilcoxon",
]
