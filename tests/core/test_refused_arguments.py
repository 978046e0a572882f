"""Kernels refuse arguments of other sizes, types and layouts, and numbers that are out of range."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


def i64(*values):
    return np.array(values, np.int64)


def i32(*values):
    return np.array(values, np.int32)


def u8(*values):
    return np.array(values, np.uint8)


class Kernel(NamedTuple):
    """A kernel with arguments that it takes.

    Attributes
    ----------
    name : str
    given : dict
    below : dict
        For arrays of numbers from 0: what the first must be below.
    ends : tuple of str
        Arrays of the ends of runs, which must not fall.
    also : tuple of dict
        Further changes that are refused.
    harmless : tuple of dict or str
        Changes that need not be refused: of values, or by the names below.
    """

    name: str
    given: dict[str, Any]
    below: Mapping[str, int] = MappingProxyType({})
    ends: tuple[str, ...] = ()
    also: tuple[dict[str, Any], ...] = ()
    harmless: tuple[Any, ...] = ()

    def mistakes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Changes to one argument, by name."""
        arrays = {name: value for name, value in self.given.items() if np.ndim(value)}
        for name, value in arrays.items():
            yield f"{name} shorter", {name: value[:-1].copy()}
            kind = np.float32 if value.dtype == np.float64 else np.float64
            yield f"{name} of another type", {name: value.astype(kind)}
        for name, limit in self.below.items():
            kind = np.iinfo(self.given[name].dtype)
            for wrong in {max(-1, kind.min), limit, kind.max} - {0}:
                yield f"{name} with {wrong}", {name: changed(self.given[name], 0, wrong)}
        for name in self.ends:
            ends = self.given[name]
            yield f"no {name}", {name: ends[:0].copy()}
            for place, by in ((0, -1), (1, 99), (-1, 1)):
                wrong = changed(ends, place, ends[place] + by)
                yield f"{name} with {wrong[place]} at {place}", {name: wrong}
        yield from (("other values", changes) for changes in self.also)


def changed(array, place, value):
    array = array.copy()
    array.flat[place] = value
    return array


