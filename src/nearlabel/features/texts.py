"""Texts for transformers: lists of strings, and text files in folders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, ArgumentTypeError
from nearlabel.features.picture_files import Skipping, found_files, in_parallel
from nearlabel.features.pictures import FileKind, UnreadablePicture, regular_file

if TYPE_CHECKING:
    from sklearn.utils import Tags

_MOST_BYTES = 2**24  # per text: five times the Bible
TEXTS = FileKind(frozenset((".txt", ".md")), _MOST_BYTES, lambda *_: False)  # any bytes may begin


@dataclass(frozen=True)
class TextFiles:
    """Texts of files.

    Attributes
    ----------
    names : list of str
        Their paths relative to the folder.
    texts : list of str
    skipped : list of (name, reason)
        Files that could not be read, each with the rest of a sentence that says why.
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
    suffixes: Iterable[str] = (".txt", ".md"),
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> TextFiles:
    """Read the texts in a folder and its subfolders.

    Texts are UTF-8, with or without a byte-order mark, of up to 16 MiB. Hidden files are left out,
    links are followed, and no folder is visited twice.

    Parameters
    ----------
    source : path
        A folder, or a single text.
    suffixes : iterable of str, default=(".txt", ".md")
        The suffixes of text files, regardless of case.
    n_jobs : int or None, default=None
        Threads that read files; None means one.
    progress : callable, optional
        Called with (files done, total files).

    Returns
    -------
    TextFiles
        Sorted by path. Unreadable files, and files that are not text, are in ``skipped``.

    Raises
    ------
    FileNotFoundError
        If there is no such folder or file.
    """
    suffixes = [suffixes] if isinstance(suffixes, str) else [*suffixes]
    for suffix in suffixes:
        if not isinstance(suffix, str) or not suffix.startswith("."):
            raise ArgumentError(
                f"suffixes must start with a dot, as '.txt'; got {suffix!r}", "suffixes"
            )
    kind = replace(TEXTS, suffixes=frozenset(suffix.lower() for suffix in suffixes))
    files = Skipping(found_files(source, kind), n_jobs, progress)
    texts = [*in_parallel(files, text_of)]
    names, skipped = files.outcome(os.fsdecode(source))
    return TextFiles(names, texts, skipped)


def text_of(source: str | os.PathLike[str] | bytes) -> str:
    """The text of a file, given its path or its bytes; an error says why it fails."""
    if isinstance(source, bytes):
        content = source
    else:
        with regular_file(source) as file:
            content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UnreadablePicture("", f"has more than {_MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadablePicture("", f"is not UTF-8 text: {error.reason}") from None
    if "\0" in text:
        raise UnreadablePicture("", "is not text: it contains a NUL byte")
    return text


def checked_texts(X: Iterable[object]) -> list[str]:
    """Texts as a list; an error names the first element that is not a string."""
    if isinstance(X, str | bytes):
        raise ArgumentTypeError(f"X must be an iterable of strings; got the string {X[:40]!r}", "X")
    if getattr(X, "ndim", 1) != 1:  # iterating a DataFrame gives its column names
        shape = getattr(X, "shape", None)
        raise ArgumentTypeError(f"X must be a list of strings, or a column; got shape {shape}", "X")
    if not isinstance(X, Iterable):
        raise ArgumentTypeError(f"X must be an iterable of strings; got {X!r}", "X")
    texts = []
    for place, text in enumerate(X):
        if not isinstance(text, str):
            what = f"{type(text).__name__} at position {place}"
            raise ArgumentTypeError(f"X must contain strings; got {what}: {str(text)[:40]!r}", "X")
        texts.append(text)
    return texts


def text_tags(tags: Tags) -> Tags:
    """The tags of a transformer whose input is a list of texts."""
    tags.input_tags.string, tags.input_tags.two_d_array = True, False
    return tags
