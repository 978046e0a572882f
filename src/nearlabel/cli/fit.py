"""fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.feature_list import feature_list, shown_features, warn_of_labels_among_features
from nearlabel.cli.measuring import preparation_text, sizes
from nearlabel.cli.options import (
    Count,
    DataOrPictures,
    Json,
    Part,
    Seed,
    Switch,
    as_typed,
    positive_number,
)
from nearlabel.cli.options.clustering import Clustering
from nearlabel.cli.options.learning import Learning
from nearlabel.cli.options.preparation import Preparation, naming_preparation
from nearlabel.cli.options.reading import LabeledReading, is_table
from nearlabel.cli.options.searching import Searching
from nearlabel.cli.output import check_target, counted, file_size, say, say_folded, say_json, steps

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.datasets.preparing import Preparing

_USUAL_K = 10


def fit(
    data: DataOrPictures,
    *,
    output: Annotated[str, Parameter(alias="-o", metavar="FILE", allow_leading_hyphen=True)],
    k: Count = _USUAL_K,
    best: Switch = False,
    minutes: Annotated[
        float | None, Parameter(converter=positive_number, show_default=False)
    ] = None,
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
    if output.startswith("-"):
        raise ValueError(f"--output must be a file, such as songs.model; got {output}")
    check_target("--output", output, data)
    learning.check_options(k=k != _USUAL_K, searching=searching)
    if best and clustering.cluster is not None:
        raise ValueError("--best cannot be used with --cluster, which fits one method")
    in_blocks = clustering.blocks(data)
    items = in_blocks
    if items is None:
        learners = ["BlendedNeighbors" if best else learning.algorithm]
        items = preparation.load(reading, data, learners, part, searching.jobs)
    else:
        parts = () if part == "all" else ("--part",)
        for word in (*as_typed(preparation), *as_typed(reading), *parts)[:1]:
            option = word.replace("_", "-")
            raise ValueError(f"{option} cannot be used with blocks of vectors, as in {data}")
        preparation = replace(preparation, scale="none")
    learning = learning.of(items)
    import nearlabel as nl
    from nearlabel.cli.picture_items import picture_setting
    from nearlabel.common.journal import journal_path

    shared = {"random_state": seed, **searching.parameters()}
    model = learning.best_model(shared) if best else learning.model(k, shared)
    if best and preparation.learn_distance:
        raise ValueError("--best learns a distance by itself: leave out --learn-distance")
    if minutes is not None and not best:
        raise ValueError("--minutes: only with --best, which leaves out what takes longer")
    if best and preparation.scale is None:
        preparation = replace(preparation, scale="auto")
    with naming_preparation():
        preparing = preparation.of(items).chosen(items.X, items.Y, learning.distance or "euclidean")
    names = _column_names(items, data, reading.format) if in_blocks is None else None
    fitted, plan = _fitted(model, preparing, items, names, minutes, clustering)
    model = fitted[-1] if hasattr(fitted, "steps") else fitted
    had_changes = journal_path(output).exists()
    nl.save(fitted, output)
    if had_changes:
        warnings.warn(
            f"{output} was a model with changes in {output}.journal: both have been replaced by "
            "the new model",
            stacklevel=2,
        )
    if reading.labels:
        warn_of_labels_among_features(items)
    preparation.recommend_scale(items, learning.distance)
    columns = feature_list(fitted, items)
    recall = getattr(model, "search_recall_", None)
    record: Tree = {
        "model": output,
        **learning.record(model),
        "k": getattr(model, "n_neighbors_", None),
        "items": len(items),
        "features": int(items.X.shape[1]),
        "labels": int(items.Y.shape[1]),
        "columns": columns,
        **picture_setting(items),
        "impute": preparing.impute,
        "scale": preparing.scale,
        "learn_distance": preparing.learn_distance,
        **searching.record(),
        "recall": None if recall is None else asdict(recall),
        "bytes": Path(output).stat().st_size,
    }
    if best:
        record["chosen"] = [*([plan] if plan else []), *model.summary().splitlines()]
    if json:
        say_json(record)
        return
    asked = {**record, "scale": preparation.of(items).scale}
    prepared = preparation_text(asked, [preparing.scale])
    neighbors = "" if record["k"] is None else f", {counted(record['k'], 'neighbor')}"
    rows = " (training and test rows)" if items.train is not None else ""
    title = model.title if best else learning.title()
    say(f"{title}{neighbors}{prepared}, learned from {data}{rows}:")
    say(sizes(record))
    if columns:
        say_folded(f"features: {shown_features(columns)}")
    for line in record.get("chosen", ()):
        say_folded(line)
    if recall is not None:
        say(f"approximate search, measured recall {recall}")
    say(f"wrote {output} ({file_size(output)})")


def _column_names(items: Dataset, data: str, format: str | None) -> Sequence[str] | None:
    """The names of features; a table has some even if they are only the numbers 0, 1, 2 …"""
    if items.feature_names is not None:
        return [str(name) for name in items.feature_names]
    return [str(place) for place in range(items.X.shape[1])] if is_table(data, format) else None


def _fitted(
    model: BaseEstimator,
    preparing: Preparing,
    items: Dataset,
    names: Sequence[str] | None,
    minutes: float | None,
    clustering: Clustering,
) -> tuple[Any, str]:
    """The model, fitted to all items, after what prepares their features.

    Where the time of a blend is limited, also what was left out of it, and why.
    """
    import numpy as np

    import nearlabel as nl
    from nearlabel.cli.picture_items import PictureItems

    with naming_preparation():
        transformer = preparing.transformer(items.X)
    X = items.X if transformer is None else transformer.fit_transform(items.X, items.Y)
    plan = ""
    if minutes is not None:
        from nearlabel.blend.time_budget import planned

        model, plan = planned(model, X, items.Y, 60 * minutes)
    with steps("learning") as progress:
        known = {"ids": _ids(items)} if model.keeps_items else {}
        how = {"label_names": items.label_names, "progress": progress, **known}
        clustering.fit(model, X, items.Y, **how)
    first = (
        model if transformer is None else getattr(transformer, "steps", [[0, transformer]])[0][1]
    )
    if names is not None:  # by these a later file's columns are found
        first.feature_names_in_ = np.array(names, dtype=object)
    of_pictures = items.transformer if isinstance(items, PictureItems) else None
    before = [step for step in (of_pictures, transformer) if step is not None]
    return nl.make_pipeline(*before, model) if before else model, plan


def _ids(items: Dataset) -> Any:
    """The names of the rows, or their numbers from 1 where they have none of their own."""
    if items.row_names is not None:
        if len(set(items.row_names.tolist())) == len(items):
            return items.row_names
        warnings.warn("some rows have the same id: rows are known by their numbers", stacklevel=2)
    return range(1, len(items) + 1)
