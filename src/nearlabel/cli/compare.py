"""compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.baselines.algorithm_registry import ALGORITHMS, BASELINES
from nearlabel.cli.compared_results import Comparison
from nearlabel.cli.measuring import Measuring, wrote
from nearlabel.cli.options import Algorithms, DataOrPictures, Distance, Neighbors, Several, Switch
from nearlabel.cli.options.learning import check_neighbor_options, estimator
from nearlabel.cli.options.others import Others, learner_title
from nearlabel.cli.options.preparation import usual_distance
from nearlabel.cli.output import Block, check_target, counted, steps
from nearlabel.cli.tune import check_figure
from nearlabel.methods.registry import METHODS

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import Part, SplitResult


def compare(
    data: DataOrPictures,
    *,
    algorithm: Annotated[Algorithms, Parameter(show_default=False)] = (),
    k: Neighbors = (),
    thresholds: Switch = False,
    distance: Annotated[tuple[Distance, ...], Several, Parameter(show_default=False)] = (),
    tune: Switch = False,
    baselines: Switch = False,
    figure: Annotated[str | None, Parameter(metavar="FILE")] = None,
    report: Annotated[str | None, Parameter(metavar="FILE")] = None,
    beside: Others = Others(),
    measuring: Measuring = Measuring(),
) -> None:
    """Compare algorithms on one neighbor graph, with each other and with other learners.

    Neighbors are searched once for all algorithms. With --tune, the k, distance and
    other parameters of each are chosen by leave-one-out on the training set alone,
    with one graph per distance. --others adds learners of other libraries, and
    implies --tune.

    Parameters
    ----------
    algorithm
        Algorithms to compare; by default all neighbor methods.
    k
        Number of neighbors; by default 10. With --tune, the values to try, such as 1-30.
    thresholds
        Learn one threshold per label by leave-one-out F1, for each.
    distance
        Distance between items; by default euclidean, or cosine for network features of pictures.
        With --tune, the distances to try; by default euclidean and cosine.
    tune
        Tune the parameters of each algorithm by the first metric of --metric; by default
        ranking_loss, or average_precision with --others.
    baselines
        Also compare the papers' other methods: boosting, ranking SVM, trees and mixtures, with the
        parameters of the papers. They do not use neighbors, so that --k, --distance, --thresholds
        and --tune have no effect on them. Rank-SVM and boosting may take minutes.
    figure
        Draw the first metric of all, with standard errors, to a .png, .svg or .pdf file.
    report
        Write a report with all tables and figures, to one .html file that needs nothing else.

    Examples
    --------
    nearlabel compare yeast --scale minmax
    nearlabel compare songs.csv --k 15 --thresholds --metric macro_f1 micro_f1
    nearlabel compare emotions --algorithm MLkNN PositivekNN --split cv10
    nearlabel compare emotions --tune --scale minmax
    nearlabel compare yeast --algorithm MLkNN --baselines
    nearlabel compare songs.csv --others --figure songs.png
    nearlabel compare songs.csv --split cv10 --report songs.html
    """
    tune = tune or beside.others
    names = list(dict.fromkeys(algorithm)) or list(METHODS)
    names += [name for name in BASELINES if baselines and name not in names]
    asked = {"--k": k, "--thresholds": thresholds, "--distance": distance}
    asked["--search"] = measuring.searching.search
    check_neighbor_options(names, asked)
    if tune and not beside.others and set(names) <= set(BASELINES):
        raise ValueError("--tune: baselines have the parameters of the papers; leave it out")
    measuring.check_split(names)
    if not tune and (len(k) > 1 or len(distance) > 1):
        raise ValueError("--k and --distance take one value each without --tune")
    if tune and thresholds:
        raise ValueError("--thresholds: not together with --tune")
    if measuring.split == "loo" and beside.names:
        raise ValueError("--split loo: --best and --others need held-out test items; use cv10")
    check_figure(figure, data)
    if report is not None:
        _check_report(report, data)
    items = measuring.load(data, [*names, *beside.names])
    if beside.others and measuring.preparation.scale is None:
        measuring = replace(measuring, preparation=replace(measuring.preparation, scale="auto"))
    from nearlabel.metrics import scorer
    from nearlabel.metrics.conventions import has_metric

    of_all = ["hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision"]
    if beside.others:
        of_all = ["average_precision", "ranking_loss", "micro_f1"]  # fewer, as ± needs room
    wanted = [name for name in measuring.metric or of_all if has_metric(measuring.convention, name)]
    by = (measuring.metric or ("average_precision" if beside.others else "ranking_loss",))[0]
    scoring = scorer(by, convention=measuring.convention, at=measuring.at)
    has_graph = not set(names).isdisjoint(METHODS)
    kind, parts = measuring.parts(items, "holdout")
    usual = usual_distance(items)
    first = distance[0] if distance else usual
    how: Tree = {"tuned": by} if tune else {"k": k[0] if k else 10, "distance": first}
    how["thresholds"] = thresholds
    with steps("comparing") as progress:
        work = {"progress": progress, "by_label": report is not None, **measuring.how(items)}
        if tune:
            tried = k or None, distance or ("euclidean", "cosine")
            measured = _tuned(items, names, parts, scoring, tried, measuring.parameters(), work)
            what = f", tuned by {by} on the training items{measuring.searching.title()}"
        else:
            shared = {**measuring.parameters(), "metric": first}
            measured = _as_they_are(items, names, parts, how["k"], shared, thresholds, work)
            cuts = ", one threshold per label" if thresholds else ""
            what = f", k = {how['k']}{cuts}, {first}{measuring.searching.title()}"
    if beside.names:
        measured |= beside.results(items, parts, scoring, measuring)
    compared = Comparison(measured, wanted, [*names, *beside.names[:1]])
    if len(compared.refusals) == len(measured):
        raise ValueError("; ".join(f"{name}: {why}" for name, why in compared.refusals.items()))
    scales = [part.scale for name in names for part in measured[name] if not part.refusal]
    setting = measuring.setting(data, items, kind, parts, how, scales, first if has_graph else None)
    if figure is not None:
        compared.draw(figure, f"{data}, {kind}")
    if not set(names).isdisjoint(BASELINES):
        what = f"{what} (except baselines)" if has_graph or beside.others else ""
    what = f"{counted(len(measured), 'algorithm')}{what}"
    if report is not None:
        compared.write(report, {**setting, "at": measuring.at}, items, what)
    best = compared.best()
    command = None
    if best is not None:
        command = _fit_command(data, best, measured[best], how, usual, measuring)

    def text() -> Iterator[Block]:
        yield from compared.text(" ±{:.3f}" if beside.others else "")
        yield from wrote(measuring.output, figure, report)
        if best is not None:
            named = learner_title(best)
            yield f"to fit {named}, the best of ours by {wanted[0]}:\n{command}"

    # What the setting says of neighbors is not about those that know none.
    others: Tree = {"k": None, "distance": None, "thresholds": False}
    without = {name: value for name, value in others.items() if name in how}

    def about(record: Tree) -> Tree:
        return record if record["algorithm"] in METHODS else {**record, **without}

    measuring.report(
        setting,
        map(about, compared.rows(tune)),
        {"results": [about(compared.record(name)) for name in measured], "fit_command": command},
        what,
        text(),
        f"; means of {len(parts)} parts" if len(parts) > 1 else "",
        has_graph,
    )


def _fit_command(
    data: str, best: str, parts: list[SplitResult], how: Tree, usual: str, measuring: Measuring
) -> str:
    """The command that fits the best algorithm; if it was tuned, with its most frequent choice."""
    if best not in ALGORITHMS:  # the blend
        return measuring.fit_command(data, {"--best": True}, {})
    options: Tree = {"--algorithm": best}
    if best in BASELINES:
        return measuring.fit_command(data, options, {})
    chosen = [dict(part.parameters) for part in parts]
    own = max(chosen, key=chosen.count)
    k = own.pop("n_neighbors", own.pop("per_class", how.get("k")))
    metric = own.pop("metric", how.get("distance"))
    options |= {"--k": k, "--distance": None if metric == usual else metric}
    return measuring.fit_command(data, {**options, "--thresholds": how["thresholds"]}, own)


def _check_report(path: str, data: str) -> None:
    """Refuse a report that could not be written, before the work is done."""
    from nearlabel.experiments.reporting.drawing import report_module

    if Path(path).suffix != ".html":
        raise ValueError(f"--report must end in .html; got {path}")
    check_target("--report", path, data)
    for name in ("jinja2", "matplotlib"):
        report_module(name)


def _tuned(
    items: Dataset,
    names: list[str],
    parts: list[Part],
    scoring: Any,
    tried: tuple[Any, Any],
    shared: Tree,
    work: Tree,
) -> dict[str, list[SplitResult]]:
    """Our algorithms, each with the parameters that are best on the training items."""
    from nearlabel.experiments import evaluate_splits
    from nearlabel.experiments.candidates import tried_parameters, usual_candidates

    n = min(len(part.train) for part in parts)
    candidates = [usual_candidates(name, n, *tried, **shared) for name in names]
    results = evaluate_splits(items, candidates, parts, scorer=scoring, refusals=True, **work)
    return {
        name: [
            replace(part, parameters=tried_parameters(name, part.chosen)) if part.chosen else part
            for part in measured
        ]
        for name, measured in zip(names, results, strict=True)
    }


def _as_they_are(
    items: Dataset,
    names: list[str],
    parts: list[Part],
    k: int,
    shared: Tree,
    thresholds: bool,
    work: Tree,
) -> dict[str, list[SplitResult]]:
    """Our algorithms with one k."""
    import sklearn.cluster  # noqa: F401  of LAML-kNN: so that no method pays for its import

    import nearlabel as nl
    from nearlabel.experiments import evaluate_splits

    models = [estimator(name, k, shared, {}) for name in names]
    if thresholds:
        models = [nl.LabelThresholds(model) if model.keeps_items else model for model in models]
    each = evaluate_splits(items, models, parts, refusals=True, **work)
    return dict(zip(names, each, strict=True))
