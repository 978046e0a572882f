"""A model file, and the items of another file in the form that the model takes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearlabel.cli.model_columns import (
    numbered_columns,
    reading_options,
    transformers,
    unknown_words,
    with_gaps_as_fitted,
)
from nearlabel.cli.options import Part
from nearlabel.cli.options.reading import FileReading, check_unused, part_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.datasets import Dataset


def load_model(path: str, *, journal: bool = False) -> BaseEstimator:
    """Read a model file as a pipeline, whose last step is the model."""
    from sklearn.pipeline import Pipeline

    from nearlabel.common.files import FileError
    from nearlabel.datasets.formats import SUFFIXES
    from nearlabel.persistence.models import load

    try:
        loaded = load(path, journal=journal)
    except FileError as error:
        if Path(path).suffix.lower() in SUFFIXES:  # it is a table
            raise FileError(f"{error} (the model comes first, then the items)") from None
        raise
    pipeline = loaded if isinstance(loaded, Pipeline) else Pipeline([("model", loaded)])
    if not hasattr(pipeline[-1], "rank"):
        raise ValueError(f"{path} holds a {type(pipeline[-1]).__name__}, not a model")
    return pipeline


def check_keeps_items(model: BaseEstimator, path: str, asked: str) -> None:
    """Raise an error if a model that keeps no items is asked for them."""
    if not model.keeps_items:
        raise ValueError(f"{asked}: {path} holds {model.title}, which keeps no items")


def set_jobs(model: BaseEstimator, jobs: int | None) -> None:
    """Set the number of threads of a model; baselines use one."""
    if not model.keeps_items:
        return
    for method in ("estimator", "estimator_"):  # within thresholds
        getattr(model, method, model).set_params(n_jobs=jobs)


def items_for(
    pipeline: BaseEstimator,
    reading: FileReading,
    data: str,
    part: Part,
    others: Sequence[str] = (),
    **labels: Any,
) -> Dataset:
    """Read items with the features of a pipeline; columns are found by their names.

    Pictures are vectors then, by the first step of the pipeline; they may come from `others`, too.
    """
    from nearlabel.cli.picture_items import labeled_pictures, new_pictures, picture_step
    from nearlabel.datasets.frames import is_frame
    from nearlabel.datasets.loading import with_features

    if (step := picture_step(transformers(pipeline))) is not None:
        check_unused(reading, data)
        read = new_pictures([data, *others], step) if labels else labeled_pictures(data, step)
        return part_of(read, part)
    if others:
        raise ValueError(f"unexpected argument {others[0]!r}: only pictures can be several files")
    items = reading.load(data, part, **labels, **reading_options(pipeline))
    names = () if items.feature_names is None else items.feature_names.tolist()
    if (numbers := numbered_columns(pipeline, names)) is not None:
        items = with_features(items, numbers, data)
    if is_frame(items.X):
        for message in unknown_words(pipeline, items.X):
            warnings.warn(f"{data}: {message}", stacklevel=2)
        items = replace(items, X=with_gaps_as_fitted(pipeline, items.X))
    return items


def vectors(pipeline: BaseEstimator, items: Dataset, rows: slice | None = None) -> Any:
    """Features of items, or of some, as the model takes them, after what prepares them."""
    from scipy import sparse

    from nearlabel.cli.picture_items import PictureItems

    X = items.X if rows is None else items.X[rows]
    if sparse.issparse(X) and not _takes_sparse(pipeline, X):
        X = X.toarray()
    done = 1 if isinstance(items, PictureItems) else 0
    for step in transformers(pipeline)[done:]:
        X = step.transform(X)
    return X


def _takes_sparse(pipeline: BaseEstimator, X: Any) -> bool:
    """Whether the steps make of sparse rows what they make of dense ones."""
    from sklearn.utils import get_tags

    if not get_tags(pipeline).input_tags.sparse:
        return False
    # Zeros that are not stored keep rank 0, which is right if no value is negative.
    ranks = [step for step in transformers(pipeline) if hasattr(step, "quantiles_")]
    return not ranks or all(x.size == 0 or x.min() >= 0 for x in (X.data, ranks[0].quantiles_))


def label_name(model: BaseEstimator, label: int) -> str:
    """The name of a label, or its column if it has none."""
    return str(label if model.label_names_ is None else model.label_names_[label])
