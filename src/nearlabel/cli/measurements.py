"""What was measured, for people and programs: the setting, means, and cells of tables."""

from __future__ import annotations

import math
from typing import Any

from nearlabel.cli.output import say


def say_setting(told: dict[str, Any], title: str, spread: str) -> None:
    """Tell what is measured and how."""
    say(
        f"{told['dataset']}: {told['items']} items, {told['features']} features, "
        f"{told['labels']} labels"
    )
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


def summary(metrics: list[dict[str, float]], wanted: list[str]) -> dict[str, Any]:
    """Mean and spread of the wanted metrics over the parts on which each is defined."""
    import numpy as np

    values = {
        name: [one[name] for one in metrics if math.isfinite(one[name])] or [math.nan]
        for name in wanted
    }
    spread = {name: np.std(some, ddof=1) if len(some) > 1 else 0.0 for name, some in values.items()}
    return {
        "metrics": {name: or_none(np.mean(some)) for name, some in values.items()},
        "std": {name: or_none(std) for name, std in spread.items()} if len(metrics) > 1 else None,
    }


def or_none(value: Any) -> float | None:
    """A number, or None for JSON where a metric is not defined."""
    return float(value) if math.isfinite(value) else None


def metric_cell(value: float | None, std: float | None = None) -> str:
    """A metric in a table."""
    if value is None:
        return "not defined"
    return f"{value:.4f}" if std is None else f"{value:.4f} ±{std:.4f}"


def metric_heads(names: list[str]) -> list[str]:
    """Metrics by the names that options have for them, with arrows to the better side."""
    from nearlabel.metrics import METRICS

    return [f"{name} {'↓' if METRICS[name].loss else '↑'}" for name in names]
