"""The files that a name or a path refers to: in the data folder, or elsewhere."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from nearlabel.common.messages import did_you_mean
from nearlabel.common.user_cache import cache_folder
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.formats import FORMATS, SUFFIXES
from nearlabel.datasets.public_sets import HOMES


def data_folders() -> list[Path]:
    """Where data sets are searched: NEARLABEL_DATA, folders as in PATH, else the user's cache."""
    given = [Path(part) for part in os.environ.get("NEARLABEL_DATA", "").split(os.pathsep) if part]
    return given or [cache_folder()]


def available() -> dict[str, Path]:
    """The data sets of the data folders: their names and files.

    If several folders have the same name, the first is used.
    """
    sets: dict[str, Path] = {}
    for folder in data_folders():
        for stem in _stems(folder):
            source = _files_of(folder, stem)
            if source is not None:
                sets.setdefault(stem, source.paths[0])
    return dict(sorted(sets.items()))


class SourceFiles(NamedTuple):
    """The files of a data set, and the name of their format."""

    paths: tuple[Path, ...]  # one file, or those of the training part and the test part
    format: str


def find(source: str | os.PathLike[str], format: str | None) -> SourceFiles:
    """The files that a name or a path refers to."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be a name or a path; got {source!r}")
    if source == "-":
        return SourceFiles((Path("-"),), _format_of_input(format))
    path = Path(source)
    if isinstance(source, str) and re.fullmatch(r"(?!\.)[\w.-]+", source) and not path.is_file():
        for folder in data_folders():
            named = _files_of(folder, source, format)
            if named is not None:
                return named
    if path.is_file():
        return SourceFiles((path,), format or format_of(path))
    named = _files_of(path.parent, path.name, format)
    if named is not None:
        return named
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder; pass a file, or the name of a data set (a folder of pictures "
            "needs labels.csv beside pictures/)"
        )
    looked = ", ".join(map(str, data_folders()))
    raise FileNotFoundError(
        f"no data set {str(source)!r}: there is no such file, and none of that name in {looked}"
        f"{_hint(path)}"
    )


def _hint(path: Path) -> str:
    """How to get a missing data set, or what else may have been meant."""
    if (name := str(path)) in HOMES:
        return f"; 'nearlabel datasets fetch {name}' or nl.datasets.fetch({name!r}) downloads it"
    public = "; 'nearlabel datasets list --public' shows the sets that can be downloaded"
    meant = did_you_mean(path.name, [*HOMES, *available(), *_files_in(path.parent)])
    return meant or ("" if path.suffix else public)


def format_of(path: Path) -> str:
    """The format that a file's suffix names, or a ValueError."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix == ".zip":
        raise ValueError(f"{path} is an archive; unpack it first")
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: pass format=, as the suffix is not one of {', '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


def _format_of_input(format: str | None) -> str:
    """The format of standard input: a given one, or by its first character."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    if format is None:
        begin = sys.stdin.buffer.peek(8)[:8]  # type: ignore[union-attr]
        first = begin.lstrip(b"\xef\xbb\xbf\xff\xfe\0")[:1]  # after a byte-order mark
        named = (name for name, row in FORMATS.items() if first and first in row.begins)
        return next(named, "csv")
    if FORMATS[format].is_binary:
        raise ValueError(f"standard input is read as text; for the format {format!r} pass a file")
    return format


def _files_in(folder: Path) -> list[str]:
    """The names of the files in a folder."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(path.name for path in paths if path.is_file())


def _stems(folder: Path) -> list[str]:
    """The possible names of the data sets in a folder."""
    stems = set()
    for name in _files_in(folder):
        plain = Path(name.removesuffix(".gz"))
        format = SUFFIXES.get(plain.suffix)
        if format is not None and FORMATS[format].is_data(DataFile(folder / name)):
            part = r"[-_](train|test)$" if FORMATS[format].in_parts else "$"
            stems.add(re.sub(part, "", plain.stem))
    return sorted(stems)


def _files_of(folder: Path, stem: str, format: str | None = None) -> SourceFiles | None:
    """The files of a data set in a folder: preferably both parts of a split."""
    for suffix, name in SUFFIXES.items():
        if format not in (name, None):
            continue
        for ending in (suffix,) if FORMATS[name].is_binary else (suffix, f"{suffix}.gz"):
            marks = "-_" if FORMATS[name].in_parts else ""
            parts = [(f"{stem}{mark}train{ending}", f"{stem}{mark}test{ending}") for mark in marks]
            for names in (*parts, (f"{stem}{ending}",)):
                paths = tuple(folder / part for part in names)
                if all(path.is_file() for path in paths):
                    return SourceFiles(paths, name)
    return None
