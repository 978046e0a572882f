"""Texts as transformers get them: lists of them, and those of folders and archives."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, ArgumentTypeError
from nearlabel.features.picture_archives import Kind
from nearlabel.features.picture_files import Skipping, found_files, in_parallel, name_within
from nearlabel.features.pictures import UnreadablePicture, regular_file

_MOST_BYTES = 2**24  # of a text: five times the Bible
_SUFFIXES = (".txt", ".md")


@dataclass(frozen=True)
class TextFiles:
    """Texts of files.

    Attributes
    ----------
    names : list of str
        Their paths within the folder or the archive.
    texts : list of str
    skipped : list of (name, reason)
        The files that could not be read, each with the rest of a sentence that says why.
    """

    names: list[str]
    texts: list[str]
    skipped: list[tuple[str, str]]

    def __repr__(self) -> str:
        s = "" if len(self.texts) == 1 else "s"
        return f"TextFiles({len(self.texts)} text{s}, {len(self.skipped)} skipped)"


def text_files(
    source: str | os.PathLike[str],
    *,
    suffixes: Iterable[str] = _SUFFIXES,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> TextFiles:
    """Read the texts in a folder and the folders within it, or in a zip or tar archive.

    Texts are in UTF-8, with or without a byte-order mark, and have up to 16 MiB. Files whose names
    begin with a dot are left out, links are followed, and no folder is entered twice. Archives are
    read without unpacking them to the disk.

    Parameters
    ----------
    source : path
        Of a folder, of an archive, or of a single text.
    suffixes : iterable of str, default=(".txt", ".md")
        What the names of texts end in, in small or capital letters.
    n_jobs : int or None, default=None
        Threads that read; None is one.
    progress : callable, optional
        Called with (files done, files in all).

    Returns
    -------
    TextFiles
        Sorted by their paths; of an archive in its order. Files that cannot be read, or hold no
        text, are in ``skipped``.

    Raises
    ------
    FileNotFoundError
        Where there is no such folder or file.
    """
    kind = _texts_called(_checked_suffixes(suffixes))
    files = Skipping(found_files(source, kind), n_jobs, progress)
    texts = [*in_parallel(files, text_of)]
    skipped = {at: error.reason for at, error in files.skipped}
    names = [name_within(os.fsdecode(source), one, at) for at, one in enumerate(files.sources)]
    return TextFiles(
        [name for at, name in enumerate(names) if at not in skipped],
        texts,
        [(names[at], skipped[at]) for at in sorted(skipped)],
    )


def _texts_called(suffixes: frozenset[str]) -> Kind:
    """Files that are texts by their names: no first bytes tell one."""
    return Kind(suffixes, _MOST_BYTES, lambda *_: False)


TEXTS = _texts_called(frozenset(_SUFFIXES))


def _checked_suffixes(suffixes: Any) -> frozenset[str]:
    listed = [suffixes] if isinstance(suffixes, str) else [*suffixes]
    for one in listed:
        if not isinstance(one, str) or not one.startswith("."):
            raise ArgumentError(f"suffixes must be such as '.txt'; got {one!r}", "suffixes")
    return frozenset(one.lower() for one in listed)


def text_of(source: Any) -> str:
    """The text of a file, by its path, its bytes or an open one; an error says why it is none."""
    if isinstance(source, bytes):
        content = source
    elif isinstance(source, str | os.PathLike):
        with regular_file(source) as file:
            content = file.read(_MOST_BYTES + 1)
    else:
        content = source.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UnreadablePicture("", f"has more than {_MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadablePicture("", f"is no text in UTF-8: {error.reason}") from None
    if "\0" in text:
        raise UnreadablePicture("", "is no text: it holds a zero byte")
    return text


def checked_texts(X: Any) -> list[str]:
    """Texts as a list, or an error that names the first that is none."""
    if isinstance(X, str | bytes):
        raise ArgumentTypeError(f"X must be an iterable of texts; got the one {X[:40]!r}", "X")
    if getattr(X, "ndim", 1) != 1:  # of a DataFrame, these would be the names of its columns
        shape = getattr(X, "shape", None)
        raise ArgumentTypeError(f"X must be a list of texts, or a column; got shape {shape}", "X")
    try:
        texts = list(X)
    except TypeError:
        raise ArgumentTypeError(f"X must be an iterable of texts; got {X!r}", "X") from None
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            what = f"{type(text).__name__} at place {place}"
            raise ArgumentTypeError(f"X must hold texts; got {what}: {str(text)[:40]!r}", "X")
    return texts
