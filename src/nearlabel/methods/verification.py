"""Verification of a model: everything is computed again from its vectors and labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.methods.changes import NextState
from nearlabel.methods.fitted_model import FittedModel
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
        if not self.differences:
            return f"{compared}: all agree with the vectors and labels"
        return f"{compared}: {'; '.join(self.differences)}"


def verified(
    model: FittedModel, again: NextState[FittedModel], progress: Progress | None
) -> Verification:
    """Search and learn again from the vectors and labels of a model, and compare.

    `again` is the next state of the model, which learns again.
    """
    items = model.items_
    compared, differences = ["labels"], [*_label_differences(items)]
    if items.store is None:
        return Verification(len(items), tuple(compared), tuple(differences))
    compared.append("vectors")
    try:
        for start in range(0, items.n_places, _ROWS_AT_ONCE):  # check all blocks of a mapped file
            items.store.take(slice(start, start + _ROWS_AT_ONCE))
    except FileError as error:
        return Verification(len(items), tuple(compared), (*differences, str(error)))
    k = min(model.n_neighbors_, len(items) - 1)
    known = items.known_neighbors(k) if model.keeps_neighbors else None
    is_approximate = model.search_recall_ is not None
    # An approximate search need not find the same neighbors twice: compare its recall instead.
    again.learn_again(progress=progress, search=known is None or not is_approximate)
    if known is not None and is_approximate:
        recall, least = _recall_of(known, items), items.least_recall
        compared.append(f"neighbors (recall {recall})")
        if recall.value < least - 3 * recall.standard_error:
            differences.append(f"recall is below {least}")
    elif known is not None:
        compared.append("neighbors")
        found_again = again.model.items_.known_neighbors(k)
        assert found_again is not None
        differences += _neighbor_differences(items, known, found_again)
    compared.append("what was learned")
    mine, theirs = learned_tree(model), learned_tree(again.model)
    differences += _tree_differences(mine, theirs, "")
    return Verification(len(items), tuple(compared), tuple(differences))


def _label_differences(items: Items) -> Iterator[str]:
    labels, totals = items.alive_labels, items.totals
    counted = np.bincount(labels.indices, minlength=labels.shape[1])
    wrong = np.flatnonzero(counted != totals)
    if wrong.size:
        label = wrong[0]
        yield f"{counted[label]} rows have label {label}, not {totals[label]}"


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
            path = f"{name} {key}".strip()
            yield from _tree_differences(mine[key], theirs.get(key), path)
        return
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for place, pair in enumerate(zip(mine, theirs, strict=True), 1):
            yield from _tree_differences(*pair, f"{name} {place}")
        return
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        if not _are_equal(mine, theirs):
            yield f"{name} differ"
        return
    if isinstance(mine, float) and isinstance(theirs, float):
        mine, theirs = np.array(mine), np.array(theirs)
        if not _are_equal(mine, theirs):
            yield f"{name} is {mine}, but should be {theirs}"
        return
    if mine != theirs:
        yield f"{name} is {mine!r}, but should be {theirs!r}"


def _are_equal(mine: Array, theirs: Array) -> bool:
    """Whether two arrays are equal: counts exactly, other numbers up to rounding errors."""
    if mine.shape != theirs.shape:
        return False
    if mine.dtype.kind != "f":
        return bool(np.array_equal(mine, theirs))
    return bool(np.allclose(mine, theirs, rtol=_DIGITS, atol=_DIGITS, equal_nan=True))
