"""Parameters and fitted attributes of transformers as JSON values and arrays, and back.

Only plain data are supported: numbers, strings, None, numeric types, and lists, tuples, sets,
dicts, slices and arrays of these. What JSON lacks becomes a dict whose only key names its type.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NUMBER_TYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
}


def as_stored(value: Any, what: str, *, types: bool = False) -> Any:
    """A value as it is stored in files.

    Parameters
    ----------
    value : object
    what : str
        What the value is, for the error message if it cannot be stored.
    types : bool, default=False
        Whether the value itself may be a numeric type.
    """
    if isinstance(value, str):
        return str.__str__(value)  # also for subclasses such as NumPy's
    if isinstance(value, np.generic) and value.dtype.name in NUMBER_TYPES:
        return {"scalar": [value.dtype.name, as_stored(value.item(), what)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBER_TYPES:
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1:
        kind = "texts" if value.dtype.kind == "U" else "objects"
        return {kind: [as_stored(item, what) for item in value.tolist()]}
    if isinstance(value, list):
        return [as_stored(item, what) for item in value]
    if isinstance(value, tuple | set | frozenset):
        return {type(value).__name__: [as_stored(item, what) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {
            "dict": [[as_stored(key, what), as_stored(item, what)] for key, item in value.items()]
        }
    if isinstance(value, slice):
        return {"slice": as_stored([value.start, value.stop, value.step], what)}
    if types and isinstance(value, type | np.dtype) and _type_name(value) in NUMBER_TYPES:
        return {"type": _type_name(value)}
    raise TypeError(
        f"{what}={value!r} cannot be saved: model files support numbers, strings, arrays, and "
        "lists of these (joblib or skops can save more)"
    )


def from_stored(stored: Any) -> Any:
    """The value that `as_stored` converted; an error if the stored form is not valid."""
    if isinstance(stored, list):
        return [from_stored(item) for item in stored]
    if isinstance(stored, np.ndarray) and not stored.flags.writeable:  # of a mapped file
        return stored.copy()
    if not isinstance(stored, dict):
        return stored
    ((kind, content),) = stored.items()
    if kind == "scalar":
        name, value = content
        return NUMBER_TYPES[name].type(from_stored(value))
    if kind == "float":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
    if kind == "type":
        return NUMBER_TYPES[content].type
    if kind == "dict":
        return {_text(key): from_stored(item) for key, item in content}
    values = [from_stored(item) for item in content]
    if kind == "texts":
        return np.array([_text(item) for item in values], dtype=np.str_)
    if kind == "objects":
        return np.fromiter(values, object, len(values))
    makers = {"tuple": tuple, "set": set, "frozenset": frozenset}
    return slice(*values) if kind == "slice" else makers[kind](values)


def _type_name(value: Any) -> str:
    try:
        return str(np.dtype(value).name)
    except TypeError:
        return ""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string; got {value!r}")
    return str(value)


def check_length(values: Any, count: Any, what: str) -> None:
    """Raise an error unless there is one value for each of `count` features."""
    if not isinstance(values, list | np.ndarray) or len(values) != count:
        raise ValueError(f"its {what} must have one entry for each of {count} features")
