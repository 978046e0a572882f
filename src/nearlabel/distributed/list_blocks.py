"""Inverted lists on a cluster: centers from a sample, and all rows in the order of their lists.

The lists and their search results are the same as those of `InvertedLists` in one process.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array, Floats, Tree
from nearlabel.common.files import NONSENSE, FileError, read_stored, write_tree
from nearlabel.common.validation import check_integer, check_real
from nearlabel.distributed.row_files import mapped_file, write_rows
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import run_calls
from nearlabel.distributed.workspaces import Workspace, alone_in, data_mark
from nearlabel.search import (
    AutoSearch,
    ExactSearch,
    InvertedLists,
    ListIndex,
    check_search,
    takes_lists,
)
from nearlabel.search.approximate.inverted_lists import fits_float32, takes
from nearlabel.search.approximate.partition import divide, nearest_centers
from nearlabel.search.approximate.probing import ListedRows
from nearlabel.search.approximate.stored_lists import listed_from
from nearlabel.search.exact.packed_bounds import DenseBounds, is_ordinary
from nearlabel.search.exact.row_arithmetic import core_rows, float_kind

if TYPE_CHECKING:
    from nearlabel.search.exact.distances import Metric


def lists_for(
    place: Workspace, blocks: VectorBlocks, metric: Metric, search: object
) -> InvertedLists | None:
    """The inverted lists to use, as in one process; None for exact search."""
    how = check_search(search)
    if not isinstance(how, ExactSearch | InvertedLists | AutoSearch):
        raise ValueError(
            "search must be 'auto', 'exact', 'approximate' or InvertedLists(…) on a cluster; "
            f"got {search!r}"
        )
    by_lists = isinstance(how, InvertedLists) or (
        isinstance(how, AutoSearch) and takes_lists(blocks.shape)
    )
    if not by_lists or not takes(blocks, metric):
        return None
    if metric != "cosine" and not fits_float32(*_ends(place, blocks)[:2], metric):
        return None
    lists = how if isinstance(how, InvertedLists) else InvertedLists()
    check_real(lists.recall, "recall", low=0, high=1)
    check_integer(lists.random_state, "random_state", low=0)
    return lists


def lists_folder(place: Workspace, blocks: VectorBlocks, metric: str, lists: InvertedLists) -> Path:
    """The folder with the lists of all rows, and the rows in their order; made if missing."""
    folder = place.part("lists", data_mark(blocks), metric, lists.random_state)
    if (folder / "rows.tree").exists():
        return folder

    def homes(centers: Array) -> Array:
        path = folder / "centers.tree"
        write_tree(path, {"centers": centers})
        calls = [(blocks.of([i]), path, metric) for i in range(len(blocks.blocks))]
        return np.concatenate(run_calls(place.client, homes_of_block, calls))

    with alone_in(folder):
        # Blocks are read like an array.
        divided = divide(blocks, metric, lists.random_state, 1, homes)
        path, bounds = folder / "lists.tree", _bounds(place, blocks, metric)
        tree = {"centers": divided.centers, "order": divided.order, "starts": divided.starts}
        write_tree(path, {**tree, "bounds": bounds})
        write_rows(place.client, blocks, float_kind(blocks), folder, path)
    return folder


def _bounds(place: Workspace, blocks: VectorBlocks, metric: str) -> Tree | None:
    """The stored parameters of the bounds of all rows."""
    center, reach = np.zeros(blocks.width), 1.0
    if metric != "cosine":
        low, high, total = _ends(place, blocks)
        center = total / len(blocks)
        reach = float(np.maximum(high - center, center - low).max())
    if not is_ordinary(reach):
        return None
    sample = np.random.default_rng(0).permutation(len(blocks))[: 2**12]
    tried = blocks[np.sort(sample)].astype(float_kind(blocks), copy=False)
    vague = DenseBounds(metric, center, reach).are_vague(core_rows(tried, metric))
    return {"center": center, "reach": reach, "by_list": vague}


def _ends(place: Workspace, blocks: VectorBlocks) -> tuple[Floats, Floats, Floats]:
    """The minimum, maximum and sum of each feature."""
    path = place.part("ends", data_mark(blocks)) / "ends.tree"
    if not path.exists():
        calls = [(blocks.of([i]),) for i in range(len(blocks.blocks))]
        ends = run_calls(place.client, ends_of_block, calls)
        low, high, total = (np.array(part) for part in zip(*ends, strict=True))
        tree = {"low": low.min(axis=0), "high": high.max(axis=0), "total": total.sum(axis=0)}
        write_tree(path, tree)
    tree = read_stored(path).tree
    return tree["low"], tree["high"], tree["total"]


def ends_of_block(block: VectorBlocks) -> tuple[Floats, Floats, Floats]:
    """The minimum, maximum and sum of each feature in a block; runs on workers."""
    rows = block.read()
    ends = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    with np.errstate(over="ignore"):
        return *ends, rows.sum(axis=0, dtype=np.float64)


def homes_of_block(block: VectorBlocks, path: Path, metric: str) -> Array:
    """The nearest center of each row of a block; runs on workers."""
    return nearest_centers(block.read(), read_stored(path).tree["centers"], metric, 1)


@lru_cache(maxsize=1)
def listed_rows(folder: Path, metric: str) -> ListedRows:
    """The lists of a folder, with mapped rows: only rows that are searched are read."""
    path = folder / "lists.tree"
    tree = read_stored(path).tree
    try:
        return listed_from(tree, mapped_file(folder), metric)
    except FileError:
        raise
    except NONSENSE as error:
        raise FileError(f"is damaged: {error}", path) from None


def list_index(
    place: Workspace, blocks: VectorBlocks, metric: str, lists: InvertedLists, search: object
) -> ListIndex:
    """The lists as the index of a model, the same as one process would build."""
    folder = lists_folder(place, blocks, metric, lists)
    rows: Array = mapped_file(folder)
    rows = rows if place.is_kept else np.array(rows[:])
    kind = "auto" if isinstance(check_search(search), AutoSearch) else "approximate"
    plans = [read_stored(path).tree for path in sorted(folder.glob(f"plan-{lists.recall}-*.tree"))]
    tree = {**read_stored(folder / "lists.tree").tree, "search": kind, "plans": plans}
    tree |= {"recall": lists.recall, "seed": lists.random_state}
    return ListIndex.from_tree(tree, rows, metric)
