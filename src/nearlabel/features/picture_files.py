"""Pictures of folders and archives, prepared by several threads."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_n_jobs
from nearlabel.features.picture_archives import (
    PICTURES,
    ArchivedPicture,
    Kind,
    archived_pictures,
    refused,
)
from nearlabel.features.picture_formats import HEAD
from nearlabel.features.pictures import UnreadablePicture, name_of, no_warnings_of_pillow

T = TypeVar("T")

_MOST_THREADS = 64  # whatever a model file may ask for
_WAITING = 4  # pictures a thread that are read, prepared or not yet asked for, at any time


@dataclass(frozen=True)
class PictureVectors:
    """The vectors of pictures.

    Attributes
    ----------
    names : list of str
        Of the pictures that were read: in a folder or an archive, their paths within it.
    X : ndarray or DataFrame of shape (n, d)
        A row for each of these.
    skipped : list of (name, reason)
        The others, each with the rest of a sentence that says why.
    """

    names: list[str]
    X: Any
    skipped: list[tuple[str, str]]

    def __repr__(self) -> str:
        return f"PictureVectors(X of shape {self.X.shape}, {len(self.skipped)} skipped)"


def find_pictures(source: str | os.PathLike[str]) -> list[str | ArchivedPicture]:
    """List the pictures in a folder and the folders within it, or in a zip or tar archive.

    A picture is a file whose suffix promises one, or that begins as one. Files whose names begin
    with a dot are left out, links are followed, and no folder is entered twice.

    Parameters
    ----------
    source : path
        Of a folder, of an archive, or of a single picture.

    Returns
    -------
    list of paths and `ArchivedPicture`
        For `upright_rgb` and the transformers: of a folder paths, sorted; of an archive objects
        with a `name` and a method `read`, in its order. A folder or an archive that cannot be read
        is among them, and says why when it is read.

    Raises
    ------
    FileNotFoundError
    """
    return found_files(source, PICTURES)


def found_files(source: str | os.PathLike[str], kind: Kind) -> list[str | ArchivedPicture]:
    """List the files of a kind, as `find_pictures` does pictures."""
    path = os.fsdecode(source)
    if os.path.isdir(path):  # noqa: PTH112
        return [*_in_folder(path, kind)]
    if not os.path.isfile(path):  # noqa: PTH113
        if not os.path.lexists(path):
            raise FileNotFoundError(f"there is no file or folder {path!r}")
        return [path]  # a device or the like: why it is not read is said when it is
    try:
        archived = archived_pictures(path, kind)
    except OSError:
        return [path]
    return [path] if archived is None else [*archived]


def _in_folder(top: str, kind: Kind) -> Iterator[str | ArchivedPicture]:
    """Files of a kind below a folder, by a stack: folders nest deeper than Python calls."""
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        path = waiting.pop()
        try:
            about = os.stat(path)  # noqa: PTH116
            if not stat.S_ISDIR(about.st_mode):
                if _is_of(kind, path):
                    yield path
                continue
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            names = sorted(os.listdir(path), reverse=True)  # noqa: PTH208
        except OSError as error:
            is_dangling = error.errno in (errno.ENOENT, errno.ELOOP)
            if not is_dangling or kind.has_suffix(path):
                yield refused(path, f"cannot be read: {error.strerror}")
            continue
        waiting += [os.path.join(path, name) for name in names if name[0] != "."]  # noqa: PTH118


def _is_of(kind: Kind, path: str) -> bool:
    """Whether the name of a file promises one of a kind, or the file begins as one."""
    if kind.has_suffix(path):
        return True
    if not os.path.isfile(path):  # noqa: PTH113
        return False
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return kind.begins(file.read(HEAD), path)
    except OSError:
        return False


def picture_vectors(
    source: Any, transformer: Any, *, n_jobs: int | None = None, progress: Progress | None = None
) -> PictureVectors:
    """Turn all pictures of a folder or an archive into vectors; broken ones are left out.

    Parameters
    ----------
    source : path, or iterable of pictures
        A folder or an archive, as for `find_pictures`, or what a transformer takes.
    transformer : GridMoments, PictureEmbedding, or a pipeline that begins with one; fitted
    n_jobs : int or None, default=None
        Threads that read pictures; None: as the transformer has it.
    progress : callable, optional
        Called with (pictures done, pictures in all).

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
    [('picture 1', "is no picture of a known format; it begins with b'no pictu'")]
    """
    top = ""
    if isinstance(source, str | os.PathLike):
        top = os.fsdecode(source)
        source = find_pictures(source)
    pictures = Skipping([*source], n_jobs, progress)
    if not hasattr(transformer, "transform"):
        raise TypeError(
            "transformer must have a transform method; of a pipeline that ends in a classifier, "
            f"give model[:-1]; got {type(transformer).__name__}"
        )
    try:
        X = transformer.transform(pictures)
    except ValueError:
        if len(pictures.skipped) < len(pictures):
            raise
        X = np.empty((0, len(transformer.get_feature_names_out())))  # a scaler wants some rows
    skipped = {at: error.reason for at, error in pictures.skipped}
    names = [name_within(top, one, at) for at, one in enumerate(pictures.sources)]
    if np.shape(X)[0] != len(names) - len(skipped):
        raise ValueError(
            f"transformer must give a row for each picture that it reads, in this process; of "
            f"{len(names)} pictures {len(skipped)} were skipped, and it gives {np.shape(X)[0]} rows"
        )
    return PictureVectors(
        [name for at, name in enumerate(names) if at not in skipped],
        X,
        [(names[at], skipped[at]) for at in sorted(skipped)],
    )


def name_within(top: str, source: Any, at: int) -> str:
    """What a picture, or another file, is called: within a folder by its path from there."""
    name = name_of(source)
    if not name:
        return f"picture {at}"
    inside = os.path.join(top, "") if top else ""  # noqa: PTH118
    return name[len(inside) :].replace(os.sep, "/") if inside and name.startswith(inside) else name


@dataclass
class Skipping:
    """Pictures of which `in_parallel` leaves out those that cannot be read, and notes them.

    A transformer that hands its X to `in_parallel` gives rows for the others only.
    """

    sources: list[Any]
    n_jobs: int | None = None
    progress: Progress | None = None
    skipped: list[tuple[int, UnreadablePicture]] = field(default_factory=list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)


def in_parallel(
    sources: Iterable[Any], prepare: Callable[[Any], T], n_jobs: int | None = None
) -> Iterator[T]:
    """Prepare pictures in threads, and give what becomes of them in their order.

    Of the pictures only a few for each thread are in memory at any time: the next one is taken
    from `sources` when a result was taken from here. What lies in archives is read in this thread.

    Parameters
    ----------
    sources : iterable of pictures
        Where it is a `Skipping`, those that cannot be read are left out.
    prepare : callable
        Called with a picture, in another thread.
    n_jobs : int or None, default=None
        Threads; None is this one.

    Raises
    ------
    UnreadablePicture
        For the first picture that cannot be read; one without a name is called by its number.
    """
    _check_many(sources)
    skipping = sources if isinstance(sources, Skipping) else None
    if skipping is not None and skipping.n_jobs is not None:
        n_jobs = skipping.n_jobs
    threads = min(check_n_jobs(n_jobs), _MOST_THREADS)
    results = _results(enumerate(sources), prepare, threads)
    with no_warnings_of_pillow(), closing(results):
        for at, result in results:
            try:
                found = result()
            except UnreadablePicture as error:
                if skipping is None:
                    name = error.name or f"picture {at}"
                    raise UnreadablePicture(name, error.reason) from error.__cause__
                skipping.skipped.append((at, error))
            else:
                yield found
            if skipping is not None and skipping.progress is not None:
                skipping.progress(at + 1, len(skipping))


def _check_many(sources: Any) -> None:
    """Refuse a single picture, whose parts would be taken for pictures."""
    is_one = isinstance(sources, str | bytes | os.PathLike) or hasattr(sources, "read")
    is_one |= isinstance(sources, np.ndarray) and sources.shape[2:] in ((3,), (4,))
    if is_one or not isinstance(sources, Iterable):
        raise TypeError(
            "X must be a list of pictures or another iterable; for a single one give [picture]; "
            f"got one of type {type(sources).__name__}"
        )


def _results(
    sources: Iterator[tuple[int, Any]], prepare: Callable[[Any], T], n_jobs: int
) -> Generator[tuple[int, Callable[[], T]]]:
    """For each picture its number and what gives, or raises, its result."""
    if n_jobs == 1:
        for at, source in sources:
            yield at, partial(prepare, source)
        return
    waiting: deque[tuple[int, Future[T]]] = deque()
    pool = ThreadPoolExecutor(n_jobs)
    try:
        for at, source in sources:
            waiting.append((at, _submitted(pool, prepare, source)))
            if len(waiting) >= _WAITING * n_jobs:
                first, result = waiting.popleft()
                yield first, result.result
                del result  # else it would be kept until the next one is there
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result
    finally:
        pool.shutdown(cancel_futures=True)


def _submitted(pool: ThreadPoolExecutor, prepare: Callable[[Any], T], source: Any) -> Future[T]:
    if not isinstance(source, ArchivedPicture):
        return pool.submit(prepare, source)
    try:
        content = source.read()
    except UnreadablePicture as error:
        failed: Future[T] = Future()
        failed.set_exception(error)
        return failed
    return pool.submit(prepare, ArchivedPicture(source.name, lambda size: content[:size]))
