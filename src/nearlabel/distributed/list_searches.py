"""Approximate graphs on a cluster: each call searches for the rows of some lists or queries."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nearlabel.common.arrays import Array, runs
from nearlabel.common.progress import Progress, Stages
from nearlabel.distributed.list_blocks import (
    ROWS_A_CALL,
    keep_plan,
    listed_rows,
    lists_folder,
    make_file,
    write_rows,
)
from nearlabel.distributed.vector_blocks import VectorBlocks, write_array
from nearlabel.distributed.workers import run_calls
from nearlabel.distributed.workspaces import Workspace
from nearlabel.graph import NeighborGraph, Recall, recall_of
from nearlabel.search import InvertedLists
from nearlabel.search.approximate.inverted_lists import planned_neighbors
from nearlabel.search.approximate.probe_counts import MeasuredPlan, make_plan
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.probing import QueryPlan
from nearlabel.search.approximate.stored_lists import plan_trees

Files = tuple[tuple[str, str], ...]
# Finds the exact neighbors of rows given by number.
ExactNeighbors = Callable[[Array, int], NeighborGraph]


class ListSearch:
    """Searches the inverted lists; `exact` finds the neighbors against which recall is measured."""

    def __init__(
        self,
        place: Workspace,
        blocks: VectorBlocks,
        metric: str,
        lists: InvertedLists,
        exact: ExactNeighbors,
    ) -> None:
        self._place, self._blocks, self._metric, self._lists = place, blocks, metric, lists
        self._exact = exact
        self._folder = lists_folder(place, blocks, metric, lists)
        self._listed = listed_rows(str(self._folder), metric)

    def plan(self, k: int) -> MeasuredPlan:
        """Choose the lists to probe for k neighbors; kept for models of these lists."""
        planned, order = planned_neighbors(k, len(self._blocks)), self._listed.lists.order
        plan = make_plan(
            self._listed,
            planned,
            self._lists.recall,
            self._lists.random_state,
            1,
            lambda places: self._exact(order[places], planned),
        )
        keep_plan(self._folder, self._lists, plan_trees({planned: plan})[0])
        return plan

    def answers(
        self, queries: VectorBlocks, k: int, target: Path, progress: Progress | None
    ) -> tuple[Files, Recall | None]:
        """Find the neighbors of queries; return their files and the recall."""
        plan, files = self.plan(k), files_of(target, len(queries.blocks))
        calls = [
            (str(self._folder), self._metric, queries.of([i]), k, plan.probes, *pair)
            for i, pair in enumerate(files)
        ]
        stage = Stages(progress, len(queries)).next(len(queries))
        run_calls(self._place.client, answer_block, calls, progress=stage)
        return files, plan.recall

    def among(self, k: int, target: Path, progress: Progress | None) -> tuple[Files, Recall | None]:
        """Find the neighbors of all rows; return their files and the recall. See `ListIndex`."""
        listed, n, wanted = self._listed, len(self._blocks), self._lists.recall
        plan = self.plan(k)
        probes = plan.probes.at_least(listed.least_probes(k + 1))
        stages = Stages(progress, n)
        step = stages.next(n - n // 4 - 1)
        files, blocks = files_of(target, len(self._blocks.blocks)), self._blocks.blocks
        _remove_searches(target)  # of a run that was killed
        try:
            while True:
                search = self._search_all(k, probes, target, step)
                near = np.load(search / "distances.npy", mmap_mode="r")[plan.rows]
                recall = recall_of(near, plan.exact.head(k))
                if recall.value >= wanted or probes.most == len(listed.lists):
                    break
                probes = probes.more(len(listed.lists))
                step = None  # progress does not restart
                _remove_searches(target)
            calls = [
                (str(self._folder / "order.npy"), str(search), block.start, block.stop, *pair)
                for block, pair in zip(blocks, files, strict=True)
            ]
            run_calls(self._place.client, take_block, calls, progress=stages.next(n // 4))
        finally:
            _remove_searches(target)
        return files, recall

    def _search_all(self, k: int, probes: Probes, graph: Path, progress: Progress | None) -> Path:
        """Search for all rows; write the results by place.

        They are in a folder of their own, where no late call of an earlier search writes.
        """
        listed, n = self._listed, len(self._blocks)
        target = graph / f"search-{secrets.token_hex(8)}"
        target.mkdir()
        make_file(target / "indices.npy", (n, k), np.int32)
        make_file(target / "distances.npy", (n, k), np.float32)
        how = str(self._folder), self._metric, str(target), k
        parts = runs(listed.lists.sizes, ROWS_A_CALL)
        calls = [(*how, run.start, run.stop, probes) for run in parts]
        run_calls(self._place.client, search_lists, calls, progress=progress)
        return target


def _remove_searches(graph: Path) -> None:
    for path in graph.glob("search-*"):
        shutil.rmtree(path, ignore_errors=True)


def files_of(target: Path, count: int) -> Files:
    """The files of each block of a graph: indices and distances."""
    names = ("indices", "distances")
    pairs = [[str(target / f"{name}-{i:06}.npy") for name in names] for i in range(count)]
    return tuple((pair[0], pair[1]) for pair in pairs)


def search_lists(
    folder: str, metric: str, target: str, k: int, first: int, last: int, probes: Probes
) -> None:
    """Find the neighbors of the rows of some lists; runs on workers."""
    listed = listed_rows(folder, metric)
    near = listed.among(k, probes, 1, lists=slice(first, last))
    start = int(listed.lists.starts[first])
    write_rows(f"{target}/indices.npy", start, near.indices)
    write_rows(f"{target}/distances.npy", start, near.distances)


def take_block(
    order: str, target: str, start: int, stop: int, indices: str, distances: str
) -> None:
    """Write the neighbors of a block of rows by number, from those by place; runs on workers."""
    numbers = np.load(order, mmap_mode="r")
    places = np.flatnonzero((numbers >= start) & (numbers < stop))
    places = places[np.argsort(numbers[places])]
    for name, path in (("indices", indices), ("distances", distances)):
        write_array(path, np.load(f"{target}/{name}.npy", mmap_mode="r")[places])


def answer_block(
    folder: str,
    metric: str,
    block: VectorBlocks,
    k: int,
    probes: Probes,
    indices: str,
    distances: str,
) -> None:
    """Find the neighbors of a block of queries; runs on workers."""
    answer = listed_rows(folder, metric).answer(block.read(), k, QueryPlan(probes, None), 1, None)
    write_array(indices, answer.indices)
    write_array(distances, answer.distances)
