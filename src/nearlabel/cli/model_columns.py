"""The columns that a fitted pipeline takes, and their kinds, as its steps declare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.common.arrays import Tree

_RANK = ("number", "category", "text")  # if two steps take a column, the last of these counts
_SCALERS = ("MaxAbsScaler", "MinMaxScaler", "StandardScaler", "RobustScaler", "QuantileTransformer")
_KEEP_GAPS = (*_SCALERS, "FunctionTransformer")  # the last one without a function: as they are


@dataclass(frozen=True)
class ModelColumn:
    """A column that a model takes.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "text"}
    values : tuple or None
        The categories, or the words of texts, where they are known.
    gaps : bool
        Whether cells may be missing.
    nan_gaps : bool
        Whether a missing text is NaN to the steps, as in pandas, rather than None.
    ignores_unknown : bool
        Whether other categories count as none of those that are known.
    keeps_gaps : bool
        Whether a missing number is left as it is, for a later step to fill or a model that takes
        it.
    """

    name: str
    kind: str = "number"
    values: tuple[Any, ...] | None = None
    gaps: bool = False
    nan_gaps: bool = False
    ignores_unknown: bool = False
    keeps_gaps: bool = False


def transformers(pipeline: BaseEstimator) -> list[BaseEstimator]:
    """The transformers of a fitted pipeline, in order, without those that are to be skipped."""
    return list(_in_order(step for _, step in pipeline.steps[:-1]))


def model_columns(pipeline: BaseEstimator) -> list[ModelColumn] | None:
    """The columns of a fitted pipeline, in its order; None if they have no names."""
    steps = transformers(pipeline)
    names = _names((steps or [pipeline[-1]])[0])
    if names is None:
        return None
    columns = _distinct(steps, names)
    if not _takes_missing(pipeline[-1]):
        return columns
    return [replace(column, gaps=column.gaps or column.keeps_gaps) for column in columns]


def _distinct(steps: Sequence[BaseEstimator], names: Sequence[str]) -> list[ModelColumn]:
    """The columns of these names that steps take, each once."""
    by_name: dict[str, ModelColumn] = {}
    for column in _of_steps(steps, names):
        before = by_name.setdefault(column.name, column)
        if _RANK.index(before.kind) < _RANK.index(column.kind):
            by_name[column.name] = column
    return [by_name[name] for name in names if name in by_name]


def reading_options(pipeline: BaseEstimator) -> Tree:
    """The arguments of `load` for a file with new items for a fitted pipeline."""
    columns = model_columns(pipeline)
    if columns is None:
        _check_numbers(transformers(pipeline))
        return {"gaps": "found"} if _takes_missing(pipeline[-1]) else {}
    kinds = {kind: [column.name for column in columns if column.kind == kind] for kind in _RANK}
    return {
        "features": [column.name for column in columns],
        "text": kinds["text"],
        "categories": kinds["category"],
        "gaps": [column.name for column in columns if column.gaps],
        "frame": bool(kinds["text"] or kinds["category"]) or _takes_columns_by_name(pipeline),
    }


def with_gaps_as_fitted(pipeline: BaseEstimator, X: Any) -> Any:
    """A frame with NaN for missing texts in columns for which the steps know nothing else."""
    import polars

    for column in model_columns(pipeline) or ():
        if column.nan_gaps and column.kind == "category" and X[column.name].has_nulls():
            cells = [math.nan if cell is None else cell for cell in X[column.name]]
            X = X.with_columns(polars.Series(column.name, cells, polars.Object))
    return X


def unknown_words(pipeline: BaseEstimator, X: Any) -> Iterator[str]:
    """Messages about columns of a frame with categories that the pipeline does not know."""
    from nearlabel.common.messages import shown

    for column in model_columns(pipeline) or ():
        if column.kind != "category" or column.values is None or not column.ignores_unknown:
            continue
        words = X[column.name].drop_nulls().unique(maintain_order=True).to_list()
        unknown = next((word for word in words if word not in column.values), None)
        if unknown is not None:
            yield (
                f"column {shown(column.name)}: {shown(unknown)} is unknown to the model and "
                "treated as none of its values"
            )


def numbered_columns(pipeline: BaseEstimator, names: Sequence[str]) -> list[str] | None:
    """The names 0, 1, 2 … of a model's columns, if it has no others and a file has some of these.

    A table may have such column names. If it has not, columns are matched by position.
    """
    first = (transformers(pipeline) or [pipeline[-1]])[0]
    if _names(first) is not None:
        return None
    numbers = [str(place) for place in range(getattr(first, "n_features_in_", 0))]
    return None if set(names).isdisjoint(numbers) else numbers


def _check_numbers(steps: Sequence[BaseEstimator]) -> None:
    """Refuse a model of categories or texts whose columns have no names to match by."""
    first = steps[0] if steps else None
    if first is None or type(first).__name__ in _SCALERS:  # which may have very many columns
        return
    names = [str(place) for place in range(getattr(first, "n_features_in_", 1))]
    if any(column.kind != "number" for column in _distinct(steps, names)):
        raise ValueError("the model takes categories or texts in columns without names: use Python")


def _in_order(steps: Iterable[BaseEstimator]) -> Iterator[BaseEstimator]:
    """Transformers one after the other, those within pipelines, too, but for skipped ones."""
    for step in steps:
        if hasattr(step, "steps"):
            yield from _in_order(part for _, part in step.steps)
        elif step is not None and not (isinstance(step, str) and step == "passthrough"):
            yield step


def _names(step: BaseEstimator) -> list[str] | None:
    """The names of the columns that a fitted step takes, if it knows them."""
    names = getattr(step, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names.tolist()]
    for _, part in getattr(step, "transformer_list", ()):
        for first in islice(_in_order([part]), 1):
            if (inner := _names(first)) is not None:
                return inner
    return None


def _takes_missing(model: BaseEstimator) -> bool:
    return bool(getattr(model, "takes_missing", False))


def _takes_columns_by_name(step: BaseEstimator) -> bool:
    inside = [part for _, part in getattr(step, "steps", getattr(step, "transformer_list", ()))]
    return hasattr(step, "transformers_") or any(map(_takes_columns_by_name, inside))


def _of_steps(steps: Iterable[BaseEstimator], names: Sequence[str]) -> Iterator[ModelColumn]:
    """The columns of consecutive transformers: those of the first one.

    One that fills gaps gives the same columns to the next, which knows more about them.
    """
    first, *others = [*_in_order(steps)] or [None]
    if first is None:
        yield from (ModelColumn(name, keeps_gaps=True) for name in names)
    elif type(first).__name__ == "FilledTexts":
        yield from _of_steps(others, names)
    elif hasattr(first, "statistics_"):  # SimpleImputer
        is_text = first.statistics_.dtype.kind in "OU"
        follows = [ModelColumn(name, "category" if is_text else "number") for name in names]
        if others and getattr(others[0], "n_features_in_", None) == len(names):
            follows = list(_of_steps(others, names))
        is_last = not others or not hasattr(others[0], "statistics_")
        takes_nan = is_last and first.missing_values is not None
        for column in follows:
            yield replace(column, gaps=True, nan_gaps=takes_nan or column.nan_gaps)
    else:
        passing = list(takewhile(lambda step: type(step).__name__ in _KEEP_GAPS, others))
        fills = len(passing) < len(others) and hasattr(others[len(passing)], "statistics_")
        for column in _of_step(first, names):
            gaps = column.gaps or (fills and column.keeps_gaps)
            yield replace(column, gaps=gaps, keeps_gaps=column.keeps_gaps and passing == others)


def _of_step(step: BaseEstimator, names: Sequence[str]) -> Iterator[ModelColumn]:
    """What a transformer takes."""
    if hasattr(step, "transformer_list"):  # FeatureUnion
        for _, part in step.transformer_list:
            yield from () if part == "drop" else _of_steps([part], names)
    elif hasattr(step, "transformers_"):  # ColumnTransformer
        import numpy as np

        from nearlabel.persistence.stored_columns import column_positions

        own = np.array(names, dtype=object)
        place_of = {name: place for place, name in enumerate(names)}
        for _, part, columns in step.transformers_:
            if not isinstance(part, str) or part != "drop":
                places = column_positions(columns, place_of, len(own))
                yield from _of_steps([part], np.atleast_1d(own[places]).tolist())
    elif type(step).__name__ in (
        *("CountVectorizer", "TfidfVectorizer", "HashingVectorizer"),
        *("FrequentWords", "TextEmbedding"),
    ):
        words = getattr(step, "vocabulary_", getattr(step, "words_", None))
        yield ModelColumn(names[0], "text", None if words is None else tuple(words), gaps=True)
    elif hasattr(step, "categories_"):  # OneHotEncoder, OrdinalEncoder
        ignores = getattr(step, "handle_unknown", "error") != "error"
        for name, values in zip(names, step.categories_, strict=True):
            known = tuple(values.tolist())
            if any(isinstance(value, str) for value in known):
                nan_gaps = any(value != value for value in known)
                yield ModelColumn(name, "category", known, True, nan_gaps, ignores)
            else:
                yield ModelColumn(name, gaps=any(value != value for value in known))
    else:
        keeps = type(step).__name__ in _KEEP_GAPS
        yield from (ModelColumn(name, keeps_gaps=keeps) for name in names)
