"""The results of a comparison as records, as a table, as a figure, and as a report."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.measuring import metric_cell, split_text, summary
from nearlabel.cli.options.others import learner_title
from nearlabel.cli.options.preparation import preparation_text
from nearlabel.cli.options.reading import sizes
from nearlabel.cli.output import Block, Paragraph, Table, printable
from nearlabel.cli.process import typed

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import SplitResult
    from nearlabel.experiments.significance.standings import Standing


@dataclass(frozen=True)
class Comparison:
    """Results of algorithms on the same parts.

    Attributes
    ----------
    parts : dict of list of SplitResult
        By the name of the algorithm.
    metrics : list of str
        Those to report, the most important first.
    ours : list of str
        The algorithms of nearlabel among them.
    """

    parts: Mapping[str, Sequence[SplitResult]]
    metrics: Sequence[str]
    ours: Sequence[str]

    @cached_property
    def standings(self) -> dict[str, dict[str, Standing]]:
        """Where algorithms stand, by metric and algorithm."""
        from nearlabel.experiments.significance.standings import standings
        from nearlabel.metrics import METRICS

        return {name: standings(self.parts, name, loss=METRICS[name].loss) for name in self.metrics}

    @cached_property
    def refusals(self) -> dict[str, str]:
        """Why algorithms were left out."""
        refusals = {
            name: next((part.refusal for part in parts if part.refusal), None)
            for name, parts in self.parts.items()
        }
        return {name: refusal for name, refusal in refusals.items() if refusal}

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return len(next(iter(self.parts.values())))

    def record(self, algorithm: str) -> Tree:
        """The results of an algorithm: means, standard errors, and p-values against the best."""
        parts = self.parts[algorithm]
        result: Tree = {"algorithm": algorithm, "metrics": {}, "std": None, "seconds": None}
        result |= {"standard_error": {}, "p_value": {}}
        if algorithm not in self.refusals:
            result |= summary(parts, self.metrics)
            result["seconds"] = self.seconds(algorithm)
            for metric, places in self.standings.items():
                place = places.get(algorithm)
                result["standard_error"][metric] = None if place is None else place.error
                result["p_value"][metric] = None if place is None else place.p_value
        result["refusal"] = self.refusals.get(algorithm)
        if any(part.parameters for part in parts):
            result["chosen"] = [part.parameters for part in parts if part.parameters]
        return result

    def rows(self, tuned: bool) -> Iterator[Tree]:
        """The results of each algorithm on each part."""
        for algorithm, parts in self.parts.items():
            for place, part in enumerate(parts, 1):
                metrics = {name: part.metrics.get(name) for name in self.metrics}
                row: Tree = {"algorithm": algorithm, "part": place, **metrics}
                row |= {"seconds": part.seconds, "refusal": part.refusal}
                yield {**row, "chosen": _shown(part.parameters)} if tuned else row

    def best(self) -> str | None:
        """The best of ours by the first metric; None if it is not defined."""
        from nearlabel.metrics import METRICS

        metric = self.metrics[0]
        values = {name: place.value for name, place in self.standings[metric].items()}
        known = [name for name in self.ours if name in values]
        best = min if METRICS[metric].loss else max
        return best(known, key=values.__getitem__) if known else None

    def cell(self, algorithm: str, metric: str, spread: str = "") -> tuple[str, str]:
        """The mark of the best printed value, or of one not significantly worse, and the value.

        Its standard error follows if there is a format for it.
        """
        places = self.standings[metric]
        if algorithm not in places:
            return "", metric_cell(None)
        place, text = places[algorithm], metric_cell(places[algorithm].value)
        best = next(metric_cell(each.value) for each in places.values() if each.is_best)
        known = spread and place.error == place.error
        return (
            "*" if text == best else "≈" if place.is_alike else "",
            text + spread.format(place.error) if known else text,
        )

    def seconds(self, algorithm: str) -> float:
        """The time that an algorithm took."""
        return round(sum(part.seconds for part in self.parts[algorithm]), 3)

    def choices(self, algorithm: str) -> list[str]:
        """The parameters that were chosen, the most frequent first, with numbers of parts."""
        chosen = Counter(_shown(part.parameters) for part in self.parts[algorithm])
        chosen.pop("", None)
        times = [f" ({count})" if self.n_parts > 1 else "" for _, count in chosen.most_common()]
        return [
            f"{text}{each}" for (text, _), each in zip(chosen.most_common(), times, strict=True)
        ]

    def legend(self) -> list[str]:
        """What the marks and the last column of a table mean."""
        from nearlabel.experiments.significance.pairs import LEVEL
        from nearlabel.experiments.significance.standings import paired_over

        test = f"paired t-test over {paired_over(self.n_parts)}, level {LEVEL:g}"
        return [
            f"* the best; ≈ not significantly worse: {test}",
            "s: processor seconds; our algorithms without the searches, which they share",
        ]

    def text(self, spread: str) -> Iterator[Block]:
        """A table, what its marks mean, which algorithms were left out, and what was chosen."""
        from nearlabel.experiments.reporting.names import metric_head

        rows = [
            (
                learner_title(name),
                *("".join(self.cell(name, metric, spread)) for metric in self.metrics),
                f"{self.seconds(name):.3g}",
            )
            for name in self.parts
            if name not in self.refusals
        ]
        yield Table(("", *(metric_head(name, short=True) for name in self.metrics), "s"), rows)
        yield from map(Paragraph, self.legend())
        for name, refusal in self.refusals.items():
            yield f"{learner_title(name)} was left out: {refusal}"
        choices = {name: self.choices(name) for name in self.parts}
        if any(choices.values()):
            where = ", in how many parts" if self.n_parts > 1 else ""
            yield f"chosen on the training items{where}:"
        for name, shown in choices.items():
            if shown:
                rest = ", …" if len(shown) > 3 else ""
                yield Paragraph(f"  {learner_title(name)}: {'; '.join(shown[:3])}{rest}")

    def draw(self, path: str, title: str) -> None:
        """Draw the first metric of all, with standard errors."""
        from nearlabel.experiments.reporting.drawing import save
        from nearlabel.experiments.reporting.figures import method_values

        metric = self.metrics[0]
        values = {
            learner_title(name): (place.value, place.error if place.error == place.error else None)
            for name, place in self.standings[metric].items()
        }
        own = [learner_title(name) for name in self.ours]
        save(method_values(values, metric, own=own, title=title), path)

    def write(self, path: str, setting: Tree, items: Dataset, what: str) -> None:
        """Write the report; `what` says which algorithms were compared, and how."""
        from nearlabel.datasets import describe
        from nearlabel.experiments.reporting import comparison_report as report
        from nearlabel.experiments.significance.standings import paired_over
        from nearlabel.metrics.label_results import mean_results

        methods = []
        for name, parts in self.parts.items():
            labels = [part.labels for part in parts if part.labels is not None]
            methods.append(
                report.ComparedMethod(
                    learner_title(name),
                    name in self.ours,
                    {metric: self.cell(name, metric, " ± {:.4f}") for metric in self.metrics},
                    "" if name in self.refusals else f"{self.seconds(name):.3g}",
                    self.refusals.get(name),
                    self.choices(name),
                    mean_results(labels) if labels else None,
                )
            )
        scales = preparation_text(setting, setting["chosen_scales"])
        setup = {
            "data set": printable(setting["dataset"]),
            "size": sizes(setting),
            "label cardinality": f"{describe(items).cardinality:.3f} labels per item",
            "compared": what,
            "preprocessing": scales.removeprefix(", "),
            "split": split_text(setting),
            "metric convention": f"{setting['convention']}, for ties and rows without labels",
            "random seed": str(setting["seed"]),
        }
        if not {"success_rate", "precision_at"}.isdisjoint(self.metrics):
            setup["top labels"] = f"{setting['at']}, in success rate and precision"
        source = Path(setting["dataset"])
        name = source.name or source.absolute().name
        over = paired_over(self.n_parts)
        report.write_comparison(
            path,
            "standard input" if setting["dataset"] == "-" else printable(name),
            setup=setup,
            command=shlex.join(["nearlabel", *map(printable, typed.get())]),
            methods=methods,
            standings={
                metric: {learner_title(name): place for name, place in places.items()}
                for metric, places in self.standings.items()
            },
            parts=self.n_parts,
            legend=[
                *self.legend(),
                f"± standard error over {over}; ↓ lower is better, ↑ higher",
            ],
        )


def _shown(choice: Mapping[str, object]) -> str:
    """Parameters by the names of the options that set them."""
    names = {"n_neighbors": "k", "per_class": "k", "metric": "distance"}
    return ", ".join(f"{names.get(name, name)} {value}" for name, value in choice.items())
