"""evaluate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nearlabel.cli.measuring import Measuring, metric_cell, metric_heads, summary, wrote
from nearlabel.cli.options import Counts, DataOrPictures, Switch
from nearlabel.cli.options.learning import Learning
from nearlabel.cli.output import Block, Table, steps

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
    with steps("evaluating") as progress:
        how = measuring.how(items)
        results = evaluate_splits(
            items, models, parts, by_label=per_label, progress=progress, **how
        )
    wanted = list(measuring.metric or results[0][0].metrics)
    means: list[Tree] = []
    rows: list[Tree] = []
    for count, each in zip(k, results, strict=True):
        neighbors = {} if learning.is_baseline else {"k": count}
        mean = {**neighbors, **summary(each, wanted)}
        means.append(mean)
        if per_label:
            mean["labels"] = _by_label(each)
            rows += [{**neighbors, **label} for label in mean["labels"]]
            continue
        for place, part in enumerate(each, 1):
            rows.append({**neighbors, "part": place, **{m: part.metrics[m] for m in wanted}})
    scales = [part.scale for part in results[0]]
    record = learning.record(models[0])
    setting = measuring.setting(data, items, split, parts, record, scales, learning.distance)
    own = "".join(
        f", {name} {value:g}" if isinstance(value, float) else f", {name} {value}"
        for name, value in setting["parameters"].items()
        if not (name == "counts" and value == "paper")  # as published goes without saying
    )
    searched = f", {learning.distance}{measuring.searching.title()}"
    measuring.report(
        setting,
        rows,
        {"results": means},
        f"{learning.title()}{own}{'' if learning.is_baseline else searched}",
        _text(learning.title(), wanted, means, measuring.output),
        "; mean ± standard deviation" if len(parts) > 1 else "",
        not learning.is_baseline,
    )


def _text(
    title: str, wanted: Sequence[str], means: Sequence[Tree], output: str | None
) -> Iterator[Block]:
    """The table of metrics, tables of labels if there are any, and where results are."""
    heads = [f"k = {mean['k']}" if "k" in mean else title for mean in means]
    rows = [
        (
            head,
            *(metric_cell(mean["metrics"][name], (mean["std"] or {}).get(name)) for mean in means),
        )
        for name, head in zip(wanted, metric_heads(wanted), strict=True)
    ]
    yield Table(("", *heads), rows)
    for head, labels in zip(heads, [mean.get("labels") for mean in means], strict=True):
        if labels is None:
            continue
        yield f"\n{head}, per label"
        shorter = [{"average_precision": "av prec"}.get(name, name) for name in labels[0]]
        cells = [[*map(_cell, label.values())] for label in labels[:_LABELS_SHOWN]]
        yield Table(shorter, cells, shorten=True)
        if len(labels) > _LABELS_SHOWN:
            yield f"… {len(labels) - _LABELS_SHOWN:,} more labels: --json or --output has all"
    yield from wrote(output)


def _by_label(parts: Sequence[SplitResult]) -> list[Tree]:
    """Results of each label, means over the parts in which they are defined, the worst first."""
    from nearlabel.metrics.label_results import mean_results

    labels = mean_results([part.labels for part in parts if part.labels is not None]).sort_by("f1")
    columns = {name: column.tolist() for name, column in labels.to_dict().items()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _cell(value: object) -> Any:
    if not isinstance(value, float):
        return value
    return f"{value:.3f}" if math.isfinite(value) else "-"
