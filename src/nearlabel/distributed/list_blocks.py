"""Inverted lists on a cluster: centers from a sample, and all rows in the order of their lists.

The lists and their search results are the same as those of `InvertedLists` in one process.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array, Floats, Tree
from nearlabel.common.files import read_stored, replacing, sync, write_tree
from nearlabel.common.validation import check_integer, check_real
from nearlabel.distributed.vector_blocks import (
    VectorBlocks,
    read_arrays,
    write_array,
)
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
    import numpy.typing as npt

    from nearlabel.search.exact.distances import Metric

ROWS_A_CALL = 2**15
"""Rows that one call to a worker searches or puts in order."""


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
    if not (folder / "lists.tree").exists():
        with alone_in(folder):
            _make_lists(place, blocks, metric, lists, folder)
    return folder


def _make_lists(
    place: Workspace, blocks: VectorBlocks, metric: str, lists: InvertedLists, folder: Path
) -> None:
    """Divide all rows into lists, and write them in the order of their lists."""

    def homes(centers: Array) -> Array:
        write_array(folder / "centers.npy", centers)
        calls = [
            (blocks.of([i]), str(folder / "centers.npy"), metric) for i in range(len(blocks.blocks))
        ]
        return np.concatenate(run_calls(place.client, homes_of_block, calls))

    # Blocks are read like an array.
    divided = divide(blocks, metric, lists.random_state, 1, homes)
    write_array(folder / "order.npy", divided.order)
    kind, n = np.dtype(float_kind(blocks)), len(blocks)
    make_file(folder / "rows.part", blocks.shape, kind)
    paths = str(folder / "order.npy"), str(folder / "rows.part")
    runs = [(start, min(start + ROWS_A_CALL, n)) for start in range(0, n, ROWS_A_CALL)]
    run_calls(place.client, put_in_order, [(blocks, *paths, *ends) for ends in runs])
    (folder / "rows.part").replace(folder / "rows.npy")
    tree = {"centers": divided.centers, "order": divided.order, "starts": divided.starts}
    write_tree(folder / "lists.tree", {**tree, "bounds": _bounds(place, blocks, metric)})


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
    path = place.part("ends", data_mark(blocks)) / "ends.npy"
    if not path.exists():
        calls = [(blocks.of([i]),) for i in range(len(blocks.blocks))]
        ends = run_calls(place.client, ends_of_block, calls)
        lows, highs, sums = (np.array(part) for part in zip(*ends, strict=True))
        write_array(path, lows.min(axis=0), highs.max(axis=0), sums.sum(axis=0))
    low, high, total = read_arrays(path, 3)
    return low, high, total


def ends_of_block(block: VectorBlocks) -> tuple[Floats, Floats, Floats]:
    """The minimum, maximum and sum of each feature in a block; runs on workers."""
    rows = block.read()
    ends = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    with np.errstate(over="ignore"):
        return *ends, rows.sum(axis=0, dtype=np.float64)


def homes_of_block(block: VectorBlocks, centers: str, metric: str) -> Array:
    """The nearest center of each row of a block; runs on workers."""
    return nearest_centers(block.read(), read_arrays(centers, 1)[0], metric, 1)


def put_in_order(blocks: VectorBlocks, order: str, path: str, start: int, stop: int) -> None:
    """Write rows to their places in the order of the lists; runs on workers."""
    numbers = np.load(order, mmap_mode="r")[start:stop]
    write_rows(path, start, blocks[numbers])


def make_file(path: Path, shape: tuple[int, int], kind: npt.DTypeLike) -> None:
    """Create a ``.npy`` file of full size for `write_rows`."""
    np.lib.format.open_memmap(path, "w+", np.dtype(kind), shape).flush()


def write_rows(path: str | Path, start: int, rows: Array) -> None:
    """Write rows to their place in an existing file, and flush it to disk."""
    target = np.load(path, mmap_mode="r")
    with Path(path).open("r+b") as file:
        file.seek(target.offset + start * target.shape[1] * target.itemsize)
        file.write(np.ascontiguousarray(rows, target.dtype).data)
        file.flush()
        sync(file.fileno())


@lru_cache(maxsize=1)
def listed_rows(folder: str, metric: str) -> ListedRows:
    """The lists of a folder, with mapped rows: only rows that are searched are read."""
    tree = read_stored(Path(folder) / "lists.tree").tree
    return listed_from(tree, np.load(Path(folder) / "rows.npy", mmap_mode="r"), metric)


def list_index(
    place: Workspace, blocks: VectorBlocks, metric: str, lists: InvertedLists, search: object
) -> ListIndex:
    """The lists as the index of a model, the same as one process would build."""
    folder = lists_folder(place, blocks, metric, lists)
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    rows = rows if place.is_kept else np.array(rows)
    kind = "auto" if isinstance(check_search(search), AutoSearch) else "approximate"
    plans = known_plans(folder, lists)
    tree = {**read_stored(folder / "lists.tree").tree, "search": kind, "plans": plans}
    tree |= {"recall": lists.recall, "seed": lists.random_state}
    return ListIndex.from_tree(tree, rows, metric)


def known_plans(folder: Path, lists: InvertedLists) -> list[Tree]:
    """The search plans kept for these lists and their target recall."""
    paths = sorted(folder.glob(f"plan-{lists.recall}-*.json"))
    return [json.loads(path.read_bytes()) for path in paths]


def keep_plan(folder: Path, lists: InvertedLists, plan: Tree) -> None:
    """Keep a search plan for models that use these lists."""
    with replacing(folder / f"plan-{lists.recall}-{plan['k']}.json") as file:
        file.write(json.dumps(plan).encode())
