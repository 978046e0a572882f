"""What was measured, for people and programs: the setting, means, and cells of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nearlabel.cli.output import say


def say_setting(told: dict[str, Any], title: str, spread: str = "") -> None:
    """Tell what is measured and how."""
    say("{dataset}: {items} items, {features} features, {labels} labels".format(**told))
    say(f"{title}, scale {told['scale']}")
    parts = f"{told['train']} items to learn from, {told['test']} to be tried on"
    if told["split"] == "loo":
        parts = f"each of {told['items']} items tried as if it alone were new"
    elif told["parts"] > 1:
        parts = f"{told['parts']} times {parts}"
    stratified = ", stratified" if told["stratified"] else ""
    say(f"split {told['split']}{stratified}: {parts}")
    if told["parts"] > 1 and told["scale"] == "none":
        say("one graph of all items, in which those held out are hidden")
    elif told["parts"] > 1:
        say("each part is scaled by itself and has a graph of its own")
    say(f"convention {told['convention']}{spread}; ↓ less is better, ↑ more\n")


def summary(metrics: Sequence[dict[str, float]], wanted: Sequence[str]) -> dict[str, Any]:
    """Mean and spread of the wanted metrics over the parts on which each is defined."""
    import numpy as np

    means, spread = {}, {}
    for name in wanted:
        values = [one[name] for one in metrics if math.isfinite(one[name])]
        means[name] = float(np.mean(values)) if values else None
        spread[name] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"metrics": means, "std": spread if len(metrics) > 1 else None}


def defined(metrics: dict[str, float], wanted: Sequence[str]) -> dict[str, float | None]:
    """The wanted metrics, None where one is not defined: JSON has no other number for it."""
    values = {name: float(metrics.get(name, math.nan)) for name in wanted}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def metric_cell(value: float | None, std: float | None = None) -> str:
    """A metric in a table."""
    if value is None:
        return "not defined"
    return f"{value:.4f}" if std is None else f"{value:.4f} ±{std:.4f}"


def metric_heads(names: Sequence[str]) -> list[str]:
    """Metrics by the names that options have for them, with arrows to the better side."""
    from nearlabel.metrics import METRICS

    return [f"{name} {'↓' if METRICS[name].loss else '↑'}" for name in names]
