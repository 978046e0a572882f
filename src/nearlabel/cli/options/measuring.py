"""How answers are measured: the options of evaluate, tune and compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from nearlabel.cli.options import Convention, Count, Json, Output, Scale, Seed, Switch, Texts
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.reading import LabeledReading
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import say_json
from nearlabel.cli.quick_imports import import_scikit_learn
from nearlabel.cli.result_files import check_results, write_results

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import Part


@Parameter(name="*", group=Group("How it is measured", sort_key=1))
@dataclass(frozen=True)
class Measuring:
    """How answers are measured, on which data and by which search, and how that is told.

    Parameters
    ----------
    output
        Write a .csv, .tsv or .jsonl file, a result a row.
    split
        official, the data set's own; holdout, a part at random; cv10, ten parts, each held out
        once; cv10x5, so five times; loo, each item by itself. By default its own, else cv10
        (compare: holdout; tune: loo).
    test_size
        Share that holdout holds out; by default a third.
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
    test_size: Annotated[float, Parameter(show_default=False)] = 1 / 3
    stratified: Switch = False
    scale: Scale = "none"
    metric: Texts = ()
    convention: Convention = "paper"
    at: Count = 5
    seed: Seed = 0
    output: Output = None
    json: Json = False
    searching: Searching = Searching()
    reading: LabeledReading = LabeledReading()

    def __post_init__(self) -> None:
        if not self.metric:  # nor is anything loaded
            return
        from nearlabel.common.validation import check_choice
        from nearlabel.metrics import METRICS
        from nearlabel.metrics.conventions import has_metric

        for name in self.metric:
            check_choice(name, "--metric", METRICS)
            if not has_metric(self.convention, name):
                raise ValueError(f"--metric {name}: convention {self.convention!r} has no {name}")

    def load(self, data: str) -> Dataset:
        """Read what is measured on, and import what that takes."""
        check_results(self.output, data)
        items = self.reading.load_labeled(data)
        import_scikit_learn(scaling=self.scale != "none")
        return items

    def parameters(self) -> dict[str, Any]:
        """What estimators take of these options."""
        return {"random_state": self.seed, **self.searching.parameters()}

    def parts(self, items: Dataset, usual: str, *, own: bool = True) -> tuple[str, list[Part]]:
        """The name of the split and its parts.

        Where none was asked for: the data set's own, unless not `own`, else the `usual` one.
        """
        from nearlabel.experiments import splits

        kind = self.split or ("official" if own and items.train is not None else usual)
        how: dict[str, Any] = {"test_size": self.test_size, "seed": self.seed}
        with naming(split="--split", test_size="--test-size", stratified="--stratified"):
            return kind, splits(items, kind, stratified=self.stratified, **how)

    def how(self) -> dict[str, Any]:
        """What `evaluate_splits` takes of these options."""
        return {"scale": self.scale, "convention": self.convention, "at": self.at}

    def told(
        self, source: str, items: Dataset, kind: str, parts: list[Part], how: dict[str, Any]
    ) -> dict[str, Any]:
        """What a result says of the data, of a model and of how it was measured."""
        return {
            "dataset": source,
            "items": len(items),
            "features": int(items.X.shape[1]),
            "labels": int(items.Y.shape[1]),
            **how,
            **self.searching.told(),
            "scale": self.scale,
            "split": kind,
            "stratified": self.stratified,
            "seed": self.seed,
            "convention": self.convention,
            "parts": len(parts),
            "train": len(parts[0].train),
            "test": len(parts[0].test),
        }

    def deliver(
        self, told: dict[str, Any], records: Iterable[dict[str, Any]], **results: Any
    ) -> bool:
        """Write records to a file, print results as JSON; whether people want to see them."""
        if self.output is not None:
            write_results(self.output, ({**told, **record} for record in records))
        if self.json:
            say_json({**told, **results})
        return not self.json
