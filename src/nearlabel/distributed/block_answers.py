"""Predictions of a fitted model for blocks of queries, by the workers of a cluster.

Every worker maps the model file into memory. The results are the same as in one process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, LabelsLike, Matrix
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_integer, check_same_length
from nearlabel.distributed.label_files import LabelFile, read_labels
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import run_calls
from nearlabel.distributed.workspaces import Workspace, working
from nearlabel.graph import NeighborGraph
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import each_run
from nearlabel.metrics.conventions import convention_named
from nearlabel.metrics.metric_sums import MetricSums
from nearlabel.persistence.models import load, save

T = TypeVar("T")

if TYPE_CHECKING:
    from distributed import Client

    from nearlabel.distributed.workspaces import Folder
    from nearlabel.methods.base import NeighborClassifier
    from nearlabel.methods.pipeline import Pipeline


def rank(
    model: NeighborClassifier | Pipeline,
    X: object,
    top: int = 10,
    client: Client | str | None = None,
    *,
    folder: Folder = None,
    progress: Progress | None = None,
) -> RankedLabels:
    """Rank the labels of rows in blocks, with the same result as the model's own `rank`.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        It is written to a file, which the workers map into memory.
    X, client, folder, progress
        As in `nearlabel.distributed.neighbor_graph`. Only the blocks of a Dask array, of Parquet
        files or of a matrix remain in the folder.
    top : int, default=10
        Number of labels; all of them if there are fewer.

    Returns
    -------
    RankedLabels
    """
    top = check_integer(top, "top", low=1)
    parts = _of_blocks(rank_block, model, X, client, folder, progress, lambda *_: (top,))
    labels, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return RankedLabels(labels, scores, _last(model).label_names_)


def predict(
    model: NeighborClassifier | Pipeline,
    X: object,
    client: Client | str | None = None,
    *,
    folder: Folder = None,
    progress: Progress | None = None,
) -> LabelsLike:
    """Predict the labels of rows in blocks, with the same result as the model's own `predict`.

    Parameters
    ----------
    model, X, client, folder, progress
        As in `rank`.

    Returns
    -------
    As from the `predict` of the model.
    """
    parts = _of_blocks(decide_block, model, X, client, folder, progress, lambda *_: ())
    return _last(model)._in_form_of_y(sparse.vstack(parts, format="csr"))


def evaluate(
    model: NeighborClassifier | Pipeline,
    X: object,
    y: object,
    client: Client | str | None = None,
    *,
    convention: str = "paper",
    at: int = 5,
    folder: Folder = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Compute all metrics of a model on rows in blocks, as exact sums over the blocks.

    Parameters
    ----------
    model, X, client, folder, progress
        As in `rank`.
    y : true labels, as in the `fit` of estimators, Dask array or folder of blocks
    convention, at
        As in `nearlabel.metrics.evaluate`.

    Returns
    -------
    dict of str to float
        As from `nearlabel.metrics.evaluate`, without macro_average_precision and macro_auc, which
        rank all rows for each label and so are not sums over rows.
    """
    convention_named(convention)
    at = check_integer(at, "at", low=1)
    Y: Csr = _last(model).label_matrix(_in_memory(y))

    def arguments(place: Workspace, n: int) -> tuple[object, ...]:
        check_same_length(X=n, y=Y.shape[0])
        return place.labels(Y), convention, at

    parts = _of_blocks(measure_block, model, X, client, folder, progress, arguments)
    return MetricSums.joined(parts).values()


def _of_blocks(
    function: Callable[..., T],
    model: NeighborClassifier | Pipeline,
    X: object,
    client: Client | str | None,
    folder: Folder,
    progress: Progress | None,
    arguments: Callable[[Workspace, int], tuple[object, ...]],
) -> list[T]:
    """What a function returns for the model and each block of queries."""
    with working(client, folder) as place:
        # A pipeline may replace missing values; what it does not accept, it refuses by itself.
        blocks = place.vectors(X, finite=not hasattr(model, "steps"))
        further = arguments(place, len(blocks))
        # Workers keep the model of a path in memory, so each call has a path of its own: the model
        # may have changed since the last call.
        path = place.folder / f"{secrets.token_hex(16)}.model"
        try:
            save(model, path)
            calls = [(path, blocks.of([i]), *further) for i in range(len(blocks.blocks))]
            sizes = [block.rows for block in blocks.blocks]
            return run_calls(place.client, function, calls, sizes=sizes, progress=progress)
        finally:
            path.unlink(missing_ok=True)


def rank_block(path: Path, block: VectorBlocks, top: int) -> tuple[Array, Array]:
    """The top labels of the rows of a block; runs on workers."""
    ranked = _model(path).rank(block.read(), top)
    return ranked.labels, ranked.scores


def decide_block(path: Path, block: VectorBlocks) -> Csr:
    """The predicted label sets of the rows of a block; runs on workers."""
    model, X = _prepared(path, block)
    decided: dict[int, Csr] = {}

    def decide(place: slice, scores: LabelScores, near: NeighborGraph, _: object) -> None:
        decided[place.start] = model._decide(scores, near)

    each_run(model, decide, X)
    return sparse.vstack([decided[start] for start in sorted(decided)], format="csr")


def measure_block(
    path: Path, block: VectorBlocks, truth: LabelFile, convention: str, at: int
) -> MetricSums:
    """The sums of the metrics over the rows of a block; runs on workers."""
    model, X = _prepared(path, block)
    first, sums = block.blocks[0].start, dict[int, MetricSums]()

    def measure(place: slice, scores: LabelScores, near: NeighborGraph, _: object) -> None:
        Y = truth.of(first + np.arange(place.start, place.stop))
        decided = model._decide(scores, near)
        sums[place.start] = MetricSums.of(Y, scores, decided, convention, at)

    each_run(model, measure, X)
    return MetricSums.joined([sums[start] for start in sorted(sums)])


def _prepared(path: Path, block: VectorBlocks) -> tuple[NeighborClassifier, Matrix]:
    """The model without its pipeline, and the rows of a block as transformed by the pipeline."""
    model, X = _model(path), block.read()
    if hasattr(model, "steps"):
        X = model[:-1].transform(X)
    last = _last(model)
    return last, last._check_queries(X)


@lru_cache(maxsize=1)
def _model(path: Path) -> NeighborClassifier | Pipeline:
    model: NeighborClassifier | Pipeline = load(path, mmap=True)
    return model


def _last(model: NeighborClassifier | Pipeline) -> NeighborClassifier:
    return model[-1] if hasattr(model, "steps") else model


def _in_memory(y: object) -> object:
    """Labels in a form that a model accepts."""
    in_blocks = hasattr(y, "to_delayed") or isinstance(y, str | os.PathLike)
    return read_labels(y).matrix if in_blocks else y
