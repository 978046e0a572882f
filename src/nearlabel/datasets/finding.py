"""The files that a name or a path means."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from nearlabel.common.messages import shown
from nearlabel.datasets.data_folder import Archive, Folder, data_folders
from nearlabel.datasets.text_lines import DataError

SUFFIXES = {
    ".npz": "npz",
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "sparse",
}


class Found(NamedTuple):
    """The files of a data set: where, their names, and their form."""

    place: Folder | Archive
    names: tuple[str, ...]  # one file, or that of the training part and that of the test part
    format: str

    @property
    def title(self) -> str:
        """For messages."""
        first = self.names[0]
        return "standard input" if first == "-" else str(self.place.path / first)


def find(source: str | os.PathLike[str], format: str | None) -> Found:
    """The files that a name or a path means."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be a name or a path; got {source!r}")
    if source == "-":
        if format == "npz":
            raise ValueError("standard input is read as text; give a file of the form 'npz'")
        return Found(Folder(Path()), ("-",), format or _format_of_input())
    path = Path(source)
    if isinstance(source, str) and re.fullmatch(r"(?!\.)[\w.-]+", source) and not path.is_file():
        for folder in data_folders():
            found = _files_of(Folder(folder), source, format)
            if found is not None:
                return found
    if path.is_file() and path.suffix == ".zip":
        return _only_set(Archive(path), format)
    if path.is_file():
        return Found(Folder(path.parent), (path.name,), format or _format_of(path.name, path))
    found = _files_of(Folder(path.parent), path.name, format)
    if found is not None:
        return found
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file, or the name of a data set")
    looked = ", ".join(map(str, data_folders()))
    raise FileNotFoundError(
        f"no data set {str(source)!r}: there is no such file, and none of that name in {looked}"
    )


def _format_of(name: str, path: Path) -> str:
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: format must be given, as the suffix is none of {', '.join(SUFFIXES)}"
        )
    return SUFFIXES[suffix]


def _format_of_input() -> str:
    """The form of standard input, by its first character."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    first = sys.stdin.buffer.peek(1)[:1]  # type: ignore[union-attr]
    return {b"{": "jsonl", b"@": "arff", b"%": "arff"}.get(first, "csv")


def _stems(place: Folder | Archive) -> list[str]:
    """What the data sets of a place may be called."""
    stems = []
    for name in place:
        plain = Path(name.removesuffix(".gz"))
        form = SUFFIXES.get(plain.suffix)
        if form is not None and (form != "sparse" or _is_sparse_text(place, name)):
            stems.append(re.sub(r"[-_](train|test)$", "", plain.stem))
    return sorted(set(stems))


def _is_sparse_text(place: Folder | Archive, name: str) -> bool:
    """Whether a text begins with three numbers: others hold names, splits or anything."""
    file = place.text(name, "utf-8", None)
    try:
        sizes = next(file.lines(), "").split()
    except ValueError:
        return False
    finally:
        file.close()
    beside = re.search(r"(?i)[._](labels|features|split|trsplit|tstsplit)\.txt", name)
    return len(sizes) == 3 and all(map(str.isdigit, sizes)) and not beside


def _files_of(place: Folder | Archive, stem: str, format: str | None = None) -> Found | None:
    """The files of a data set in a place: both parts of a split rather than one file without."""
    if f"{stem}.npz" in place and isinstance(place, Folder) and format in ("npz", None):
        return Found(place, (f"{stem}.npz",), "npz")
    suffixes = [suffix + gz for suffix in SUFFIXES if suffix != ".npz" for gz in ("", ".gz")]
    for suffix in suffixes:
        if format not in (SUFFIXES[suffix.removesuffix(".gz")], None):
            continue
        for mark in "-_":
            parts = (f"{stem}{mark}train{suffix}", f"{stem}{mark}test{suffix}")
            if all(part in place for part in parts):
                return Found(place, parts, SUFFIXES[suffix.removesuffix(".gz")])
        if f"{stem}{suffix}" in place:
            return Found(place, (f"{stem}{suffix}",), SUFFIXES[suffix.removesuffix(".gz")])
    return None


def _only_set(archive: Archive, format: str | None) -> Found:
    possible = [_files_of(archive, stem, format) for stem in _stems(archive)]
    found = [one for one in possible if one is not None]
    if len(found) != 1:
        names = ", ".join(shown(name) for one in found for name in one.names) or "none"
        with archive:
            raise DataError(
                str(archive.path), None, f"one data set expected in the archive; there are: {names}"
            )
    return found[0]


def available() -> dict[str, Path]:
    """The data sets of the data folders: their names and files.

    Where several folders have a name, the first counts.
    """
    found: dict[str, Path] = {}
    for folder in data_folders():
        place = Folder(folder)
        for stem in _stems(place):
            here = _files_of(place, stem)
            if here is not None:
                found.setdefault(stem, folder / here.names[0])
    return dict(sorted(found.items()))
