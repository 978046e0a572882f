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
from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.graph import NeighborGraph, index_type
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
    lists: Path | None  # None if its rows are not searched for


@dataclass
class GrowingLists:
    """The nearest rows of each row of a block, padded with -1 at infinite distance."""

    seen: Array  # (n_blocks,): base blocks that its rows were compared with
    rows: Array  # (m, k)
    distances: Floats  # (m, k)

    @classmethod
    def read(cls, path: Path, m: int, how: Comparing) -> GrowingLists:
        """The lists in a file, or empty lists if there is no file yet."""
        if path.exists():
            return cls(**read_stored(path).tree)
        rows = np.full((m, how.k), -1, index_type(how.n_base))
        return cls(np.zeros(how.n_blocks, bool), rows, np.full((m, how.k), np.inf))

    def write(self, path: Path) -> None:
        """Replace the file."""
        write_tree(path, {"seen": self.seen, "rows": self.rows, "distances": self.distances})

    def add(self, places: Array, distances: Floats, offset: int) -> None:
        """Add neighbors given by place; place 0 is row `offset`."""
        new = np.ascontiguousarray(places), np.ascontiguousarray(distances)
        self.rows, self.distances = merged_lists(self.rows, self.distances, *new, offset)


def seen_blocks(path: Path, n_blocks: int) -> Array:
    """The base blocks that the rows of a file were compared with."""
    if not path.exists():
        return np.zeros(n_blocks, bool)
    seen: Array = read_stored(path, mmap=True).tree["seen"]
    return seen


def compare(sides: Sequence[Side], blocks: VectorBlocks, how: Comparing) -> None:
    """Compare the rows of a block with each other, or those of two blocks; runs on workers."""
    if len(sides) == 1:
        _compare_within(sides[0], blocks, how)
    else:
        _compare_between(sides, blocks, how)


def _compare_within(side: Side, block: VectorBlocks, how: Comparing) -> None:
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
    lists.write(side.lists)


def _compare_between(sides: Sequence[Side], pair: VectorBlocks, how: Comparing) -> None:
    """Compare the rows of two blocks, with one product for both directions."""
    first, second = pair.blocks
    growing: list[GrowingLists | None] = []
    for side, other, block in zip(sides, reversed(sides), pair.blocks, strict=True):
        lists = None if side.lists is None else GrowingLists.read(side.lists, block.rows, how)
        growing.append(None if lists is None or lists.seen[other.number] else lists)
    if growing == [None, None]:
        return
    limits = [
        np.full(block.rows, -1.0) if lists is None else lists.distances[:, -1]
        for lists, block in zip(growing, pair.blocks, strict=True)
    ]
    rows = pair.read()
    k = min(how.k, len(rows) - 1)
    places, distances = neighbors_between(rows, first.rows, how.metric, k, np.concatenate(limits))
    del rows
    parts = slice(0, first.rows), slice(first.rows, None)
    offsets = second.start - first.rows, first.start
    for lists, part, offset, side, other in zip(
        growing, parts, offsets, sides, reversed(sides), strict=True
    ):
        if lists is not None:
            assert side.lists is not None
            lists.add(places[part], distances[part], offset)
            lists.seen[other.number] = True
            lists.write(side.lists)


def finish(lists: Path, n_base: int, graph: Path) -> bool:
    """Write complete lists as a graph; return whether they are complete. Runs on workers."""
    grown = GrowingLists(**read_stored(lists).tree)
    if not grown.seen.all():  # a late call has replaced them
        return False
    try:
        NeighborGraph(grown.rows, grown.distances, n_base).save(graph)
    except (ValueError, TypeError) as error:
        raise FileError(f"is damaged: {error}", lists) from None
    return True