# A circle of three rows, where row i carries label i.
CIRCLE = {"indptr": i64(0, 1, 2, 3), "indices": i64(0, 1, 2)}
TOUCHED = {
    "indptr": i64(0, 2, 2),
    "indices": i64(0, 1),
    "scores": np.array([0.1, 0.3]),
    "group": i64(0, 0),
    "values": np.array([[0.2, 0.5, 0.4]]),
}
PLACES = {name: i64(0, 0) for name in ("above", "lower", "higher")}
LISTS = {
    "places": np.array([[1, 2, 3], [0, -1, -1]], np.int32),
    "distances": np.array([[1.0, 2.0, 3.0], [1.0, np.inf, np.inf]]),
    "lengths": i32(3, 1),
}
KERNELS = [
    Kernel(
        "neighbor_counts",
        {"graph": i64(1, 2, 0)[:, None], **CIRCLE, "labels": 3},
        {"graph": 3, "indices": 3},
        ("indptr",),
        (
            {"labels": -1},
            {"labels": 2**31},
            {"indptr": i64(0, 4, 4, 4), "indices": i64(0, 1, 2, 2)},  # more than there are labels
        ),
        ("graph shorter",),
    ),
    Kernel(
        "add_to_histograms",
        {
            "graph": i64(1, 2, 0)[:, None],
            "rows": i64(0, 1, 2),
            **CIRCLE,
            "start": i64(0, 2, 4, 6),
            "with_label": np.zeros(6, np.int64),
            "without_label": np.zeros(6, np.int64),
        },
        {"graph": 3, "rows": 3, "indices": 3},
        ("indptr", "start"),
        ({"start": i64(0, 1, 2, 3)}, {"graph": np.array([[1, 1], [2, 2], [0, 0]])}),
    ),
    Kernel(
        "look_up",
        {
            "table": np.zeros(6),
            "start": i64(0, 2, 4, 6),
            "label": i64(2),
            "count": i32(1),
            "out": np.zeros(1),
        },
        {"label": 3, "count": 2},
        ("start",),
    ),
    Kernel(
        "top_labels",
        {
            **TOUCHED,
            "order": np.array([[1, 2, 0]]),
            "labels": np.zeros((2, 2), np.int32),
            "best_scores": np.zeros((2, 2)),
        },
        {"indices": 3, "group": 1, "order": 3},
        ("indptr",),
        (
            {"order": np.array([[1, 1, 1]]), "indptr": i64(1, 2, 2)},
            {"labels": np.zeros((2, 4), np.int32), "best_scores": np.zeros((2, 4))},
        ),
    ),
    Kernel(
        "fill_scores",
        {**TOUCHED, "out": np.zeros((2, 3))},
        {"indices": 3, "group": 1},
        ("indptr",),
    ),
    Kernel(
        "top_of_dense",
        {
            "scores": np.zeros((2, 3)),
            "labels": np.zeros((2, 2), np.int32),
            "best_scores": np.zeros((2, 2)),
        },
        also=({"labels": np.zeros((2, 4), np.int32), "best_scores": np.zeros((2, 4))},),
    ),
    Kernel(
        "places_in_dense",
        {
            "scores": np.array([[0.1, 0.2, 0.3]]),
            "indptr": i64(0, 2),
            "indices": i64(0, 2),
            **PLACES,
        },
        {"indices": 3},
        ("indptr",),
    ),
    Kernel(
        "places_in_touched",
        {
            "touched_indptr": i64(0, 1),
            "touched_indices": i64(1),
            "touched_scores": np.array([0.5]),
            "group": i64(0),
            "values": np.array([[0.1, 0.2, 0.3]]),
            "order": np.array([[2, 1, 0]]),
            "indptr": i64(0, 2),
            "indices": i64(0, 2),
            **PLACES,
        },
        {"touched_indices": 3, "group": 1, "order": 3, "indices": 3},
        ("touched_indptr", "indptr"),
    ),
    Kernel(
        "add_neighbor",
        {
            "neighbor": i64(1, 0),
            "indptr": i64(0, 1, 2),
            "indices": i64(0, 2),
            "own": np.zeros((2, 3), np.uint8),
            "counts": np.zeros((2, 3), np.uint16),
            "cells": np.zeros((2, 3, 2), np.int64),
        },
        {"neighbor": 2, "indices": 3},
        ("indptr",),
        ({"cells": np.zeros((2, 3, 1), np.int64)},),
    ),
    Kernel(
        "values_of_counts",
        {
            "table": np.zeros((2, 3, 2)),
            "own": np.zeros((2, 3), np.uint8),
            "counts": np.zeros((2, 3), np.uint16),
            "out": np.zeros((2, 3)),
        },
        {"counts": 2},
    ),
    Kernel(
        "count_changes",
        {
            "rows": i64(0, 1, 2),
            "before": i64(1, 2, 0)[:, None],
            "after": i64(2, 2, 0)[:, None],
            "indptr_before": i64(0, 1, 2, 3),
            "indices_before": i64(0, 1, 2),
            "indptr_after": i64(0, 1, 2, 3),
            "indices_after": i64(0, 1, 2),
            "relabelled": u8(1, 0, 0),
            "labels": 3,
        },
        {"rows": 3, "before": 3, "after": 3, "indices_before": 3, "indices_after": 3},
        ("indptr_before", "indptr_after"),
        (
            {"labels": -1},
            {"labels": 2**31},
            {"after": np.array([[1, 2], [2, 0], [0, 1]])},
            {"indptr_after": i64(0, 0, 0, 4), "indices_after": i64(0, 1, 2, 2)},
        ),
        (
            "relabelled shorter",
            {"indptr_before": i64(0, 3, 3, 3), "indices_before": i64(0, 0, 0)},  # repeated
            {"indptr_after": i64(0, 0, 3, 3), "indices_after": i64(0, 0, 0)},
        ),
    ),
    Kernel(
        "copy_tables",
        {
            "begin": i64(0),
            "size": i64(1),
            "to": i64(1),
            "numbers": i64(5, 6, 7, 8),
            "target": i64(0, 0, 0, 0),
        },
        {"begin": 2, "to": 2, "size": 2},
        also=({"size": i64(1, 1)},),
        harmless=("numbers shorter",),
    ),
    Kernel(
        "tally_admissible",
        {
            "query_indptr": i64(0, 1, 2),
            "query_labels": i64(0, 0),
            "query_counts": i32(1, 3),
            "indptr": i64(0, 1, 2, 4),
            "indices": i64(0, 0, 0, 1),
            "entries": i32(2, 3, 5, 2),
            "start": i64(0, 4, 5),
            "light_with": i64(0, 1, 0, 0, 0),
            "light_without": i64(0, 1, 0, 0, 2),
            "is_light": u8(1, 1, 0),
            "posting_indptr": i64(0, 0, 2, 3, 3, 3),
            "posting_rows": i64(0, 1, 2),
            "tolerance": 1,
            "admissible": np.zeros(2, np.int64),
            "with_label": np.zeros((2, 2), np.int32),
            "without_label": np.zeros((2, 2), np.int32),
        },
        {"query_labels": 2, "query_counts": 4},
        ("query_indptr", "start"),
        (
            {"query_indptr": i64(0, 2, 2)},
            {"indptr": i64(0, 1, 3, 2)},
            {"indptr": i64(0, 1, 2, 5)},
            {"indptr": i64(0, 1, -2, 4)},
            {"indices": i64(0, 0, 0, 2)},
            {"indices": i64(0, 0, 0, -1)},
            {"posting_indptr": i64(0, 0, 3, 2, 3, 3)},
            {"posting_indptr": i64(0, 0, 2, 9, 9, 9)},
            {"posting_indptr": i64(0, 0, -1, 3, 3, 3)},
            {"posting_rows": i64(0, 1, 3)},
            {"posting_rows": i64(0, 1, -1)},
            {"query_counts": i32(1, 0)},
            {"query_labels": i64(1, 0)},
            {"start": i64(0, 4, 4)},
            {"tolerance": -1},
            {"tolerance": 2**31},
        ),
    ),
    Kernel(
        "best_cuts",
        {
            "weights": np.ones((2, 2)),
            "reached": u8(1, 1),
            "rows": i32(0, 1),
            "start": i64(0, 2),
            "known": i64(2),
            "first": i64(0, 1),
            "ends": i32(1),
            "rest": i32(0),
            "losses": np.zeros(1),
            "cuts": i64(0),
        },
        {"rows": 2, "known": 3, "ends": 3, "rest": 2},
        ("start", "first"),
        ({"weights": np.zeros((2, 3))}, {"ends": i32(1, 0), "first": i64(0, 2)}),
    ),
    Kernel(
        "add_weighted_products",
        {
            "indptr": i64(0, 1, 2),
            "indices": i64(0, 1),
            "data": np.array([1.0, 2.0]),
            "h": np.ones(2),
            "sums": np.zeros((2, 2)),
        },
        {"indices": 2},
        ("indptr",),
    ),
    Kernel(
        "insert_neighbors",
        {**LISTS, "row": i64(0, 0), "place": i32(9, 8), "distance": np.array([2.0, 1.5])},
        {"lengths": 4, "row": 2},
    ),
    Kernel(
        "drop_neighbors",
        {**LISTS, "rows": i64(0), "gone": u8(0, 1, 0, 1)},
        {"lengths": 4, "rows": 2},
        also=({"gone": u8(0, 0, 1)}, {"lengths": i32(3, 2), "rows": i64(1)}),
        harmless=("rows shorter", "distances of another type"),
    ),
    Kernel(
        "left_without",
        {
            "places": LISTS["places"],
            "lengths": LISTS["lengths"],
            "gone": u8(0, 0, 1, 1),
            "few": i32(3, 2),
            "left": i32(0, 0),
            "first": i32(0, 0),
        },
        {"lengths": 4},
        also=({"gone": u8(0, 0, 1)},),
        harmless=("few shorter",),
    ),
]
REFUSED = [
    pytest.param(kernel, changes, id=f"{kernel.name}-{what}")
    for kernel in KERNELS
    for what, changes in kernel.mistakes()
    if what not in kernel.harmless
]


def call(kernel, **changes):
    given = {
        name: np.copy(value) if np.ndim(value) else value for name, value in kernel.given.items()
    }
    getattr(CORE, kernel.name)(*(given | changes).values())


@pytest.mark.parametrize(("kernel", "changes"), REFUSED)
def test_a_mistake_in_one_argument_is_refused(kernel, changes):
    with pytest.raises((ValueError, TypeError)):
        call(kernel, **changes)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_what_is_taken_does_no_harm(kernel):
    """As the sanitizers see; longer arrays and such with gaps are among it."""
    call(kernel)
    wrong = dict(kernel.mistakes())
    for one in kernel.harmless:
        call(kernel, **(wrong[one] if isinstance(one, str) else one))
    for name, value in kernel.given.items():
        if np.ndim(value):
            for other in (
                np.concatenate([value, value[-1:]]),
                np.repeat(value, 2, axis=-1)[..., ::2],
            ):
                with suppress(ValueError, TypeError):
                    call(kernel, **{name: other})
