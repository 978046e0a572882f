"""fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.feature_list import features_text, source_columns, warn_of_binary_features
from nearlabel.cli.options import Count, DataOrPictures, Json, Minutes, Part, Seed, Switch
from nearlabel.cli.options.clustering import Clustering
from nearlabel.cli.options.learning import Learning
from nearlabel.cli.options.preparation import Preparation, picture_setting, preparation_text
from nearlabel.cli.options.reading import LabeledReading, is_table, sizes, sizes_of
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import (
    Block,
    Paragraph,
    check_target,
    counted,
    file_size,
    render,
    steps,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.datasets.preparing import Preparing

_USUAL_K = 10


def fit(
    data: DataOrPictures,
    *,
    output: Annotated[str, Parameter(alias="-o", metavar="FILE")],
    k: Count = _USUAL_K,
    best: Switch = False,
    minutes: Minutes = None,
    part: Part = "all",
    seed: Seed = 0,
    json: Json = False,
    learning: Learning = Learning(),
    preparation: Preparation = Preparation(),
    searching: Searching = Searching(),
    clustering: Clustering = Clustering(),
    reading: LabeledReading = LabeledReading(),
) -> None:
    """Fit a model to labeled items and write it to a file.

    Parameters
    ----------
    output
        Model file to write; an interrupt leaves no half-written file.
    k
        Number of neighbors.
    best
        Choose everything on the training rows, for the best predictions: the scale, a distance
        learned from the labels, and the weights of several methods. Takes longer; --k is not used.
    minutes
        About how many minutes --best may take; parts of it that would take longer are left out.
    part
        Rows to fit to, if the data set has a split.
    seed
        Random seed.

    Examples
    --------
    nearlabel fit songs.csv -o songs.model
    nearlabel fit songs.csv -o songs.model --best
    nearlabel fit many.npz -o many.model --best --minutes 10
    nearlabel fit songs.csv -o songs.model --tags moods --id title --scale minmax
    nearlabel fit books.csv -o books.model --text title abstract --impute median
    nearlabel fit emotions.arff -o emotions.model --k 8
    nearlabel fit songs.csv -o songs.model --algorithm LAMLkNN --set n_clusters=10
    nearlabel fit yeast -o yeast.model --part train
    nearlabel fit many.npz -o many.model --search approximate --jobs -1
    nearlabel fit scenes -o scenes.model --features auto
    nearlabel fit blocks -o blocks.model --cluster local
    """
    check_target("--output", output, data)
    learning.check_options(k=k != _USUAL_K, searching=searching)
    if best and clustering.cluster is not None:
        raise ValueError("--best cannot be used with --cluster, which fits one method")
    if best and preparation.learn_distance:
        raise ValueError("--best learns a distance by itself: leave out --learn-distance")
    if minutes is not None and not best:
        raise ValueError("--minutes: only with --best, which leaves out what takes longer")
    items = None
    if clustering.cluster is not None:
        items = clustering.blocks(data, part, preparation, reading)
    if items is None:
        learners = ["BlendedNeighbors" if best else learning.algorithm]
        items = preparation.load(reading, data, learners, part, searching.jobs)
        if items.feature_names is None and is_table(data, reading.format):  # only numbers
            import numpy as np

            items = replace(items, feature_names=np.arange(items.X.shape[1]).astype(str))
    else:
        preparation = replace(preparation, scale="none")
    learning = learning.of(items)
    from nearlabel.common.journal import journal_path
    from nearlabel.persistence.models import save

    shared = {"random_state": seed, **searching.parameters()}
    model = learning.best_model(shared) if best else learning.model(k, shared)
    if best and preparation.scale is None:
        preparation = replace(preparation, scale="auto")
    asked = preparation.of(items)
    preparing = asked.chosen(items.X, items.Y, learning.distance or "euclidean")
    fitted, plan = _fitted(model, preparing, items, minutes, clustering)
    had_changes = journal_path(output).exists()
    save(fitted, output)
    if had_changes:
        warnings.warn(
            f"{output} was a model with changes in {output}.journal: both have been replaced by "
            "the new model",
            stacklevel=2,
        )
    if reading.labels:
        warn_of_binary_features(items)
    preparation.recommend_scale(items, learning.distance)
    model = fitted[-1] if hasattr(fitted, "steps") else fitted
    record: Tree = {
        "model": output,
        **learning.record(model),
        "k": getattr(model, "n_neighbors_", None),
        **sizes_of(items),
        "columns": source_columns(items),
        **picture_setting(items),
        "impute": preparing.impute,
        "scale": preparing.scale,
        "learn_distance": preparing.learn_distance,
        **searching.record(),
        "recall": getattr(model, "search_recall_", None),
        "bytes": Path(output).stat().st_size,
    }
    if best:
        record["chosen"] = [*([plan] if plan else []), *model.summary().splitlines()]

    def text() -> Iterator[Block]:
        title = model.title if best else learning.title()
        neighbors = "" if record["k"] is None else f", {counted(record['k'], 'neighbor')}"
        prepared = preparation_text({**record, "scale": asked.scale}, [preparing.scale])
        rows = " (training and test rows)" if items.train is not None else ""
        yield f"{title}{neighbors}{prepared}, learned from {data}{rows}:"
        yield sizes(record)
        if record["columns"]:
            yield Paragraph(features_text(record["columns"]))
        yield from map(Paragraph, record.get("chosen", ()))
        if record["recall"] is not None:
            yield f"approximate search, measured recall {record['recall']}"
        yield f"wrote {output} ({file_size(output)})"

    render(record, text(), json)


def _fitted(
    model: BaseEstimator,
    preparing: Preparing,
    items: Dataset,
    minutes: float | None,
    clustering: Clustering,
) -> tuple[Any, str]:
    """The model, fitted to all items, after what prepares their features.

    Where the time of a blend is limited, also what was left out of it, and why.
    """
    import nearlabel as nl

    transformer = preparing.transformer(items.X)
    X = items.X if transformer is None else transformer.fit_transform(items.X, items.Y)
    plan = ""
    if minutes is not None:
        from nearlabel.blend.time_budget import planned

        model, plan = planned(model, X, items.Y, 60 * minutes)
    with steps("learning") as progress:
        known = {"ids": _ids(items)} if model.keeps_items else {}
        how = {"label_names": items.label_names, "progress": progress, **known}
        if clustering.cluster is None:
            model.fit(X, items.Y, **how)
        else:
            nl.distributed.fit(
                model, X, items.Y, clustering.cluster, folder=clustering.cluster_folder, **how
            )
    before = [
        step for step in (getattr(items, "transformer", None), transformer) if step is not None
    ]
    if items.feature_names is not None:  # by these a later file's columns are found
        first = model if transformer is None else transformer
        first = first.steps[0][1] if hasattr(first, "steps") else first
        first.feature_names_in_ = items.feature_names.astype(object)
    return nl.make_pipeline(*before, model) if before else model, plan


def _ids(items: Dataset) -> Any:
    """The names of the rows, or their numbers from 1 where they have none of their own."""
    if items.row_names is not None:
        if len(set(items.row_names.tolist())) == len(items):
            return items.row_names
        warnings.warn("some rows have the same id: rows are known by their numbers", stacklevel=2)
    return range(1, len(items) + 1)
