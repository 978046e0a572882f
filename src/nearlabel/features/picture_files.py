"""Pictures of folders and archives, prepared by several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress


@dataclass(frozen=True)
class PictureVectors:
    """Vectors of pictures: `names`, `X`, and of each file that was left out (name, reason)."""

    names: list[str]
    X: Array
    skipped: list[tuple[str, str]]


def find_pictures(source: Any) -> list[Any]:
    """What lies in a folder or an archive."""
    raise NotImplementedError


def in_parallel(
    sources: Iterable[Any], prepare: Callable[[Any], Any], n_jobs: int | None = None
) -> Iterator[Any]:
    """What `prepare` gives for each source, in order; few of them wait at any time."""
    del n_jobs
    return map(prepare, sources)


def picture_vectors(
    source: Any, transformer: Any, *, n_jobs: int | None = None, progress: Progress | None = None
) -> PictureVectors:
    """Vectors of all pictures of a folder or an archive."""
    raise NotImplementedError
