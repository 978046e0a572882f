"""evaluate."""

from __future__ import annotations

from nearlabel.cli.measuring import Measuring, defined, metric_cell, metric_heads, summary
from nearlabel.cli.options import Counts, Data
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.learning import Learning
from nearlabel.cli.output import say, say_table, steps


def evaluate(
    data: Data,
    *,
    k: Counts = (10,),
    learning: Learning = Learning(),
    measuring: Measuring = Measuring(),
) -> None:
    """Fit on a training set, measure on a test set.

    Parameters
    ----------
    k
        Number of neighbors; several values share one search.

    Examples
    --------
    nearlabel evaluate emotions --k 8 --scale minmax --convention mulan
    nearlabel evaluate songs.csv --split cv10 --k 5 10 20
    nearlabel evaluate yeast --metric ranking_loss average_precision --json
    nearlabel evaluate yeast --algorithm PositivekNN --k 40 --scale minmax
    """
    items = measuring.load(data)
    from nearlabel.experiments import evaluate_splits

    models = [learning.model(count, measuring.parameters()) for count in k]
    split, parts = measuring.parts(items, "cv10")
    with steps("evaluating") as progress, naming(scale="--scale"):
        results = evaluate_splits(items, models, parts, progress=progress, **measuring.how())
    found = {count: [one.metrics for one in each] for count, each in zip(k, results, strict=True)}
    wanted = list(measuring.metric or found[k[0]][0])
    told = measuring.told(data, items, split, parts, learning.told(models[0]))
    means = [{"k": count, **summary(metrics, wanted)} for count, metrics in found.items()]
    records = (
        {"k": count, "part": place, **defined(metrics, wanted)}
        for count, of_model in found.items()
        for place, metrics in enumerate(of_model, 1)
    )
    own = "".join(
        f", {name} {value:g}" if isinstance(value, float) else f", {name} {value}"
        for name, value in told["parameters"].items()
    )
    title = f"{learning.title()}{own}, {learning.distance}{measuring.searching.title()}"
    spread = "; mean ± standard deviation" if len(parts) > 1 else ""
    if not measuring.deliver(told, records, {"results": means}, title, spread):
        return
    rows = (
        (head, *(metric_cell(one["metrics"][name], (one["std"] or {}).get(name)) for one in means))
        for name, head in zip(wanted, metric_heads(wanted), strict=True)
    )
    say_table(("", *(f"k = {one['k']}" for one in means)), rows)
    if measuring.output is not None:
        say(f"wrote {measuring.output}")
