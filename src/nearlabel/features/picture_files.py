"""Pictures from folders, prepared by several threads."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_n_jobs
from nearlabel.features.pictures import PICTURES, FileKind, UnreadablePicture, name_of

S = TypeVar("S")
T = TypeVar("T")

if TYPE_CHECKING:
    from sklearn.base import TransformerMixin


@dataclass(frozen=True)
class PictureVectors:
    """The vectors of pictures.

    Attributes
    ----------
    names : list of str
        The pictures that were read: their paths relative to the folder.
    X : ndarray or DataFrame of shape (n, d)
        One row for each of them.
    skipped : list of (name, reason)
        The others, each with the rest of a sentence that says why.
    """

    names: list[str]
    X: Any
    skipped: list[tuple[str, str]]

    def __repr__(self) -> str:
        return f"PictureVectors(X of shape {self.X.shape}, {len(self.skipped)} skipped)"


def find_pictures(source: str | os.PathLike[str]) -> list[str]:
    """List the pictures in a folder and its subfolders.

    Pictures are recognized by their suffix or their first bytes. Hidden files are left out, links
    are followed, and no folder is visited twice.

    Parameters
    ----------
    source : path
        A folder, or a single picture.

    Returns
    -------
    list of str
        Their paths, sorted, for the transformers. A subfolder that cannot be opened is in the list:
        reading it says why.

    Raises
    ------
    FileNotFoundError
    """
    return found_files(source, PICTURES)


def found_files(source: str | os.PathLike[str], kind: FileKind) -> list[str]:
    """List the files of a kind, as `find_pictures` does for pictures."""
    top = os.fsdecode(source)
    if not os.path.isdir(top):  # noqa: PTH112
        if not os.path.lexists(top):
            raise FileNotFoundError(f"no such file or folder: {top!r}")
        return [top]
    files: list[str] = []
    seen: set[tuple[int, int]] = set()
    waiting = [top]  # a stack: folders nest deeper than Python can recurse
    while waiting:
        path = waiting.pop()
        try:
            about = os.stat(path)  # noqa: PTH116
            if not stat.S_ISDIR(about.st_mode):
                if kind.includes(path):
                    files.append(path)
                continue
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            names = sorted(os.listdir(path), reverse=True)  # noqa: PTH208
        except OSError as error:
            is_dangling = error.errno in (errno.ENOENT, errno.ELOOP)
            if not is_dangling or kind.has_suffix(path):
                files.append(path)
            continue
        waiting += [os.path.join(path, name) for name in names if name[0] != "."]  # noqa: PTH118
    return files


def picture_vectors(
    source: str | os.PathLike[str] | Iterable[object],
    transformer: TransformerMixin,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> PictureVectors:
    """Turn all pictures of a folder into vectors; unreadable ones are skipped.

    Parameters
    ----------
    source : path, or iterable of pictures
        A folder, as for `find_pictures`, or what a transformer accepts.
    transformer : GridMoments, PictureEmbedding, or a pipeline that begins with one; fitted
    n_jobs : int or None, default=None
        Threads that read pictures; None uses the setting of the transformer.
    progress : callable, optional
        Called with (pictures done, total pictures).

    Returns
    -------
    PictureVectors

    Examples
    --------
    >>> import numpy as np
    >>> from nearlabel.features import GridMoments, picture_vectors
    >>> pictures = [np.zeros((8, 8), np.uint8), b"no picture", np.ones((9, 9))]
    >>> found = picture_vectors(pictures, GridMoments())
    >>> found.X.shape
    (2, 294)
    >>> found.skipped
    [('picture 1', "is not a picture of a known format; it starts with 'no pictu'")]
    """
    top = ""
    if isinstance(source, str | os.PathLike):
        top = os.fsdecode(source)
        source = find_pictures(source)
    pictures = Skipping([*source], n_jobs, progress)
    if not hasattr(transformer, "transform"):
        raise TypeError(
            "transformer must have a transform method; for a pipeline that ends in a classifier, "
            f"pass model[:-1]; got {type(transformer).__name__}"
        )
    try:
        X = transformer.transform(pictures)
    except ValueError:
        if len(pictures.skipped) < len(pictures):
            raise
        X = np.empty((0, len(transformer.get_feature_names_out())))  # a scaler refuses 0 rows
    names, skipped = pictures.outcome(top)
    if np.shape(X)[0] != len(names):
        raise ValueError(
            "transformer must return one row per picture it reads, in this process; of "
            f"{len(pictures)} pictures {len(skipped)} were skipped, and it has "
            f"{np.shape(X)[0]} rows"
        )
    return PictureVectors(names, X, skipped)


@dataclass
class Skipping(Generic[S]):
    """Pictures of which `in_parallel` skips and records the unreadable ones.

    A transformer that passes its X to `in_parallel` returns rows for the others only.
    """

    sources: Sequence[S]
    n_jobs: int | None = None
    progress: Progress | None = None
    skipped: list[tuple[int, UnreadablePicture]] = field(default_factory=list)

    def __iter__(self) -> Iterator[S]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)

    def outcome(self, top: str) -> tuple[list[str], list[tuple[str, str]]]:
        """The names of what was read, relative to a folder, and of the others with the reasons."""
        inside = os.path.join(top, "") if top else ""  # noqa: PTH118
        names = []
        for at, source in enumerate(self.sources):
            name = name_of(source) or f"picture {at}"
            if inside and name.startswith(inside):
                name = name[len(inside) :].replace(os.sep, "/")
            names.append(name)
        reasons = {at: error.reason for at, error in self.skipped}
        read = [name for at, name in enumerate(names) if at not in reasons]
        return read, [(names[at], reasons[at]) for at in sorted(reasons)]


def in_parallel(
    sources: Iterable[S], prepare: Callable[[S], T], n_jobs: int | None = None
) -> Iterator[T]:
    """Prepare pictures in threads, and yield the results in order.

    Only a few pictures per thread are in memory at any time: the next one is taken from `sources`
    when a result is consumed. Unreadable ones are left out of a `Skipping`; otherwise the first is
    an `UnreadablePicture` with its name, or with its number if it has none.
    """
    # The parts of a single picture would be taken for pictures.
    is_single = isinstance(sources, str | bytes | os.PathLike) or hasattr(sources, "read")
    is_single |= isinstance(sources, np.ndarray) and sources.shape[2:] in ((3,), (4,))
    if is_single or not isinstance(sources, Iterable):
        raise TypeError(
            "X must be a list of pictures or another iterable; for a single one pass [picture]; "
            f"got one of type {type(sources).__name__}"
        )
    skipping = sources if isinstance(sources, Skipping) else None
    if skipping is not None and skipping.n_jobs is not None:
        n_jobs = skipping.n_jobs
    threads = min(check_n_jobs(n_jobs), 64)  # even if a model file asks for more
    pool = ThreadPoolExecutor(threads)  # starts threads when something is submitted
    try:
        for at, result in _results(sources, prepare, pool if threads > 1 else None, 4 * threads):
            try:
                prepared = result()
            except UnreadablePicture as error:
                if skipping is None:
                    raise error.of(error.name or f"picture {at}") from error.__cause__
                skipping.skipped.append((at, error))
            else:
                yield prepared
            if skipping is not None and skipping.progress is not None:
                skipping.progress(at + 1, len(skipping))
    finally:
        pool.shutdown(cancel_futures=True)


def _results(
    sources: Iterable[S], prepare: Callable[[S], T], pool: ThreadPoolExecutor | None, most: int
) -> Iterator[tuple[int, Callable[[], T]]]:
    """For each picture its number and a function that returns, or raises, its result.

    With a pool, at most so many pictures are in memory at any time.
    """
    waiting: deque[tuple[int, Callable[[], T]]] = deque()
    for at, source in enumerate(sources):
        if pool is None:
            yield at, partial(prepare, source)
            continue
        waiting.append((at, pool.submit(prepare, source).result))
        if len(waiting) >= most:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()
