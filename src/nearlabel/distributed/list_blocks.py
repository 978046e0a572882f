"""Approximate graphs: lists of near rows, searched by workers."""

from __future__ import annotations

from typing import Any

from nearlabel.distributed.vector_blocks import VectorBlocks


def takes_lists_of(place: Any, blocks: VectorBlocks, k: int, metric: Any, search: Any) -> Any:
    """Stub."""
    return None


def listed_graph(*args: Any) -> Any:
    """Stub."""
    raise NotImplementedError
