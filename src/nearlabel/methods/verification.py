"""Verification of a model: everything is computed again from its vectors and labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.methods.changes import learned_again
from nearlabel.methods.fitted_model import FittedModel, keeps_neighbors
from nearlabel.methods.items import Items
from nearlabel.methods.model_trees import learned_tree
from nearlabel.search import build_index, recall_of, sample_rows

_ROWS_AT_ONCE = 65536
_DIGITS = 1e-12  # tolerance for numbers that are not counts


@dataclass(frozen=True)
class Verification:
    """The result of `verify`; true if everything agrees.

    Attributes
    ----------
    items : int
        Training rows that were searched and counted again.
    compared : tuple of str
        What was compared.
    differences : tuple of str
        Descriptions of what differs; empty if everything agrees.
    """

    items: int
    compared: tuple[str, ...]
    differences: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        compared = f"{', '.join(self.compared)} of {self.items:,} rows"
        said = "; ".join(self.differences) or "all agree with the vectors and labels"
        return f"{compared}: {said}"


def verified(model: FittedModel, progress: Progress | None) -> Verification:
    """Search and learn again from the vectors and labels of a model, and compare."""
    items, compared, differences = model.items_, ["labels"], list[str]()

    def result() -> Verification:
        return Verification(len(items), tuple(compared), tuple(differences))

    counted = np.bincount(items.alive_labels.indices, minlength=items.n_labels)
    for label in np.flatnonzero(counted != items.totals)[:1]:
        differences.append(f"{counted[label]} rows have label {label}, not {items.totals[label]}")
    if items.store is None:
        return result()
    compared.append("vectors")
    try:
        for start in range(0, items.n_places, _ROWS_AT_ONCE):  # check all blocks of a mapped file
            items.store.take(slice(start, start + _ROWS_AT_ONCE))
    except FileError as error:
        differences.append(str(error))
        return result()
    k = min(model.n_neighbors_, len(items) - 1)
    known = items.known_neighbors(k) if keeps_neighbors(model) else None
    is_exact = model.search_recall_ is None
    # An approximate search need not find the same neighbors twice: compare its recall instead.
    again = learned_again(model, progress=progress, search=known is None or is_exact)
    if known is not None and is_exact:
        compared.append("neighbors")
        searched_again = again.items_.known_neighbors(k)
        assert searched_again is not None
        differences += _neighbor_differences(items, known, searched_again)
    elif known is not None:
        recall, least = _recall_of(known, items), items.least_recall
        compared.append(f"neighbors (recall {recall})")
        if recall.value < least - 3 * recall.standard_error:
            differences.append(f"recall is below {least}")
    compared.append("what was learned")
    differences += _tree_differences(learned_tree(model), learned_tree(again), "")
    return result()


def _neighbor_differences(
    items: Items, mine: NeighborGraph, theirs: NeighborGraph
) -> Iterator[str]:
    wrong = np.any((mine.indices != theirs.indices) | (mine.distances != theirs.distances), axis=1)
    if wrong.any():
        example = items.ids(items.places[np.flatnonzero(wrong)[:1]]).tolist()[0]
        yield f"{np.count_nonzero(wrong):,} rows have other neighbors, such as {example!r}"


def _recall_of(known: NeighborGraph, items: Items) -> Recall:
    """The recall of the known neighbors, on a sample of the rows."""
    assert items.store is not None
    rows = sample_rows(len(items), seed=len(items))
    own = known.take(rows)
    vectors = items.store.take(items.places)
    exact = build_index(vectors, items.metric, "exact").graph(own.k + 1, vectors[rows])
    return recall_of(own.distances, exact.without(rows))


def _tree_differences(mine: object, theirs: object, name: str) -> Iterator[str]:
    """Where two trees of what was learned differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in sorted(mine):  # a model from an older file may lack newer attributes
            yield from _tree_differences(mine[key], theirs.get(key), f"{name} {key}".strip())
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for place, pair in enumerate(zip(mine, theirs, strict=True), 1):
            yield from _tree_differences(*pair, f"{name} {place}")
    elif isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        if not _are_equal(mine, theirs):
            yield f"{name} differ"
    elif mine != theirs and not (
        isinstance(mine, float)
        and isinstance(theirs, float)
        and _are_equal(np.array(mine), np.array(theirs))
    ):
        yield f"{name} is {mine!r}, but should be {theirs!r}"


def _are_equal(mine: Array, theirs: Array) -> bool:
    """Whether two arrays are equal: counts exactly, other numbers up to rounding errors."""
    if mine.shape != theirs.shape or mine.dtype.kind != "f":
        return bool(np.array_equal(mine, theirs))
    return bool(np.allclose(mine, theirs, rtol=_DIGITS, atol=_DIGITS, equal_nan=True))
