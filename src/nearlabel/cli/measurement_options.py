"""What the verbs that measure share: options, the setting of a result, and summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from nearlabel.cli.options import Scale, Several, Switch, Whole
from nearlabel.cli.output import say

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import Part


@Parameter(name="*", group=Group("How it is measured", sort_key=1))
@dataclass(frozen=True)
class Measuring:
    """How answers are measured.

    Parameters
    ----------
    split
        official, the data set's own; holdout, a part at random; cv10, ten parts, each held out
        once; cv10x5, so five times; loo, each item by itself. By default its own, else cv10
        (compare: holdout; tune: loo).
    test_size
        Share that holdout holds out.
    stratified
        Let random parts hold each label in about the same share.
    scale
        Scaling of the features, fitted to the part that is learned from.
    metric
        Metrics to tell, by name; by default all (compare: five; tune: ranking_loss). The first
        decides what is tuned.
    convention
        What ties and rows without labels count.
    at
        Labels that success_rate and precision_at look at.
    seed
        Of random parts, and of algorithms that draw at random.
    """

    split: str | None = None
    test_size: float = 1 / 3
    stratified: Switch = False
    scale: Scale = "none"
    metric: Annotated[tuple[str, ...], Several, Parameter(show_default=False)] = ()
    convention: Literal["paper", "lamda", "mulan", "sklearn"] = "paper"
    at: Whole = 5
    seed: Whole = 0

    def check(self) -> None:
        """Refuse metrics that are unknown, or that the convention does not have."""
        check_metrics(self.metric, self.convention)

    def parts(self, items: Dataset, usual: str, *, own: bool = True) -> tuple[str, list[Part]]:
        """The name of the split and its parts.

        Where none was asked for: the data set's own, unless not `own`, else the `usual` one.
        """
        from nearlabel.experiments import splits

        kind = self.split or ("official" if own and items.train is not None else usual)
        how: dict[str, Any] = {"test_size": self.test_size, "seed": self.seed}
        return kind, splits(items, kind, stratified=self.stratified, **how)

    def how(self) -> dict[str, Any]:
        """What `evaluate_splits` takes of these options."""
        return {"scale": self.scale, "convention": self.convention, "at": self.at}

    def told(
        self, source: str, items: Dataset, kind: str, parts: list[Part], how: dict[str, Any]
    ) -> dict[str, Any]:
        """What a result says of the data and of how it was measured."""
        return {
            "dataset": source,
            "items": len(items),
            "features": int(items.X.shape[1]),
            "labels": int(items.Y.shape[1]),
            **how,
            "scale": self.scale,
            "split": kind,
            "stratified": self.stratified,
            "seed": self.seed,
            "convention": self.convention,
            "parts": len(parts),
            "train": len(parts[0].train),
            "test": len(parts[0].test),
        }


def check_metrics(names: Iterable[str], convention: str) -> None:
    """Refuse metrics that are unknown, or that a convention does not have."""
    from nearlabel.common.validation import check_choice
    from nearlabel.metrics import METRICS
    from nearlabel.metrics.conventions import has_metric

    for name in names:
        check_choice(name, "--metric", METRICS)
        if not has_metric(convention, name):
            raise ValueError(f"convention {convention!r} has no {name}")


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
