"""The nearest neighbors found so far for the rows of a block, in a file updated block by block.

A file records the blocks that its rows were compared with, and is replaced atomically. So a
repeated call changes nothing, a late call is noticed, and an interrupted run continues from the
existing files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.distributed.vector_blocks import (
    VectorBlocks,
    read_arrays,
    write_array,
)
from nearlabel.graph import index_type
from nearlabel.search.exact.block_pairs import merged_lists, neighbors_between
from nearlabel.search.exact.index import ExactSearch

if TYPE_CHECKING:
    from nearlabel.search.exact.distances import Metric


@dataclass(frozen=True)
class Comparing:
    """How blocks are compared; the same for all blocks."""

    k: int
    metric: Metric
    n_base: int
    n_blocks: int  # of the base rows


@dataclass(frozen=True)
class Side:
    """One of two blocks that are compared."""

    number: int  # among the base blocks, or among those of the queries
    lists: str | None  # path of its lists; None if its rows are not searched for


@dataclass
class GrowingLists:
    """The nearest rows of each row of a block, padded with -1 at infinite distance."""

    seen: Array  # (n_blocks,): base blocks that its rows were compared with
    rows: Array  # (m, k)
    distances: Floats  # (m, k)

    @classmethod
    def read(cls, path: str, m: int, how: Comparing) -> GrowingLists:
        """The lists in a file, or empty lists if there is no file yet."""
        if Path(path).exists():
            return cls(*read_arrays(path, 3))
        rows = np.full((m, how.k), -1, index_type(how.n_base))
        return cls(np.zeros(how.n_blocks, bool), rows, np.full((m, how.k), np.inf))

    def add(self, places: Array, distances: Floats, offset: int) -> None:
        """Add neighbors given by place; place 0 is row `offset`."""
        new = np.ascontiguousarray(places), np.ascontiguousarray(distances)
        self.rows, self.distances = merged_lists(self.rows, self.distances, *new, offset)


def seen_blocks(path: str, n_blocks: int) -> Array:
    """The base blocks that the rows of a file were compared with."""
    return read_arrays(path, 1)[0] if Path(path).exists() else np.zeros(n_blocks, bool)


def compare_within(side: Side, block: VectorBlocks, how: Comparing) -> None:
    """Compare the rows of a block with each other; runs on workers."""
    assert side.lists is not None
    lists = GrowingLists.read(side.lists, block.blocks[0].rows, how)
    if lists.seen[side.number]:
        return
    rows = block.read()
    k = min(how.k, len(rows) - 1)
    if k:
        graph = ExactSearch().build(rows, how.metric).graph(k)
        lists.add(graph.indices, graph.distances, block.blocks[0].start)
    lists.seen[side.number] = True
    write_array(side.lists, lists.seen, lists.rows, lists.distances)


def compare_between(sides: Sequence[Side], pair: VectorBlocks, how: Comparing) -> None:
    """Compare the rows of two blocks, with one product for both directions; runs on workers."""
    first, second = pair.blocks
    lists: list[GrowingLists | None] = []
    for side, other, block in zip(sides, reversed(sides), pair.blocks, strict=True):
        grown = None if side.lists is None else GrowingLists.read(side.lists, block.rows, how)
        lists.append(None if grown is None or grown.seen[other.number] else grown)
    if lists == [None, None]:
        return
    limits = [
        np.full(block.rows, -1.0) if own is None else own.distances[:, -1]
        for own, block in zip(lists, pair.blocks, strict=True)
    ]
    rows = pair.read()
    k = min(how.k, len(rows) - 1)
    places, distances = neighbors_between(rows, first.rows, how.metric, k, np.concatenate(limits))
    del rows
    parts = slice(0, first.rows), slice(first.rows, None)
    offsets = second.start - first.rows, first.start
    for own, part, offset, side, other in zip(
        lists, parts, offsets, sides, reversed(sides), strict=True
    ):
        if own is not None:
            assert side.lists is not None
            own.add(places[part], distances[part], offset)
            own.seen[other.number] = True
            write_array(side.lists, own.seen, own.rows, own.distances)


def finish(lists: str, indices: str, distances: str) -> bool:
    """Write complete lists as arrays of a graph; return whether they are complete.

    Runs on workers.
    """
    grown = GrowingLists(*read_arrays(lists, 3))
    if not grown.seen.all():  # a late call has replaced them
        return False
    write_array(indices, grown.rows)
    write_array(distances, grown.distances)
    return True
