"""Approximate graphs on a cluster: each call searches for the rows of some lists or queries."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats, runs
from nearlabel.common.files import FileError, replacing, write_tree
from nearlabel.common.progress import Progress, Stages
from nearlabel.distributed.list_blocks import listed_rows, lists_folder
from nearlabel.distributed.row_files import ROWS_A_CALL, checksum
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import run_calls
from nearlabel.distributed.workspaces import Workspace
from nearlabel.graph import NeighborGraph, Recall, recall_of
from nearlabel.search import InvertedLists
from nearlabel.search.approximate.inverted_lists import planned_neighbors
from nearlabel.search.approximate.probe_counts import make_plan
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.probing import QueryPlan
from nearlabel.search.approximate.stored_lists import plan_trees

# Finds the exact neighbors of rows given by number.
ExactNeighbors = Callable[[Array, int], NeighborGraph]


class Piece(NamedTuple):
    """The neighbors of the rows of one block that some lists have: bytes of a file."""

    path: Path
    start: int
    stop: int
    checksum: str


def search_by_lists(
    place: Workspace,
    blocks: VectorBlocks,
    queries: VectorBlocks | None,
    k: int,
    metric: str,
    lists: InvertedLists,
    exact: ExactNeighbors,
    files: Sequence[Path],
    progress: Progress | None,
) -> Recall | None:
    """Write the neighbors of queries, or of all rows, one file for each block; return the recall.

    The recall is measured against what `exact` finds. The plan is kept for models of these lists.
    """
    folder = lists_folder(place, blocks, metric, lists)
    listed = listed_rows(folder, metric)
    n, planned = len(blocks), planned_neighbors(k, len(blocks))

    def exact_at(places: Array) -> NeighborGraph:
        return exact(listed.lists.order[places], planned)

    plan = make_plan(listed, planned, lists.recall, lists.random_state, 1, exact_at)
    (tree,) = plan_trees({planned: plan})
    write_tree(folder / f"plan-{lists.recall}-{planned}.tree", tree)
    if queries is not None:
        stage = Stages(progress, len(queries)).next(len(queries))
        asks = [
            (folder, metric, queries.of([i]), k, plan.probes, path) for i, path in enumerate(files)
        ]
        run_calls(place.client, answer_block, asks, progress=stage)
        return plan.recall
    cuts, measured = np.array([block.start for block in blocks.blocks] + [n]), np.sort(plan.rows)
    parts = list(runs(listed.lists.sizes, ROWS_A_CALL))
    probes = plan.probes.at_least(listed.least_probes(k + 1))  # see `ListIndex`
    stages = Stages(progress, n)
    step = stages.next(n - n // 4 - 1)
    target = files[0].parent
    _remove_searches(target)  # of a run that was killed
    try:
        while True:
            # In a folder of its own, where no late call of an earlier search writes.
            search = target / f"search-{secrets.token_hex(8)}"
            search.mkdir()
            how = folder, metric, search, k, probes, cuts, measured
            calls = [(*how, part.start, part.stop) for part in parts]
            results = run_calls(place.client, search_lists, calls, progress=step)
            near = np.concatenate([distances for _, distances in results])
            near = near[np.searchsorted(measured, plan.rows)]
            recall = recall_of(near, plan.exact.head(k))
            if recall.value >= lists.recall or probes.most == len(listed.lists):
                break
            probes = probes.more(len(listed.lists))
            step = None  # progress does not restart
            _remove_searches(target)
        pieces = zip(*(pieces for pieces, _ in results), strict=True)
        takes = [(own, k, n, path) for own, path in zip(pieces, files, strict=True)]
        run_calls(place.client, take_block, takes, progress=stages.next(n // 4))
    finally:
        _remove_searches(target)
    return recall


def _remove_searches(graph: Path) -> None:
    for path in graph.glob("search-*"):
        shutil.rmtree(path, ignore_errors=True)


def search_lists(
    folder: Path,
    metric: str,
    target: Path,
    k: int,
    probes: Probes,
    cuts: Array,
    measured: Array,
    first: int,
    last: int,
) -> tuple[list[Piece], Floats]:
    """Find the neighbors of the rows of some lists, and write them by number; runs on workers.

    Returns where those of each block are, and the distances of the rows with measured recall.
    """
    listed = listed_rows(folder, metric)
    near = listed.among(k, probes, 1, lists=slice(first, last))
    start, stop = listed.lists.starts[[first, last]].tolist()
    sampled = near.distances[measured[(measured >= start) & (measured < stop)] - start]
    numbers = listed.lists.order[start:stop]
    order = np.argsort(numbers)
    columns = numbers[:, None], near.indices, near.distances.view(np.int32)
    rows = np.hstack(columns).astype("<i4", copy=False)[order]
    path = target / f"{start:012}"
    with replacing(path) as file:
        file.write(rows.data)
    pieces = [
        Piece(path, a, b, checksum(rows[a:b]))
        for a, b in pairwise(np.searchsorted(numbers[order], cuts).tolist())
    ]
    return pieces, sampled


def take_block(pieces: Sequence[Piece], k: int, n_base: int, path: Path) -> None:
    """Write the neighbors of a block of rows, from the files of lists; runs on workers."""
    width, parts = 2 * k + 1, []
    for piece in pieces:
        count, offset = (piece.stop - piece.start) * width, 4 * piece.start * width
        part = np.fromfile(piece.path, "<i4", count, offset=offset)
        if checksum(part) != piece.checksum:
            raise FileError("is altered: the checksum of its rows does not match", piece.path)
        parts.append(part.reshape(-1, width))
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows[:, 0])]
    indices, distances = rows[:, 1 : k + 1], np.ascontiguousarray(rows[:, k + 1 :])
    NeighborGraph(indices, distances.view(np.float32), n_base).save(path)


def answer_block(
    folder: Path, metric: str, block: VectorBlocks, k: int, probes: Probes, path: Path
) -> None:
    """Find the neighbors of a block of queries; runs on workers."""
    plan = QueryPlan(probes, None)
    listed_rows(folder, metric).answer(block.read(), k, plan, 1, None).save(path)
