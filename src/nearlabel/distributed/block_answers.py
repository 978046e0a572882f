"""Predictions of a fitted model for blocks of queries, by the workers of a cluster.

Every worker maps the model file into memory. The results are the same as in one process.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, LabelsLike
from nearlabel.common.progress import Progress
from nearlabel.common.tag_lists import TagLists
from nearlabel.common.validation import check_integer
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import run_calls
from nearlabel.distributed.workspaces import working
from nearlabel.labels.ranked_labels import RankedLabels
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
    parts = _of_blocks(rank_block, model, X, client, folder, progress, (top,))
    labels, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    last = model[-1] if hasattr(model, "steps") else model
    return RankedLabels(labels, scores, last.label_names_)


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
    parts: list[Any] = _of_blocks(predict_block, model, X, client, folder, progress, ())
    if isinstance(parts[0], list):  # of tags
        return TagLists(tags for part in parts for tags in part)
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def _of_blocks(
    function: Callable[..., T],
    model: NeighborClassifier | Pipeline,
    X: object,
    client: Client | str | None,
    folder: Folder,
    progress: Progress | None,
    arguments: tuple[object, ...],
) -> list[T]:
    """What a function returns for the model and each block of queries."""
    with working(client, folder) as place:
        # A pipeline may replace missing values; what it does not accept, it refuses by itself.
        blocks = place.vectors(X, finite=not hasattr(model, "steps"))
        # Workers keep the model of a path in memory, so each call has a path of its own: the model
        # may have changed since the last call.
        path = place.folder / f"{secrets.token_hex(16)}.model"
        try:
            save(model, path)
            calls = [(path, blocks.of([i]), *arguments) for i in range(len(blocks.blocks))]
            sizes = [block.rows for block in blocks.blocks]
            return run_calls(place.client, function, calls, sizes=sizes, progress=progress)
        finally:
            path.unlink(missing_ok=True)


def rank_block(path: Path, block: VectorBlocks, top: int) -> tuple[Array, Array]:
    """The top labels of the rows of a block; runs on workers."""
    ranked = _model(path).rank(block.read(), top)
    return ranked.labels, ranked.scores


def predict_block(path: Path, block: VectorBlocks) -> LabelsLike:
    """The predicted labels of the rows of a block; runs on workers."""
    return _model(path).predict(block.read())


@lru_cache(maxsize=1)
def _model(path: Path) -> NeighborClassifier | Pipeline:
    model: NeighborClassifier | Pipeline = load(path, mmap=True)
    return model
