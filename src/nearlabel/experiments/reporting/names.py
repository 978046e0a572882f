"""Names of metrics, and p-values, as people read them."""

from __future__ import annotations

from nearlabel.metrics import METRICS

NO_NUMBER = "—"


def metric_title(metric: str) -> str:
    """A metric's name for people."""
    special = {"one_error": "one-error", "macro_auc": "macro AUC"}
    return special.get(metric, metric.replace("_", " "))


def metric_head(metric: str, *, short: bool = False) -> str:
    """A metric's name, with an arrow to the better side if there is one."""
    if metric not in METRICS:  # a label, in a table of counts
        return metric if short else metric_title(metric)
    shorter = {
        "average_precision": "av prec",
        "hamming_loss": "hamming",
        "one_error": "one err",
        "ranking_loss": "ranking",
    }
    name = shorter.get(metric, metric_title(metric)) if short else metric_title(metric)
    return f"{name} {'↓' if METRICS[metric].loss else '↑'}"


def p_text(p_value: float | None) -> str:
    """A p-value with three decimals; small ones as such."""
    if p_value is None:
        return NO_NUMBER
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
