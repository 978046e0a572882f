"""What the verbs that measure share: metrics by name, the setting of a result, and summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nearlabel.cli.output import say

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset


def check_metrics(names: Iterable[str], convention: str) -> None:
    """Refuse metrics that are unknown, or that a convention does not have."""
    from nearlabel.metrics import METRICS
    from nearlabel.metrics.conventions import has_metric
    from nearlabel.validation import check_choice

    for name in names:
        check_choice(name, "--metric", METRICS)
        if not has_metric(convention, name):
            raise ValueError(f"convention {convention!r} has no {name}")


def setting(source: str, items: Dataset, parts: Any, how: dict[str, Any]) -> dict[str, Any]:
    """What a result says of the data and of how it was measured."""
    return {
        "dataset": source,
        "items": len(items),
        "features": int(items.X.shape[1]),
        "labels": int(items.Y.shape[1]),
        **how,
        "train": len(parts[0][0]),
        "test": len(parts[0][1]),
    }


def say_setting(told: dict[str, Any], title: str, spread: str) -> None:
    """Tell what is measured and how."""
    say(
        f"{told['dataset']}: {told['items']} items, {told['features']} features, "
        f"{told['labels']} labels"
    )
    say(f"{title}, scale {told['scale']}")
    parts = f"{told['train']} items to learn from, {told['test']} to be tried on"
    if told["split"] == "cv10":
        parts = f"ten times {parts}"
    say(f"split {told['split']}: {parts}")
    say(f"convention {told['convention']}{spread}; ↓ less is better, ↑ more\n")


def summary(metrics: list[dict[str, float]], wanted: list[str]) -> dict[str, Any]:
    """Mean and spread of the wanted metrics over splits."""
    import numpy as np

    values = {name: [one[name] for one in metrics] for name in wanted}
    several = len(metrics) > 1
    return {
        "metrics": {name: or_none(np.mean(value)) for name, value in values.items()},
        "std": {name: or_none(np.std(value, ddof=1)) for name, value in values.items()}
        if several
        else None,
    }


def or_none(value: Any) -> float | None:
    """A number, or None for JSON where a metric is not defined."""
    return float(value) if math.isfinite(value) else None
