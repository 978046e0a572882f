"""Tables with categories and text columns, as polars DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import shown

if TYPE_CHECKING:
    from polars import DataFrame


def import_polars() -> ModuleType:
    """The module polars; if it is not installed, an error that says how to install it."""
    what = "text columns, missing categories and Parquet files need polars"
    module: ModuleType = extra_module("polars", what, "tables")
    return module


def is_frame(X: object) -> TypeGuard[DataFrame]:
    """Whether X is a polars DataFrame, without importing polars."""
    return type(X).__module__.split(".")[0] == "polars"


def frame_of(columns: Mapping[str, Array | Sequence[str | None]]) -> DataFrame:
    """A frame of columns: arrays of numbers, in which NaN is a missing value, or str and None."""
    polars = import_polars()
    series = (
        polars.Series(
            name, values, polars.Float64 if isinstance(values, np.ndarray) else polars.String
        )
        for name, values in columns.items()
    )
    frame: DataFrame = polars.DataFrame(list(series))
    return frame


def number_columns(frame: DataFrame) -> list[str]:
    """The columns that contain numbers, not strings."""
    return [name for name, dtype in frame.schema.items() if dtype.is_numeric()]


def checked_frame(frame: DataFrame) -> DataFrame:
    """A frame of finite numbers, missing values and strings, or a ValueError."""
    polars = import_polars()
    if 0 in frame.shape:
        raise ValueError(f"X must have rows and columns; got a frame of shape {frame.shape}")
    for name, dtype in frame.schema.items():
        if dtype not in (polars.Float64, polars.String):
            raise ValueError(f"X must have Float64 and String columns; {shown(name)} is {dtype}")
        if dtype == polars.Float64 and frame[name].is_infinite().any():
            raise ValueError(f"X must be finite; one value of {shown(name)} is infinite")
    return frame
