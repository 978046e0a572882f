"""evaluate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nearlabel.cli.measuring import Measuring, defined, metric_cell, metric_heads, summary
from nearlabel.cli.options import Counts, DataOrPictures, Switch
from nearlabel.cli.options.learning import Learning
from nearlabel.cli.options.preparation import naming_preparation
from nearlabel.cli.output import say, say_table, steps

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.experiments.evaluation import SplitResult

_LABELS_SHOWN = 40
_USUAL_K = (10,)


def evaluate(
    data: DataOrPictures,
    *,
    k: Counts = _USUAL_K,
    per_label: Switch = False,
    learning: Learning = Learning(),
    measuring: Measuring = Measuring(),
) -> None:
    """Evaluate an algorithm: fit it to training items and measure it on test items.

    Parameters
    ----------
    k
        Number of neighbors; several values share one search. Baselines, such as AdaBoostMH, have
        none.
    per_label
        Report each label, too, lowest F1 first; --output then writes one row per label.

    Examples
    --------
    nearlabel evaluate emotions --k 8 --scale minmax --convention mulan
    nearlabel evaluate songs.csv --split cv10 --k 5 10 20
    nearlabel evaluate yeast --metric ranking_loss average_precision --json
    nearlabel evaluate yeast --algorithm PositivekNN --k 40 --scale minmax
    nearlabel evaluate emotions --scale minmax --per-label
    nearlabel evaluate yeast --algorithm AdaBoostMH --set n_rounds=100
    nearlabel evaluate scenes --features moments
    """
    learning.check_options(k=k != _USUAL_K, searching=measuring.searching)
    measuring.check_split([learning.algorithm])
    items = measuring.load(data, [learning.algorithm])
    learning = learning.of(items)
    from nearlabel.experiments import evaluate_splits

    models = [learning.model(count, measuring.parameters()) for count in k]
    split, parts = measuring.parts(items, "cv10")
    with steps("evaluating") as progress, naming_preparation():
        how = {"by_label": per_label, **measuring.how(items)}
        results = evaluate_splits(items, models, parts, progress=progress, **how)
    metrics_of = {
        count: [part.metrics for part in each] for count, each in zip(k, results, strict=True)
    }
    wanted = list(measuring.metric or metrics_of[k[0]][0])
    scales = [part.scale for part in results[0]]
    how = learning.record(models[0])
    setting = measuring.setting(data, items, split, parts, how, scales, learning.distance)
    neighbors = {count: {} if learning.is_baseline else {"k": count} for count in k}
    means = [{**neighbors[count], **summary(each, wanted)} for count, each in metrics_of.items()]
    records: Iterable[Tree] = (
        {**neighbors[count], "part": place, **defined(metrics, wanted)}
        for count, of_model in metrics_of.items()
        for place, metrics in enumerate(of_model, 1)
    )
    if per_label:
        for mean, of_model in zip(means, results, strict=True):
            mean["labels"] = _by_label(of_model)
        records = (
            {**settings, **label}
            for settings, mean in zip(neighbors.values(), means, strict=True)
            for label in mean["labels"]
        )
    own = "".join(
        f", {name} {value:g}" if isinstance(value, float) else f", {name} {value}"
        for name, value in setting["parameters"].items()
        if not (name == "counts" and value == "paper")  # as published goes without saying
    )
    searched = f", {learning.distance}{measuring.searching.title()}"
    title = f"{learning.title()}{own}{'' if learning.is_baseline else searched}"
    spread = "; mean ± standard deviation" if len(parts) > 1 else ""
    has_graph = not learning.is_baseline
    if not measuring.deliver(setting, records, {"results": means}, title, spread, has_graph):
        return
    rows = (
        (
            head,
            *(metric_cell(mean["metrics"][name], (mean["std"] or {}).get(name)) for mean in means),
        )
        for name, head in zip(wanted, metric_heads(wanted), strict=True)
    )
    heads = [f"k = {mean['k']}" if "k" in mean else learning.title() for mean in means]
    say_table(("", *heads), rows)
    for head, mean in zip(heads, means, strict=True) if per_label else ():
        _say_labels(mean["labels"], f"\n{head}, per label")
    if measuring.output is not None:
        say(f"wrote {measuring.output}")


def _by_label(parts: Sequence[SplitResult]) -> list[Tree]:
    """Results of each label, means over the parts in which they are defined, the worst first."""
    from nearlabel.metrics.label_results import mean_results

    labels = mean_results([part.labels for part in parts if part.labels is not None]).sort_by("f1")
    columns = labels.to_dict()
    _, _, *numbers = columns
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {
            "label": str(label),
            "support": support,
            **defined(dict(zip(numbers, values, strict=True)), numbers),
        }
        for label, support, *values in rows
    ]


def _say_labels(labels: Sequence[Tree], title: str) -> None:
    """Print what there is room for: the worst labels."""
    say(title)
    rows = ([_cell(value) for value in label.values()] for label in labels[:_LABELS_SHOWN])
    heads = [{"average_precision": "av prec"}.get(name, name) for name in labels[0]]
    say_table(heads, rows, shorten=True)
    if len(labels) > _LABELS_SHOWN:
        say(f"… {len(labels) - _LABELS_SHOWN:,} more labels: --json or --output has all")


def _cell(value: object) -> Any:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else value
