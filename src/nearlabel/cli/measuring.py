"""How predictions are evaluated and reported: what evaluate, tune and compare share."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from nearlabel.baselines.algorithm_registry import BASELINES
from nearlabel.cli.options import (
    Convention,
    Count,
    Json,
    Output,
    Seed,
    Switch,
    Texts,
    as_typed,
)
from nearlabel.cli.options.preparation import Preparation, picture_setting, preparation_text
from nearlabel.cli.options.reading import LabeledReading, sizes, sizes_of
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import (
    Block,
    Paragraph,
    check_results,
    counted,
    render,
    write_results,
)

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import Part, SplitResult


@Parameter(name="*", group=Group("Evaluation", sort_key=1))
@dataclass(frozen=True)
class Measuring:
    """How predictions are evaluated, with which data and search, and how results are reported.

    Parameters
    ----------
    output
        Write a .csv, .tsv or .jsonl file, one result per row; - for CSV on standard output.
    split
        official: the split of the data set; holdout: a random test set; cv10: ten folds; cv10x5:
        ten folds, five times; loo: leave-one-out. By default loo for tune; otherwise official if
        there is one, or else cv10 (holdout for compare).
    test_size
        Share of the items in the test set of holdout; by default 1/3.
    stratified
        Keep the share of each label about the same in all random parts.
    metric
        Metrics to report, such as one_error macro_f1; the first one is used for tuning. By default
        all metrics (five for compare, ranking_loss for tune).
    convention
        How ties and rows without labels are treated.
    at
        Number of top labels in success_rate and precision_at.
    seed
        Random seed of splits and algorithms.
    """

    split: str | None = None
    test_size: float | None = None
    stratified: Switch = False
    metric: Texts = ()
    convention: Convention = "paper"
    at: Count = 5
    seed: Seed = 0
    output: Output = None
    json: Json = False
    preparation: Preparation = Preparation()
    searching: Searching = Searching()
    reading: LabeledReading = LabeledReading()

    def load(self, data: str, learners: Sequence[str]) -> Dataset:
        """Read the data set after checking the options."""
        from nearlabel.metrics import scorer

        for name in self.metric:
            scorer(name, convention=self.convention, at=self.at)
        check_results(self.output, data)
        return self.preparation.load(self.reading, data, learners, jobs=self.searching.jobs)

    def check_split(self, algorithms: Iterable[str]) -> None:
        """Refuse leave-one-out for baselines, which would learn anew for each item."""
        if self.split == "loo" and not set(BASELINES).isdisjoint(algorithms):
            raise ValueError("--split loo: baselines need held-out test items; use cv10")

    def parameters(self) -> Tree:
        """The parameters of estimators that these options set."""
        return {"random_state": self.seed, **self.searching.parameters()}

    def parts(self, items: Dataset, usual: str, *, own: bool = True) -> tuple[str, list[Part]]:
        """The name of the split and its parts.

        Without --split: the split of the data set, if `own`, or else the `usual` one.
        """
        from nearlabel.experiments import splits

        kind = self.split or ("official" if own and items.train is not None else usual)
        if self.test_size is not None and kind != "holdout":
            raise ValueError(f"--test-size: only with --split holdout; the split is {kind}")
        size = {} if self.test_size is None else {"test_size": self.test_size}
        return kind, splits(items, kind, stratified=self.stratified, seed=self.seed, **size)

    def how(self, items: Dataset) -> Tree:
        """The arguments of `evaluate_splits` that these options set."""
        preparing = self.preparation.of(items)
        own = {name: getattr(preparing, name) for name in ("scale", "impute", "learn_distance")}
        return {**own, "convention": self.convention, "at": self.at}

    def setting(
        self,
        source: str,
        items: Dataset,
        kind: str,
        parts: list[Part],
        how: Tree,
        scales: Iterable[str],
        distance: Any,
    ) -> Tree:
        """The setting of a result: the data, the model and the evaluation.

        The `scales` are those that were chosen if the scale is "auto". A note recommends a scale
        that would have been better for the distance.
        """
        train = parts[0].train
        if self.preparation.scale is None:
            few = items if len(train) == len(items) else items.rows(train)
            self.preparation.recommend_scale(few, distance)
        preparing = self.preparation.of(items)
        return {
            "dataset": source,
            **sizes_of(items),
            **how,
            **self.searching.record(),
            **picture_setting(items),
            "text": preparing.text,
            "impute": preparing.impute,
            "scale": preparing.scale,
            "chosen_scales": list(dict.fromkeys(scales)) if preparing.scale == "auto" else [],
            "learn_distance": preparing.learn_distance,
            "split": kind,
            "stratified": self.stratified,
            "seed": self.seed,
            "convention": self.convention,
            "parts": len(parts),
            "train": len(train),
            "test": len(parts[0].test),
        }

    def fit_command(self, data: str, options: Tree, parameters: Tree) -> str:
        """The command that fits a model to data as it was evaluated.

        Options that are None or False are left out; True is a switch.
        """
        stem = Path(data).name.removesuffix(".gz").partition(".")[0].strip("-") or "best"
        words = ["nearlabel", "fit", data, "-o", f"{stem}.model"]
        for option, value in {**options, "--seed": self.seed or None}.items():
            if value is not None and value is not False:
                words += [option] if value is True else [option, str(value)]
        if parameters:
            words += ["--set", *(f"{name}={value}" for name, value in parameters.items())]
        groups = (self.preparation, self.searching, self.reading)
        return shlex.join([*words, *(word for group in groups for word in as_typed(group))])

    def report(
        self,
        setting: Tree,
        rows: Iterable[Tree],
        results: Tree,
        title: str,
        text: Iterable[Block],
        spread: str = "",
        has_graph: bool = True,
    ) -> None:
        """Write the rows to a file; print the results as JSON, or the setting and the text."""
        if self.output is not None and not (self.json and self.output == "-"):
            write_results(self.output, ({**setting, **row} for row in rows))
        if self.output == "-" and not self.json:
            return

        def blocks() -> Iterator[Block]:
            from nearlabel.common.messages import one_line

            yield f"{one_line(setting['dataset'])}: {sizes(setting)}"
            yield Paragraph(f"{title}{preparation_text(setting, setting['chosen_scales'])}")
            yield Paragraph(f"split {split_text(setting)}")
            own = setting["text"] or setting["learn_distance"]
            own = own or (setting["impute"], setting["scale"]) != ("none", "none")
            if setting["parts"] > 1 and has_graph:
                yield Paragraph(
                    "each part is prepared by itself and has a graph of its own"
                    if own
                    else "one graph of all items, in which those held out are hidden"
                )
            arrows = "↓ lower is better, ↑ higher"
            yield Paragraph(f"convention {self.convention}{spread}; {arrows}")
            yield ""
            yield from text

        render({**setting, **results}, blocks(), self.json)


def split_text(setting: Tree) -> str:
    """The split and the sizes of its parts, for people."""
    parts = f"{counted(setting['train'], 'training item')}, {counted(setting['test'], 'test item')}"
    if setting["split"] == "loo":
        parts = f"each of {setting['items']} items left out in turn"
    elif setting["parts"] > 1:
        parts = f"{setting['parts']} times {parts}"
    return f"{setting['split']}{', stratified' if setting['stratified'] else ''}: {parts}"


def summary(parts: Sequence[SplitResult], wanted: Sequence[str]) -> Tree:
    """Mean and spread of the wanted metrics over the parts on which each is defined."""
    import numpy as np

    means, spread = {}, {}
    for name in wanted:
        values = [part.metrics[name] for part in parts if math.isfinite(part.metrics[name])]
        means[name] = float(np.mean(values)) if values else None
        spread[name] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"metrics": means, "std": spread if len(parts) > 1 else None}


def metric_cell(value: float | None, std: float | None = None) -> str:
    """A metric in a table."""
    if value is None or math.isnan(value):
        return "not defined"
    return f"{value:.4f}" if std is None else f"{value:.4f} ±{std:.4f}"


def metric_heads(names: Sequence[str]) -> list[str]:
    """Names of metrics as options have them, with arrows towards better values."""
    from nearlabel.metrics import METRICS

    return [f"{name} {'↓' if METRICS[name].loss else '↑'}" for name in names]


def wrote(*paths: str | None) -> Iterator[Block]:
    """The lines about files that were written, if any."""
    yield from (f"wrote {path}" for path in paths if path is not None)
