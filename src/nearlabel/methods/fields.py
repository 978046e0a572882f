"""Kinds of parameters and learned values, as stored in model files.

A method declares what it learns as `Field` objects, each with its name in files, its attribute and
its valid values. Saving, loading and validation follow from that. Everything that is read is
checked as untrusted input: a wrong index would crash the interpreter later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Tree, text_array
from nearlabel.common.tag_lists import tag_array
from nearlabel.common.validation import check_choice, check_integer, check_real

_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Field(ABC):
    """A value that a method learns: its key in files and its attribute."""

    key: str
    attribute: str

    @abstractmethod
    def write(self, model: Any, learned: Tree) -> None:
        """Add the value to what the model has learned, a tree of plain values and arrays."""

    @abstractmethod
    def read(self, model: Any, learned: Tree, sizes: dict[str, int]) -> None:
        """Set the attribute from a tree; a ValueError or the like if it is not valid.

        `sizes` has the numbers of rows, labels and features as n, q and d.
        """


@dataclass(frozen=True)
class Value(Field):
    """A value that is checked by itself, as a parameter and when a file is read."""

    @abstractmethod
    def check(self, value: object, sizes: dict[str, int] | None = None) -> object:
        """The validated value; an error that names the key if it is not valid."""

    def write(self, model: object, learned: Tree) -> None:
        learned[self.key] = getattr(model, self.attribute)

    def read(self, model: object, learned: Tree, sizes: dict[str, int]) -> None:
        setattr(model, self.attribute, self.check(learned[self.key], sizes))


@dataclass(frozen=True)
class Real(Value):
    """A finite number; `absent`, if given, is a value that JSON lacks, stored as null."""

    low: float = -_LARGEST
    high: float = _LARGEST
    absent: float | None = None

    def write(self, model: object, learned: Tree) -> None:
        value = float(getattr(model, self.attribute))
        learned[self.key] = value if np.isfinite(value) else None

    def check(self, value: object, sizes: dict[str, int] | None = None) -> float:
        if value is None and self.absent is not None:
            return self.absent
        return check_real(value, self.key, low=self.low, high=self.high)


@dataclass(frozen=True)
class Integer(Value):
    """An integer from `low` up, at most the number of rows if `at_most_rows`."""

    low: int = 0
    at_most_rows: bool = False

    def check(self, value: object, sizes: dict[str, int] | None = None) -> int:
        high = sizes["n"] if sizes and self.at_most_rows else None
        return check_integer(value, self.key, low=self.low, high=high)


@dataclass(frozen=True)
class Choice(Value):
    """One of several strings, or None if that is among them.

    `absent`, if given, is the value for older files, which lack it.
    """

    choices: tuple[str | None, ...] = ()
    absent: str | None = None

    def read(self, model: object, learned: Tree, sizes: dict[str, int]) -> None:
        if self.absent is not None and self.key not in learned:
            learned = {self.key: self.absent}
        super().read(model, learned, sizes)

    def check(self, value: object, sizes: dict[str, int] | None = None) -> object:
        if None not in self.choices:
            return check_choice(value, self.key, self.choices)
        words = [word for word in self.choices if word is not None]
        return None if value is None else check_choice(value, f"{self.key} (or None)", words)


@dataclass(frozen=True)
class Reals(Value):
    """An array of floats between bounds.

    Its shape is in letters: n rows, q labels, d features; any other letter stands for the size at
    its first occurrence. If `optional` names a key that the file lacks, the array is None. If
    `transposed`, the file has the transposed array.
    """

    shape: str = "q"
    low: float = -_LARGEST
    high: float = _LARGEST
    nan: bool = False
    optional: str = ""
    transposed: bool = False

    def write(self, model: object, learned: Tree) -> None:
        array = getattr(model, self.attribute)
        if array is not None:
            learned[self.key] = array.T if self.transposed else array

    def read(self, model: object, learned: Tree, sizes: dict[str, int]) -> None:
        if self.optional and self.optional not in learned:
            setattr(model, self.attribute, None)
            return
        super().read(model, learned, sizes)

    def check(self, value: object, sizes: dict[str, int] | None = None) -> Array:
        sizes = {} if sizes is None else sizes
        array = stored_array(value, self.key, "f", len(self.shape))
        array = array.T if self.transposed else array
        _check_shape(array, self.key, self.shape, sizes)
        inside = (array >= self.low) & (array <= self.high)
        if not np.all(inside | np.isnan(array) if self.nan else inside):
            raise ValueError(f"its {self.key} contain a number out of range")
        return array


@dataclass(frozen=True)
class Numbers(Value):
    """An array of integers, each below the size that a letter stands for."""

    shape: str = "n"
    below: str = "m"

    def check(self, value: object, sizes: dict[str, int] | None = None) -> Array:
        sizes = {} if sizes is None else sizes
        array = stored_array(value, self.key, "i", len(self.shape))
        _check_shape(array, self.key, self.shape, sizes)
        if array.size and not 0 <= array.min() <= array.max() < sizes[self.below]:
            raise ValueError(f"its {self.key} must be integers below {sizes[self.below]}")
        return array


def stored_array(array: object, key: str, kinds: str, ndim: int) -> Array:
    """An array of a tree with the expected number of dimensions and kind of numbers."""
    if not isinstance(array, np.ndarray) or array.ndim != ndim or array.dtype.kind not in kinds:
        raise TypeError(f"its {key} must be a {ndim}-d array of numbers")
    return array


def stored_names(stored: object, count: int) -> Array | None:
    """Names of a tree, or None if it has none."""
    if stored is None:
        return None
    if not isinstance(stored, list) or len(stored) != count:
        raise ValueError(f"its names must be {count} strings")
    return text_array(stored)


def stored_tags(stored: object, count: int) -> Array:
    """Tags of a tree: unique strings and integers."""
    if not isinstance(stored, list) or len(stored) != count:
        raise ValueError(f"its names must be {count} tags")
    if not all(type(tag) in (str, int) for tag in stored) or len(set(stored)) < count:
        raise ValueError("its tags must be unique strings and integers")
    return tag_array(stored)


def _check_shape(array: Array, key: str, shape: str, sizes: dict[str, int]) -> None:
    for letter, size in zip(shape, array.shape, strict=True):
        if letter in "nqd" and letter not in sizes:
            raise ValueError(f"it has {key} but no vectors")
        if size != sizes.setdefault(letter, size) or not size:
            raise ValueError(f"the shape of its {key} does not match its labels and vectors")
